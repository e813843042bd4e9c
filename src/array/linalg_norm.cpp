// Norms of vectors and matrices.
#include <cmath>

#include "array/ops_common.h"
#include "heddle/linalg.h"

namespace heddle::linalg {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Floating; half types as f32, as squares of what they hold exceed them.
Array summable(const Array& a) {
  const DType dtype = at_least_float(a.dtype());
  return astype(a, dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype);
}

/// To the type that a norm of `a` has.
Array to_norm_type(const Array& norm, const Array& a) {
  const DType dtype = at_least_float(a.dtype());
  return astype(norm, dtype == DType::complex64 ? DType::f32 : dtype);
}

Array scalar_like(double value, const Array& x) {
  return astype(Array(std::span<const double>(&value, 1), Shape{}), x.dtype());
}

Array euclidean(const Array& x, const Dims& axes, bool keepdims) {
  return sqrt(sum(square(abs(x)), axes, keepdims));
}

Array vector_norm(const Array& x, double ord, int axis, bool keepdims) {
  if (ord == 0) {
    const Array counted = sum(not_equal(x, scalar_like(0, x)), axis, keepdims);
    return astype(counted, x.dtype() == DType::complex64 ? DType::f32 : x.dtype());
  }
  const Array magnitudes = abs(x);
  if (ord == 1) return sum(magnitudes, axis, keepdims);
  if (ord == 2) return euclidean(x, Dims{axis}, keepdims);
  if (ord == kInfinity) return max(magnitudes, axis, keepdims);
  if (ord == -kInfinity) return min(magnitudes, axis, keepdims);
  const Array sums = sum(power(magnitudes, scalar_like(ord, magnitudes)), axis, keepdims);
  return power(sums, scalar_like(1 / ord, magnitudes));
}

/// Over `inner`, then `outer`, which are both counted in x.
template <class Extreme>
Array extreme_sum(const Array& x, std::size_t inner, std::size_t outer, bool keepdims,
                  const Extreme& extreme) {
  const Array sums = sum(abs(x), static_cast<int>(inner), keepdims);
  return extreme(sums, static_cast<int>(outer - (!keepdims && outer > inner ? 1 : 0)), keepdims);
}

struct Axes {
  std::size_t row, column;
};

Array singular_values(const Array& x, Axes axes) {
  Dims order;
  for (std::size_t i = 0; i < x.ndim(); ++i) {
    if (i != axes.row && i != axes.column) order.push_back(static_cast<std::int64_t>(i));
  }
  order.push_back(static_cast<std::int64_t>(axes.row));
  order.push_back(static_cast<std::int64_t>(axes.column));
  return svd(transpose(x, order), false).front();
}

/// With axes of extent 1 where the matrices' were, if kept.
Array with_axes(const Array& norms, Axes axes, bool keepdims) {
  if (!keepdims) return norms;
  return expand_dims(norms,
                     {static_cast<std::int64_t>(axes.row), static_cast<std::int64_t>(axes.column)});
}

Array matrix_norm(const Array& x, double ord, Axes axes, bool keepdims) {
  const auto largest = [](const Array& a, int axis, bool keep) { return max(a, axis, keep); };
  const auto smallest = [](const Array& a, int axis, bool keep) { return min(a, axis, keep); };
  if (ord == 1) return extreme_sum(x, axes.row, axes.column, keepdims, largest);
  if (ord == -1) return extreme_sum(x, axes.row, axes.column, keepdims, smallest);
  if (ord == kInfinity) return extreme_sum(x, axes.column, axes.row, keepdims, largest);
  if (ord == -kInfinity) return extreme_sum(x, axes.column, axes.row, keepdims, smallest);
  require(ord == 2 || ord == -2, ErrorCode::invalid_argument,
          "norm: order {} of matrices; it must be 1, 2, infinity or the negative of one", ord);
  const Array values = singular_values(x, axes);
  return with_axes(ord == 2 ? max(values, -1) : min(values, -1), axes, keepdims);
}

Array matrix_norm(const Array& x, const std::string& ord, Axes axes, bool keepdims) {
  if (ord == "f" || ord == "fro") {
    Dims both{static_cast<std::int64_t>(axes.row), static_cast<std::int64_t>(axes.column)};
    return euclidean(x, both, keepdims);
  }
  require(ord == "nuc", ErrorCode::invalid_argument,
          "norm: order \"{}\" of matrices; as a word it must be fro, f or nuc", ord);
  return with_axes(sum(singular_values(x, axes), -1), axes, keepdims);
}

Dims axes_or_all(const Arg& a, const std::optional<Dims>& axis) {
  if (axis) {
    for (std::size_t i = 0; i < axis->size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        require(normalize_axis((*axis)[i], a.ndim(), "norm") !=
                    normalize_axis((*axis)[j], a.ndim(), "norm"),
                ErrorCode::invalid_argument, "norm: axes {} name one axis of {} twice", *axis,
                a.spec());
      }
    }
    return *axis;
  }
  Dims all;
  for (std::size_t i = 0; i < a.ndim(); ++i) all.push_back(static_cast<std::int64_t>(i));
  return all;
}

Axes matrix_axes(const Arg& a, const Dims& axes) {
  return {normalize_axis(axes[0], a.ndim(), "norm"), normalize_axis(axes[1], a.ndim(), "norm")};
}

}  // namespace

Array norm(const Arg& a, double ord, const std::optional<Dims>& axis, bool keepdims) {
  return within("norm", a, [&]() -> Array {
    const Dims axes = axes_or_all(a, axis);
    require(axes.size() == 1 || axes.size() == 2, ErrorCode::invalid_argument,
            "norm: order {} over {} axes of {}; there must be one or two", ord, axes.size(),
            a.spec());
    require(!std::isnan(ord), ErrorCode::invalid_argument, "norm: order {} of {}", ord, a.spec());
    const Array x = summable(a);
    const Array result = axes.size() == 1 ? vector_norm(x, ord, static_cast<int>(axes[0]), keepdims)
                                          : matrix_norm(x, ord, matrix_axes(a, axes), keepdims);
    return to_norm_type(result, a);
  });
}

Array norm(const Arg& a, double ord, int axis, bool keepdims) {
  return norm(a, ord, std::optional(Dims{axis}), keepdims);
}

Array norm(const Arg& a, const std::string& ord, const std::optional<Dims>& axis, bool keepdims) {
  return within("norm", a, [&]() -> Array {
    const Dims axes = axes_or_all(a, axis);
    require(axes.size() == 2, ErrorCode::invalid_argument,
            "norm: order \"{}\" over {} axes of {}; it is of matrices, over two", ord, axes.size(),
            a.spec());
    return to_norm_type(matrix_norm(summable(a), ord, matrix_axes(a, axes), keepdims), a);
  });
}

Array norm(const Arg& a, const std::string& ord, int axis, bool keepdims) {
  return norm(a, ord, std::optional(Dims{axis}), keepdims);
}

Array norm(const Arg& a, const std::optional<Dims>& axis, bool keepdims) {
  return within("norm", a, [&]() -> Array {
    require(!axis || axis->size() <= 2, ErrorCode::invalid_argument,
            "norm: over {} axes of {}; at most two", axis ? axis->size() : 0, a.spec());
    return to_norm_type(euclidean(summable(a), axes_or_all(a, axis), keepdims), a);
  });
}

Array norm(const Arg& a, int axis, bool keepdims) {
  return norm(a, std::optional(Dims{axis}), keepdims);
}

}  // namespace heddle::linalg
