// Parts of arrays, other looks at their memory, and parts replaced.
#include <algorithm>

#include "array/ops_common.h"

namespace heddle {

// ---- Slices

namespace {

/// Bounds as the op Slice takes them.
struct Bounds {
  Dims start, stop, step;
};

/// Python's reading of start:stop:step for axis `i` of `extent` elements. Backwards, a stop of -1
/// then means just before the first.
void set_axis(Bounds& bounds, std::size_t i, std::int64_t start, std::int64_t stop,
              std::int64_t step, std::int64_t extent) {
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? extent : extent - 1;
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + extent : at, lowest, highest);
  };
  bounds.start[i] = bound(start);
  bounds.stop[i] =
      step > 0 ? std::max(bounds.start[i], bound(stop)) : std::min(bounds.start[i], bound(stop));
  bounds.step[i] = step;
}

Bounds python_bounds(const char* function, const Array& a, const Dims& start, const Dims& stop,
                     const Dims& strides) {
  const std::size_t rank = a.ndim();
  require(start.size() == rank && stop.size() == rank && strides.size() == rank,
          ErrorCode::invalid_argument, "{}: start {}, stop {} and strides {} do not fit {}",
          function, start, stop, strides, a.spec());
  Bounds bounds{Dims(rank, 0), Dims(rank, 0), Dims(rank, 1)};
  for (std::size_t i = 0; i < rank; ++i) {
    require(strides[i] != 0, ErrorCode::invalid_argument, "{}: the stride of axis {} is 0",
            function, i);
    set_axis(bounds, i, start[i], stop[i], strides[i], a.shape()[i]);
  }
  return bounds;
}

/// Whether the bounds take all of `a` as it is.
bool is_whole(const Bounds& bounds, const Array& a) {
  return bounds.start == Dims(a.ndim(), 0) && bounds.stop == a.shape() &&
         bounds.step == Dims(a.ndim(), 1);
}

}  // namespace

Array slice(const Arg& a, const Dims& start, const Dims& stop) {
  return slice(a, start, stop, Dims(start.size(), 1));
}

Array slice(const Arg& a, const Dims& start, const Dims& stop, const Dims& strides) {
  return within("slice", a, [&]() -> Array {
    const Bounds bounds = python_bounds("slice", a, start, stop, strides);
    if (is_whole(bounds, a)) return a;
    return heddle::apply(Slice{bounds.start, bounds.stop, bounds.step}, {a});
  });
}

Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop) {
  return slice_update(src, update, start, stop, Dims(start.size(), 1));
}

Array slice_update(const Arg& src, const Arg& update, const Dims& start, const Dims& stop,
                   const Dims& strides) {
  return within("slice_update", src, [&]() -> Array {
    const auto [from, to, step] = python_bounds("slice_update", src, start, stop, strides);

    require(!is_block(src.dtype()), ErrorCode::invalid_argument,
            "{} is of a block type; cast it to a plain type first", src.spec());
    const Shape shape = infer(Slice{from, to, step}, std::span(&src.spec(), 1)).front().shape;
    const Array part = broadcast_to(astype(update, src.dtype()), shape);
    return heddle::apply(SliceUpdate{from, to, step}, {src, part});
  });
}

// ---- Other looks at the same memory

Array as_strided(const Arg& a, const Shape& shape, const Dims& strides, std::int64_t offset) {
  return within("as_strided", a, [&]() -> Array {
    return heddle::apply(AsStrided{shape, strides, offset}, {a});
  });
}

Array view(const Arg& a, DType dtype) {
  return within("view", a, [&]() -> Array {
    if (a.dtype() == dtype) return a;
    return heddle::apply(Reinterpret{dtype}, {a});
  });
}

}  // namespace heddle
