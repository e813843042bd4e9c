// Parts of arrays, and arrays put together.
#include <algorithm>
#include <numeric>

#include "array/ops_common.h"

namespace heddle {

// ---- At least so many axes

namespace {

template <class F>
std::vector<Array> each(const char* function, const std::vector<Array>& arrays,
                        const std::source_location& where, const F& f) {
  return within(function, where, [&]() -> std::vector<Array> {
    std::vector<Array> results;
    results.reserve(arrays.size());
    for (const Array& a : arrays) results.push_back(f(a));
    return results;
  });
}

}  // namespace

Array atleast_1d(const Arg& a) {
  return within("atleast_1d", a,
                [&]() -> Array { return a.ndim() == 0 ? reshape(a, {1}) : a.array(); });
}
Array atleast_2d(const Arg& a) {
  return within("atleast_2d", a, [&]() -> Array {
    return a.ndim() < 2 ? reshape(a, {1, a.size()}) : a.array();
  });
}
Array atleast_3d(const Arg& a) {
  return within("atleast_3d", a, [&]() -> Array {
    if (a.ndim() < 2) return reshape(a, {1, a.size(), 1});
    return a.ndim() == 2 ? expand_dims(a, 2) : a.array();
  });
}
std::vector<Array> atleast_1d(const std::vector<Array>& arrays, std::source_location where) {
  return each("atleast_1d", arrays, where, [](const Array& a) { return atleast_1d(a); });
}
std::vector<Array> atleast_2d(const std::vector<Array>& arrays, std::source_location where) {
  return each("atleast_2d", arrays, where, [](const Array& a) { return atleast_2d(a); });
}
std::vector<Array> atleast_3d(const std::vector<Array>& arrays, std::source_location where) {
  return each("atleast_3d", arrays, where, [](const Array& a) { return atleast_3d(a); });
}

// ---- Several shapes in one

std::vector<Array> broadcast_arrays(const std::vector<Array>& inputs, std::source_location where) {
  return within("broadcast_arrays", where, [&]() -> std::vector<Array> {
    Shape shape;
    for (const Array& a : inputs) shape = broadcast_shapes(shape, a.shape());
    std::vector<Array> results;
    results.reserve(inputs.size());
    for (const Array& a : inputs) results.push_back(broadcast_to(a, shape));
    return results;
  });
}

std::vector<Array> meshgrid(const std::vector<Array>& arrays, bool sparse,
                            const std::string& indexing, std::source_location where) {
  return within("meshgrid", where, [&]() -> std::vector<Array> {
    require(indexing == "xy" || indexing == "ij", ErrorCode::invalid_argument,
            "meshgrid: indexing \"{}\"; it must be \"xy\" or \"ij\"", indexing);
    std::vector<Array> grid;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      require(arrays[i].ndim() <= 1, ErrorCode::invalid_argument,
              "meshgrid: {} is no vector of coordinates", arrays[i].spec());
      const bool swapped = indexing == "xy" && arrays.size() > 1 && i < 2;
      Shape shape(arrays.size(), 1);
      shape[swapped ? 1 - i : i] = arrays[i].size();
      grid.push_back(reshape(arrays[i], shape));
    }
    return sparse ? grid : broadcast_arrays(grid);
  });
}

