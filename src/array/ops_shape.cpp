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

Array arange(double stop, DType dtype, std::source_location where) {
  return arange(0.0, stop, 1.0, dtype, where);
}

Array full(const Shape& shape, const Arg& value) {
  return within("full", value, [&]() -> Array { return broadcast_to(value, shape); });
}

Array full(const Shape& shape, const Arg& value, DType dtype) {
  return within("full", value,
                [&]() -> Array { return broadcast_to(astype(value, dtype), shape); });
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

// ---- Shape

Array reshape(const Arg& a, const Shape& shape) {
  return within("reshape", a, [&]() -> Array {
    Shape full = shape;
    const auto open = std::find(full.begin(), full.end(), -1);
    if (open != full.end()) {
      *open = 1;
      const bool once = std::find(open + 1, full.end(), -1) == full.end();
      require(once, ErrorCode::invalid_argument, "reshape: {} leaves more than one extent open",
              shape);
      const std::int64_t others = elements(full);
      require(others > 0 && a.size() % others == 0, ErrorCode::invalid_argument,
              "reshape: {} has {} elements, of which no extent of {} can be found", a.spec(),
              a.size(), shape);
      *open = a.size() / others;
    }
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

// ---- Parts

std::vector<Array> split(const Arg& a, const std::vector<std::int64_t>& indices, int axis) {
  return within("split", a, [&]() -> std::vector<Array> {
    const std::size_t at = normalize_axis(axis, a.ndim(), "split");
    std::vector<Array> parts;
    Dims start(a.ndim(), 0);
    Dims stop = a.shape();
    for (std::size_t i = 0; i <= indices.size(); ++i) {
      start[at] = i == 0 ? 0 : indices[i - 1];
      stop[at] = i == indices.size() ? a.shape()[at] : indices[i];
      parts.push_back(slice(a, start, stop));
    }
    return parts;
  });
}

std::vector<Array> split(const Arg& a, int num_splits, int axis) {
  return within("split", a, [&]() -> std::vector<Array> {
    const std::int64_t extent = a.shape()[normalize_axis(axis, a.ndim(), "split")];
    require(num_splits > 0 && extent % num_splits == 0, ErrorCode::invalid_argument,
            "split: axis {} of {} does not divide into {} equal parts", axis, a.spec(), num_splits);
    std::vector<std::int64_t> indices;
    for (int i = 1; i < num_splits; ++i) indices.push_back(extent / num_splits * i);
    return split(a, indices, axis);
  });
}

// ---- Data movement

Array contiguous(const Arg& a) {
  return within("contiguous", a, [&]() -> Array { return heddle::apply(Contiguous{}, {a}); });
}

Array copy(const Arg& a) {
  return within("copy", a, [&]() -> Array { return heddle::apply(Contiguous{}, {a}); });
}

std::vector<Array> depends(const std::vector<Array>& inputs, const std::vector<Array>& dependencies,
                           std::source_location where) {
  return within("depends", where, [&]() -> std::vector<Array> {
    require(!inputs.empty(), ErrorCode::invalid_argument, "depends: there are no inputs");
    std::vector<Array> all = inputs;
    all.insert(all.end(), dependencies.begin(), dependencies.end());
    return apply_multi(Depends{static_cast<std::int64_t>(inputs.size())}, std::move(all));
  });
}

Array concatenate(const std::vector<Array>& arrays, int axis, std::source_location where) {
  return within("concatenate", where, [&]() -> Array {
    require(!arrays.empty(), ErrorCode::invalid_argument, "concatenate: there are no arrays");
    const std::size_t at = normalize_axis(axis, arrays.front().ndim(), "concatenate");

    DType dtype = arrays.front().dtype();
    for (const Array& a : arrays) {
      if (a.dtype() != dtype) dtype = promote_types(dtype, a.dtype());
    }
    std::vector<Array> inputs;
    inputs.reserve(arrays.size());
    for (const Array& a : arrays) inputs.push_back(astype(a, dtype));
    if (inputs.size() == 1) return inputs.front();
    return heddle::apply(Concatenate{static_cast<std::int64_t>(at)}, std::move(inputs));
  });
}

Array stack(const std::vector<Array>& arrays, int axis, std::source_location where) {
  return within("stack", where, [&]() -> Array {
    require(!arrays.empty(), ErrorCode::invalid_argument, "stack: there are no arrays");
    std::vector<Array> expanded;
    expanded.reserve(arrays.size());
    for (const Array& a : arrays) {
      require(a.shape() == arrays.front().shape(), ErrorCode::invalid_argument,
              "stack: {} and {} differ in shape", arrays.front().spec(), a.spec());
      expanded.push_back(expand_dims(a, axis));
    }
    const std::size_t at = normalize_axis(axis, arrays.front().ndim() + 1, "stack");
    return concatenate(expanded, static_cast<int>(at));
  });
}

Array repeat(const Arg& a, int repeats, int axis) {
  return within("repeat", a, [&]() -> Array {
    const std::size_t at = normalize_axis(axis, a.ndim(), "repeat");
    require(repeats >= 0, ErrorCode::invalid_argument, "repeat: {} times", repeats);
    Shape result = a.shape();
    const bool overflows = __builtin_mul_overflow(result[at], std::int64_t{repeats}, &result[at]);
    require(!overflows, ErrorCode::invalid_argument, "repeat: {} times {} overflows", repeats,
            a.spec());

    if (a.ndim() == kMaxRank) {  // no room for one more axis
      const std::int64_t before = elements(Shape(std::span(result.begin(), at)));
      const std::int64_t after = elements(Shape(std::span(result.begin() + at + 1, result.end())));
      return reshape(repeat(reshape(a, {before, a.shape()[at], after}), repeats, 1), result);
    }
    Shape repeated = a.shape();
    repeated.insert(at + 1, repeats);
    return reshape(broadcast_to(expand_dims(a, static_cast<int>(at) + 1), repeated), result);
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
