// Products of all kinds, and windows.
#include <cmath>
#include <numbers>

#include "array/ops_common.h"

namespace heddle {

namespace {

/// The type in which products are: floating or complex64.
DType product_type(const char* function, const TensorSpec& a, const TensorSpec& b) {
  const DType dtype = promote_types(a.dtype, b.dtype);
  require(is_floating(dtype) || dtype == DType::complex64, ErrorCode::invalid_argument,
          "{}: {} and {}: the product of {} matrices is not defined; cast them to a floating type",
          function, a, b, to_string(dtype));
  return dtype;
}

Array multiplied_by(const Array& a, float factor) {
  return factor == 1.0f ? a : multiply(a, astype(Array(factor), a.dtype()));
}

Dims kept_axes(const Dims& all, const Dims& left_out) {
  Dims kept;
  for (const std::int64_t axis : all) {
    if (std::find(left_out.begin(), left_out.end(), axis) == left_out.end()) kept.push_back(axis);
  }
  return kept;
}

Dims positive_axes(const Dims& axes, std::size_t rank) {
  sorted_axes(axes, rank, "tensordot");  // refuses those that are named twice
  Dims positive;
  for (const std::int64_t axis : axes) {
    positive.push_back(static_cast<std::int64_t>(normalize_axis(axis, rank, "tensordot")));
  }
  return positive;
}

Dims first_axes(std::int64_t begin, std::int64_t end) {
  Dims axes;
  for (std::int64_t i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

std::int64_t extent_of(const Shape& shape, const Dims& axes) {
  std::int64_t product = 1;
  for (const std::int64_t axis : axes) product *= shape[static_cast<std::size_t>(axis)];
  return product;
}

Dims joined(Dims first, const Dims& second) {
  for (const std::int64_t axis : second) first.push_back(axis);
  return first;
}

}  // namespace

Array matmul(const Arg& a, const Arg& b) {
  return within("matmul", a, [&]() -> Array {
    require(a.ndim() > 0 && b.ndim() > 0, ErrorCode::invalid_argument,
            "matmul: {} and {}: scalars have no product of matrices", a.spec(), b.spec());

    const DType dtype = product_type("matmul", a.spec(), b.spec());
    const Array left = a.ndim() == 1 ? expand_dims(a, 0) : a.array();
    const Array right = b.ndim() == 1 ? expand_dims(b, 1) : b.array();
    Array product = heddle::apply(Matmul{}, {astype(left, dtype), astype(right, dtype)});
    Dims added;
    if (a.ndim() == 1) added.push_back(-2);
    if (b.ndim() == 1) added.push_back(-1);
    return squeeze(product, added);
  });
}

Array addmm(const Arg& c, const Arg& a, const Arg& b, float alpha, float beta) {
  return within("addmm", c, [&]() -> Array {
    const DType factors = product_type("addmm", a.spec(), b.spec());
    const DType dtype = promote_types(c.dtype(), factors);
    const Array product = matmul(astype(a, dtype), astype(b, dtype));
    const Array addend = broadcast_to(astype(c, dtype), product.shape());
    if (beta == 0.0f) return multiplied_by(product, alpha);
    return add(multiplied_by(product, alpha), multiplied_by(addend, beta));
  });
}

Array inner(const Arg& a, const Arg& b) {
  return within("inner", a, [&]() -> Array {
    if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
    require(a.shape(-1) == b.shape(-1), ErrorCode::invalid_argument,
            "inner: {} and {} differ in their last axes", a.spec(), b.spec());
    return tensordot(a, b, Dims{-1}, Dims{-1});
  });
}

Array outer(const Arg& a, const Arg& b) {
  return within("outer", a, [&]() -> Array {
    return multiply(reshape(a, {a.size(), 1}), reshape(b, {1, b.size()}));
  });
}

Array kron(const Arg& a, const Arg& b) {
  return within("kron", a, [&]() -> Array {
    const std::size_t rank = std::max(a.ndim(), b.ndim());
    std::size_t needed = 0;
    const auto extent = [&](const Arg& x, std::size_t axis) {
      const std::size_t missing = rank - x.ndim();
      return axis < missing ? 1 : x.shape()[axis - missing];
    };
    for (std::size_t i = 0; i < rank; ++i) {
      needed += (extent(a, i) != 1) + (extent(b, i) != 1);
    }
    require(needed <= kMaxRank, ErrorCode::invalid_argument,
            "kron: {} and {} have {} axes of more than one element together; at most {}", a.spec(),
            b.spec(), needed, kMaxRank);
    Shape wide_a, wide_b, result;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t m = extent(a, i), n = extent(b, i);
      std::int64_t both = 0;
      require(!__builtin_mul_overflow(m, n, &both), ErrorCode::invalid_argument,
              "kron: {} and {}: the extent of axis {} overflows", a.spec(), b.spec(), i);
      result.push_back(both);
      if (m != 1) wide_a.push_back(m), wide_b.push_back(1);
      if (n != 1) wide_a.push_back(1), wide_b.push_back(n);
    }
    return reshape(multiply(reshape(a, wide_a), reshape(b, wide_b)), result);
  });
}

Array tensordot(const Arg& a, const Arg& b, int axis) {
  return within("tensordot", a, [&]() -> Array {
    const auto least = static_cast<std::int64_t>(std::min(a.ndim(), b.ndim()));
    require(axis >= 0 && axis <= least, ErrorCode::invalid_argument,
            "tensordot: over {} axes of {} and {}; it must be in [0, {}]", axis, a.spec(), b.spec(),
            least);
    const auto rank = static_cast<std::int64_t>(a.ndim());
    return tensordot(a, b, first_axes(rank - axis, rank), first_axes(0, axis));
  });
}

Array tensordot(const Arg& a, const Arg& b, const Dims& axes_a, const Dims& axes_b) {
  return within("tensordot", a, [&]() -> Array {
    require(axes_a.size() == axes_b.size(), ErrorCode::invalid_argument,
            "tensordot: axes {} and {} are not pairs", axes_a, axes_b);
    const Dims of_a = positive_axes(axes_a, a.ndim()), of_b = positive_axes(axes_b, b.ndim());
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      require(a.shape(of_a[i]) == b.shape(of_b[i]), ErrorCode::invalid_argument,
              "tensordot: axis {} of {} and axis {} of {} differ", of_a[i], a.spec(), of_b[i],
              b.spec());
    }
    const DType dtype = product_type("tensordot", a.spec(), b.spec());
    const Dims rest_a = kept_axes(first_axes(0, static_cast<std::int64_t>(a.ndim())), of_a);
    const Dims rest_b = kept_axes(first_axes(0, static_cast<std::int64_t>(b.ndim())), of_b);
    require(rest_a.size() + rest_b.size() <= kMaxRank, ErrorCode::invalid_argument,
            "tensordot: of {} and {} {} axes are left; at most {}", a.spec(), b.spec(),
            rest_a.size() + rest_b.size(), kMaxRank);
    const std::int64_t depth = extent_of(a.shape(), of_a);
    const Array left =
        reshape(transpose(a, joined(rest_a, of_a)), {extent_of(a.shape(), rest_a), depth});
    const Array right =
        reshape(transpose(b, joined(of_b, rest_b)), {depth, extent_of(b.shape(), rest_b)});
    Shape result;
    for (const std::int64_t axis : rest_a) result.push_back(a.shape(axis));
    for (const std::int64_t axis : rest_b) result.push_back(b.shape(axis));
    return reshape(matmul(astype(left, dtype), astype(right, dtype)), result);
  });
}

Array vecdot(const Arg& a, const Arg& b, int axis) {
  return within("vecdot", a, [&]() -> Array {
    const std::size_t at_a = normalize_axis(axis, a.ndim(), "vecdot");
    const std::size_t at_b = normalize_axis(axis, b.ndim(), "vecdot");
    require(a.shape()[at_a] == b.shape()[at_b], ErrorCode::invalid_argument,
            "vecdot: {} and {} differ along axis {}", a.spec(), b.spec(), axis);
    const Array left = moveaxis(a, static_cast<int>(at_a), -1);
    const Array right = moveaxis(b, static_cast<int>(at_b), -1);
    const DType dtype = promote_types(a.dtype(), b.dtype());
    if (!is_floating(dtype) && dtype != DType::complex64) return sum(multiply(left, right), -1);
    const Array rows = expand_dims(conjugate(left), -2);
    const Array product = matmul(rows, expand_dims(right, -1));
    return squeeze(product, {-2, -1});
  });
}

Array hadamard_transform(const Arg& a, std::optional<float> scale) {
  return within("hadamard_transform", a, [&]() -> Array {
    require(a.size() > 0, ErrorCode::invalid_argument, "hadamard_transform: {} is empty", a.spec());
    require(a.dtype() != DType::complex64, ErrorCode::invalid_argument,
            "hadamard_transform: {} is complex; transform its parts", a.spec());
    const std::int64_t n = a.ndim() > 0 ? a.shape(-1) : 1;
    const float factor = scale.value_or(1.0f / std::sqrt(static_cast<float>(n)));
    require(std::isfinite(factor), ErrorCode::invalid_argument,
            "hadamard_transform: scale {}; it must be finite", factor);
    const Array x = astype(a, at_least_float(a.dtype()));
    if (n == 1) return multiplied_by(x, factor);
    return heddle::apply(Hadamard{factor}, {x});
  });
}

// ---- Windows

namespace {

Array f64(double value) {
  return Array(std::span<const double>(&value, 1), Shape{});
}

/// f(x) with M values of x from 0 to 1, both included.
template <class F>
Array window(const char* function, int M, const std::source_location& where, const F& f) {
  return within(function, where, [&]() -> Array {
    if (M < 1) return zeros({0});
    if (M == 1) return ones({1});
    const Array steps = arange(0.0, M, 1.0, DType::f64);
    return astype(f(divide(steps, f64(M - 1.0))), DType::f32);
  });
}

/// cos(turns 2 pi x)
Array cosine(const Array& x, double turns) {
  return cos(multiply(x, f64(turns * 2 * std::numbers::pi)));
}

}  // namespace

Array bartlett(int M, std::source_location where) {
  return window("bartlett", M, where, [](const Array& x) {
    return subtract(f64(1), abs(subtract(multiply(x, f64(2)), f64(1))));
  });
}

Array blackman(int M, std::source_location where) {
  return window("blackman", M, where, [](const Array& x) {
    const Array first = subtract(f64(0.42), multiply(f64(0.5), cosine(x, 1)));
    return add(first, multiply(f64(0.08), cosine(x, 2)));
  });
}

Array hamming(int M, std::source_location where) {
  return window("hamming", M, where, [](const Array& x) {
    return subtract(f64(0.54), multiply(f64(0.46), cosine(x, 1)));
  });
}

Array hanning(int M, std::source_location where) {
  return window("hanning", M, where, [](const Array& x) {
    return subtract(f64(0.5), multiply(f64(0.5), cosine(x, 1)));
  });
}

}  // namespace heddle
