// Creation, shape and data movement.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "array/ops_common.h"

namespace heddle {

Dims sorted_axes(const Dims& axes, std::size_t rank, const char* function) {
  Dims sorted;
  for (const std::int64_t axis : axes) {
    sorted.push_back(static_cast<std::int64_t>(normalize_axis(axis, rank, function)));
  }
  std::sort(sorted.begin(), sorted.end());
  require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
          ErrorCode::invalid_argument, "{}: axes {} name one axis twice", function, axes);
  return sorted;
}

namespace {

Dims iota(std::size_t count) {
  Dims axes(count, 0);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace

// ---- Creation

Array arange(double start, double stop, double step, DType dtype, std::source_location where) {
  return within("arange", where, [&]() -> Array {
    require(std::isfinite(start) && std::isfinite(stop) && std::isfinite(step) && step != 0,
            ErrorCode::invalid_argument,
            "arange: from {} to {} by {}; they must be finite, the step not 0", start, stop, step);
    const double size = std::max(std::ceil((stop - start) / step), 0.0);
    constexpr double kMost = 9007199254740992.0;  // 2^53: counts beyond are not exact
    require(size <= kMost, ErrorCode::invalid_argument, "arange: {} elements are too many", size);
    if (is_integer(dtype)) {  // as in NumPy, the first two elements are truncated and set the step
      const double second = std::trunc(start + step);
      start = std::trunc(start);
      step = second - start;
    }
    return heddle::apply(Arange{start, step, static_cast<std::int64_t>(size), dtype}, {});
  });
}

Array arange(double start, double stop, double step, std::source_location where) {
  return arange(start, stop, step, DType::f32, where);
}
Array arange(double start, double stop, DType dtype, std::source_location where) {
  return arange(start, stop, 1.0, dtype, where);
}
Array arange(double start, double stop, std::source_location where) {
  return arange(start, stop, 1.0, DType::f32, where);
}
Array arange(double stop, DType dtype, std::source_location where) {
  return arange(0.0, stop, 1.0, dtype, where);
}
Array arange(double stop, std::source_location where) {
  return arange(0.0, stop, 1.0, DType::f32, where);
}

Array linspace(double start, double stop, int num, DType dtype, std::source_location where) {
  return within("linspace", where, [&]() -> Array {
    require(std::isfinite(start) && std::isfinite(stop), ErrorCode::invalid_argument,
            "linspace: from {} to {}; they must be finite", start, stop);
    require(num >= 0, ErrorCode::invalid_argument, "linspace: of {} numbers", num);
    const double step = num > 1 ? (stop - start) / (num - 1) : 0.0;
    require(std::isfinite(step), ErrorCode::invalid_argument,
            "linspace: from {} to {} is further than f64 can say", start, stop);
    const Array numbers = heddle::apply(Arange{start, step, num, DType::f64}, {});
    if (num < 2 || start + step * (num - 1) == stop) return astype(numbers, dtype);
    // The end is exact, whatever the rounding of the step.
    const Array end = heddle::apply(Arange{stop, 0.0, 1, DType::f64}, {});
    return astype(concatenate({slice(numbers, {0}, {num - 1}), end}), dtype);
  });
}

Array full(const Shape& shape, const Arg& value) {
  return within("full", value, [&]() -> Array { return broadcast_to(value, shape); });
}

Array full(const Shape& shape, const Arg& value, DType dtype) {
  return within("full", value,
                [&]() -> Array { return broadcast_to(astype(value, dtype), shape); });
}

Array full_like(const Arg& a, const Arg& value) {
  return within("full_like", a, [&]() -> Array { return full(a.shape(), value, a.dtype()); });
}

Array full_like(const Arg& a, const Arg& value, DType dtype) {
  return within("full_like", a, [&]() -> Array { return full(a.shape(), value, dtype); });
}

Array zeros(const Shape& shape, DType dtype, std::source_location where) {
  return within("zeros", where, [&]() -> Array { return full(shape, Array(0.0f), dtype); });
}

Array ones(const Shape& shape, DType dtype, std::source_location where) {
  return within("ones", where, [&]() -> Array { return full(shape, Array(1.0f), dtype); });
}

Array zeros_like(const Arg& a) {
  return within("zeros_like", a, [&]() -> Array { return zeros(a.shape(), a.dtype()); });
}

Array ones_like(const Arg& a) {
  return within("ones_like", a, [&]() -> Array { return ones(a.shape(), a.dtype()); });
}

namespace {

/// bool [n, m]: `compare` of each column with the diagonal `k` of its row.
template <class Compare>
Array against_diagonal(std::int64_t n, std::int64_t m, std::int64_t k, const Compare& compare) {
  require(n >= 0 && m >= 0, ErrorCode::invalid_argument, "[{}, {}] is no shape", n, m);
  const auto first = static_cast<double>(k), rows = static_cast<double>(n);
  const Array row = reshape(arange(first, first + rows, DType::i64), {n, 1});
  return compare(arange(static_cast<double>(m), DType::i64), row);
}
Array matrices_part(const char* function, const Arg& a, int k, bool lower) {
  return within(function, a, [&]() -> Array {
    require(a.ndim() >= 2, ErrorCode::invalid_argument, "{}: {} is no matrix", function, a.spec());
    const std::int64_t n = a.shape(-2), m = a.shape(-1);
    const auto kept = [&](const Array& column, const Array& row) {
      return lower ? less_equal(column, row) : greater_equal(column, row);
    };
    return where(against_diagonal(n, m, k, kept), a, zeros({}, a.dtype()));
  });
}

}  // namespace

Array eye(int n, int m, int k, DType dtype, std::source_location where) {
  return within("eye", where, [&]() -> Array {
    return astype(against_diagonal(n, m, k, [](const Array& x, const Array& y) { return x == y; }),
                  dtype);
  });
}
Array eye(int n, DType dtype, std::source_location where) {
  return eye(n, n, 0, dtype, where);
}
Array identity(int n, DType dtype, std::source_location where) {
  return within("identity", where, [&]() -> Array { return eye(n, n, 0, dtype); });
}

Array tri(int n, int m, int k, DType dtype, std::source_location where) {
  return within("tri", where, [&]() -> Array {
    return astype(against_diagonal(n, m, k, [](const Array& x, const Array& y) { return x <= y; }),
                  dtype);
  });
}
Array tri(int n, DType dtype, std::source_location where) {
  return tri(n, n, 0, dtype, where);
}
Array tril(const Arg& a, int k) {
  return matrices_part("tril", a, k, true);
}
Array triu(const Arg& a, int k) {
  return matrices_part("triu", a, k, false);
}

// ---- Shape

namespace {

/// `shape` with its extent of -1, if there is one, such that it has `count` elements.
Shape resolved(const Shape& shape, std::int64_t count, const char* function,
               const TensorSpec& spec) {
  Shape full = shape;
  const auto open = std::find(full.begin(), full.end(), -1);
  if (open == full.end()) return full;

  *open = 1;
  const bool once = std::find(open + 1, full.end(), -1) == full.end();
  require(once, ErrorCode::invalid_argument, "{}: {} leaves more than one extent open", function,
          shape);
  const std::int64_t others = elements(full);
  require(others > 0 && count % others == 0, ErrorCode::invalid_argument,
          "{}: {} has {} elements there, of which no extent of {} can be found", function, spec,
          count, shape);
  *open = count / others;
  return full;
}

}  // namespace

Array reshape(const Arg& a, const Shape& shape) {
  return within("reshape", a, [&]() -> Array {
    const Shape full = resolved(shape, a.size(), "reshape", a.spec());
    if (full == a.shape()) return a;
    return heddle::apply(Reshape{full}, {a});
  });
}

Array flatten(const Arg& a, int start_axis, int end_axis) {
  return within("flatten", a, [&]() -> Array {
    if (a.ndim() == 0) return reshape(a, {1});
    const std::size_t first = normalize_axis(start_axis, a.ndim(), "flatten");
    const std::size_t last = normalize_axis(end_axis, a.ndim(), "flatten");
    require(first <= last, ErrorCode::invalid_argument,
            "flatten: start axis {} lies behind end axis {} of {}", start_axis, end_axis, a.spec());
    Shape shape;
    std::int64_t joined = 1;
    for (std::size_t i = 0; i < a.ndim(); ++i) {
      if (i < first || i > last) {
        shape.push_back(a.shape()[i]);
      } else {
        joined *= a.shape()[i];
        if (i == last) shape.push_back(joined);
      }
    }
    return reshape(a, shape);
  });
}

Array unflatten(const Arg& a, int axis, const Shape& shape) {
  return within("unflatten", a, [&]() -> Array {
    const std::size_t at = normalize_axis(axis, a.ndim(), "unflatten");
    require(!shape.empty(), ErrorCode::invalid_argument, "unflatten: into a shape without axes");
    const Shape part = resolved(shape, a.shape()[at], "unflatten", a.spec());
    require(elements(part) == a.shape()[at], ErrorCode::invalid_argument,
            "unflatten: {} has not as many elements as axis {} of {}", shape, axis, a.spec());
    Shape full;
    for (std::size_t i = 0; i < at; ++i) full.push_back(a.shape()[i]);
    for (const std::int64_t extent : part) full.push_back(extent);
    for (std::size_t i = at + 1; i < a.ndim(); ++i) full.push_back(a.shape()[i]);
    return reshape(a, full);
  });
}

Array transpose(const Arg& a) {
  return within("transpose", a, [&]() -> Array {
    Dims axes = iota(a.ndim());
    std::reverse(axes.begin(), axes.end());
    return transpose(a, axes);
  });
}

Array transpose(const Arg& a, const Dims& axes) {
  return within("transpose", a, [&]() -> Array {
    Dims positive;
    for (const std::int64_t axis : axes) {
      positive.push_back(static_cast<std::int64_t>(normalize_axis(axis, a.ndim(), "transpose")));
    }
    if (positive == iota(a.ndim())) return a;
    return heddle::apply(Transpose{positive}, {a});
  });
}

Array swapaxes(const Arg& a, int axis1, int axis2) {
  return within("swapaxes", a, [&]() -> Array {
    Dims axes = iota(a.ndim());
    std::swap(axes[normalize_axis(axis1, a.ndim(), "swapaxes")],
              axes[normalize_axis(axis2, a.ndim(), "swapaxes")]);
    return transpose(a, axes);
  });
}

Array moveaxis(const Arg& a, int source, int destination) {
  return within("moveaxis", a, [&]() -> Array {
    const std::size_t from = normalize_axis(source, a.ndim(), "moveaxis");
    const std::size_t to = normalize_axis(destination, a.ndim(), "moveaxis");
    Dims axes = iota(a.ndim());
    axes.erase(from);
    axes.insert(to, static_cast<std::int64_t>(from));
    return transpose(a, axes);
  });
}

Array moveaxis(const Arg& a, const Dims& source, const Dims& destination) {
  return within("moveaxis", a, [&]() -> Array {
    require(source.size() == destination.size(), ErrorCode::invalid_argument,
            "moveaxis: {} axes {} cannot go to {} places {}", source.size(), source,
            destination.size(), destination);
    sorted_axes(source, a.ndim(), "moveaxis");
    sorted_axes(destination, a.ndim(), "moveaxis");
    Dims order(a.ndim(), -1);
    Dims left = iota(a.ndim());
    for (std::size_t i = 0; i < source.size(); ++i) {
      const auto from = static_cast<std::int64_t>(normalize_axis(source[i], a.ndim(), "moveaxis"));
      order[normalize_axis(destination[i], a.ndim(), "moveaxis")] = from;
      left.erase(
          static_cast<std::size_t>(std::find(left.begin(), left.end(), from) - left.begin()));
    }
    std::size_t next = 0;
    for (std::int64_t& axis : order) {
      if (axis < 0) axis = left[next++];
    }
    return transpose(a, order);
  });
}

Array squeeze(const Arg& a) {
  return within("squeeze", a, [&]() -> Array {
    Dims axes;
    for (std::size_t i = 0; i < a.ndim(); ++i) {
      if (a.shape()[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
    }
    return squeeze(a, axes);
  });
}

Array squeeze(const Arg& a, const Dims& axes) {
  return within("squeeze", a, [&]() -> Array {
    if (axes.empty()) return a;
    return heddle::apply(Squeeze{sorted_axes(axes, a.ndim(), "squeeze")}, {a});
  });
}

Array squeeze(const Arg& a, int axis) {
  return squeeze(a, Dims{axis});
}

Array expand_dims(const Arg& a, const Dims& axes) {
  return within("expand_dims", a, [&]() -> Array {
    if (axes.empty()) return a;
    return heddle::apply(ExpandDims{sorted_axes(axes, a.ndim() + axes.size(), "expand_dims")}, {a});
  });
}

Array expand_dims(const Arg& a, int axis) {
  return expand_dims(a, Dims{axis});
}

Array broadcast_to(const Arg& a, const Shape& shape) {
  return within("broadcast_to", a, [&]() -> Array {
    if (shape == a.shape()) return a;
    return heddle::apply(Broadcast{shape}, {a});
  });
}

// ---- Types

Array astype(const Arg& a, DType dtype) {
  return within("astype", a, [&]() -> Array {
    if (a.dtype() == dtype) return a;
    return heddle::apply(Cast{dtype}, {a});
  });
}

Array dequantize(const Arg& a) {
  return within("dequantize", a, [&]() -> Array {
    require(is_block(a.dtype()), ErrorCode::invalid_argument,
            "dequantize: {} is not block-quantised", a.spec());
    return heddle::apply(Cast{DType::f32}, {a});
  });
}

}  // namespace heddle