Array number_of_elements(const Arg& a, const Dims& axes, bool inverted, DType dtype) {
  return within("number_of_elements", a, [&]() -> Array {
    double count = 1;
    for (const std::int64_t axis : sorted_axes(axes, a.ndim(), "number_of_elements")) {
      count *= static_cast<double>(a.shape()[static_cast<std::size_t>(axis)]);
    }
    const double value = inverted ? 1.0 / count : count;
    return astype(Array::from_bytes({DType::f64, {}}, std::as_bytes(std::span(&value, 1))), dtype);
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

std::vector<Array> unstack(const Arg& a, int axis) {
  return within("unstack", a, [&]() -> std::vector<Array> {
    const std::size_t at = normalize_axis(axis, a.ndim(), "unstack");
    std::vector<Array> parts;
    Dims start(a.ndim(), 0), stop = a.shape();
    for (std::int64_t i = 0; i < a.shape()[at]; ++i) {
      start[at] = i, stop[at] = i + 1;
      parts.push_back(squeeze(slice(a, start, stop), Dims{static_cast<std::int64_t>(at)}));
    }
    return parts;
  });
}

Array diagonal(const Arg& a, int offset, int axis1, int axis2) {
  return within("diagonal", a, [&]() -> Array {
    require(a.ndim() >= 2, ErrorCode::invalid_argument, "diagonal: {} is no matrix", a.spec());
    const std::size_t rows = normalize_axis(axis1, a.ndim(), "diagonal");
    const std::size_t columns = normalize_axis(axis2, a.ndim(), "diagonal");
    require(rows != columns, ErrorCode::invalid_argument,
            "diagonal: of axes {} and {} of {}, which are one", axis1, axis2, a.spec());
    const std::int64_t above = std::max<std::int64_t>(offset, 0);
    const std::int64_t below = std::max<std::int64_t>(-std::int64_t{offset}, 0);
    const std::int64_t length =
        std::max<std::int64_t>(std::min(a.shape()[rows] - below, a.shape()[columns] - above), 0);
    const Dims along = contiguous_strides(a.shape());
    Shape shape;
    Dims strides;
    for (std::size_t i = 0; i < a.ndim(); ++i) {
      if (i == rows || i == columns) continue;
      shape.push_back(a.shape()[i]);
      strides.push_back(along[i]);
    }
    shape.push_back(length);
    strides.push_back(along[rows] + along[columns]);
    const std::int64_t first = below * along[rows] + above * along[columns];
    return as_strided(a, shape, strides, elements(shape) == 0 ? 0 : first);
  });
}

Array diag(const Arg& a, int k) {
  return within("diag", a, [&]() -> Array {
    require(a.ndim() == 1 || a.ndim() == 2, ErrorCode::invalid_argument,
            "diag: {} is neither a vector nor a matrix", a.spec());
    if (a.ndim() == 2) return diagonal(a, k);
    const std::int64_t shift = std::abs(std::int64_t{k}), n = a.size() + shift;
    const std::int64_t first = k < 0 ? shift * n : shift;
    const Array flat = slice_update(zeros({elements({n, n})}, a.dtype()), a, {first},
                                    {first + a.size() * (n + 1)}, {n + 1});
    return reshape(flat, {n, n});
  });
}

Array trace(const Arg& a, int offset, int axis1, int axis2, DType dtype) {
  return within("trace", a, [&]() -> Array {
    return sum(astype(diagonal(a, offset, axis1, axis2), dtype), -1);
  });
}
Array trace(const Arg& a, int offset, int axis1, int axis2) {
  return trace(a, offset, axis1, axis2, a.dtype());
}

// ---- Data movement

Array contiguous(const Arg& a) {
  return within("contiguous", a, [&]() -> Array { return heddle::apply(Contiguous{}, {a}); });
}

Array contiguous(const Arg& a, bool) {
  return contiguous(a);
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

Array repeat(const Arg& a, int repeats) {
  return within("repeat", a, [&]() -> Array { return repeat(flatten(a), repeats, 0); });
}

namespace {

/// `a` behind itself `times` times along `axis`.
Array repeat_whole(const Array& a, std::int64_t times, std::size_t axis) {
  Shape result = a.shape();
  const bool overflows = __builtin_mul_overflow(result[axis], times, &result[axis]);
  require(!overflows, ErrorCode::invalid_argument, "{} times {} overflows", times, a.spec());
  const std::int64_t before = elements(Shape(std::span(result.begin(), axis)));
  const std::int64_t behind = elements(Shape(std::span(a.shape().begin() + axis, a.shape().end())));
  const Array flat = reshape(a, {before, 1, behind});
  return reshape(broadcast_to(flat, {before, times, behind}), result);
}

}  // namespace

Array tile(const Arg& a, const Dims& reps) {
  return within("tile", a, [&]() -> Array {
    Shape shape = a.shape();
    while (shape.size() < reps.size()) shape.insert(0, 1);
    Array result = reshape(a, shape);
    for (std::size_t i = 0; i < reps.size(); ++i) {
      require(reps[i] >= 0, ErrorCode::invalid_argument, "tile: {} times along axis {}", reps[i],
              i);
      const std::size_t axis = shape.size() - reps.size() + i;
      if (reps[i] != 1) result = repeat_whole(result, reps[i], axis);
    }
    return result;
  });
}

// ---- Roll

namespace {

/// `a` moved by `shift` along `axis`: its end, then its beginning.
Array roll_axis(const Array& a, std::int64_t shift, std::size_t axis) {
  const std::int64_t extent = a.shape()[axis];
  const std::int64_t by = extent == 0 ? 0 : ((shift % extent) + extent) % extent;
  if (by == 0) return a;
  Dims start(a.ndim(), 0), stop = a.shape();
  start[axis] = extent - by;
  const Array end = slice(a, start, stop);
  start[axis] = 0, stop[axis] = extent - by;
  return concatenate({end, slice(a, start, stop)}, static_cast<int>(axis));
}

std::int64_t total_of(const Dims& shift) {
  std::int64_t total = 0;
  for (const std::int64_t one : shift) {
    const bool overflows = __builtin_add_overflow(total, one, &total);
    require(!overflows, ErrorCode::invalid_argument, "roll: shifts {} overflow", shift);
  }
  return total;
}

}  // namespace

Array roll(const Arg& a, const Dims& shift, const Dims& axes) {
  return within("roll", a, [&]() -> Array {
    require(shift.size() == axes.size() || shift.size() == 1, ErrorCode::invalid_argument,
            "roll: {} shifts {} for {} axes {}", shift.size(), shift, axes.size(), axes);
    Array result = a;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t at = normalize_axis(axes[i], a.ndim(), "roll");
      result = roll_axis(result, shift.size() == 1 ? shift[0] : shift[i], at);
    }
    return result;
  });
}
Array roll(const Arg& a, int shift, const Dims& axes) {
  return roll(a, Dims{shift}, axes);
}
Array roll(const Arg& a, const Dims& shift, int axis) {
  return within("roll", a, [&]() -> Array {
    normalize_axis(axis, a.ndim(), "roll");
    return roll(a, Dims{total_of(shift)}, Dims{axis});
  });
}
Array roll(const Arg& a, int shift, int axis) {
  return roll(a, Dims{shift}, Dims{axis});
}
Array roll(const Arg& a, const Dims& shift) {
  return within("roll", a, [&]() -> Array {
    const Array flat = flatten(a);
    return reshape(roll(flat, Dims{total_of(shift)}, Dims{0}), a.shape());
  });
}
Array roll(const Arg& a, int shift) {
  return roll(a, Dims{shift});
}

}  // namespace heddle
