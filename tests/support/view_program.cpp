#include "support/view_program.h"

#include <algorithm>
#include <numeric>

#include "array/node.h"
#include "support/reference.h"

namespace heddle::test {

namespace {

constexpr std::size_t kKept = 4;
constexpr std::int64_t kMostElements = 3000;
constexpr DType kTypes[] = {DType::u8, DType::u16, DType::u32, DType::u64};

/// The value of `shape` whose element at an index is x's element number source(index).
template <class F>
Known gathered(Array array, const Known& x, const Shape& shape, const F& source) {
  const std::size_t item = item_size(x.spec.dtype);
  Known result{std::move(array), {x.spec.dtype, shape}, {}};
  for_each_index(shape, [&](const Dims& index) {
    const auto from = x.bytes.begin() + static_cast<std::ptrdiff_t>(source(index) * item);
    result.bytes.insert(result.bytes.end(), from, from + static_cast<std::ptrdiff_t>(item));
  });
  return result;
}

/// The same elements in the same order.
Known renamed(Array array, const Known& x, const Shape& shape) {
  return {std::move(array), {x.spec.dtype, shape}, x.bytes};
}

/// What range(n)[start:stop:step] lists in Python.
std::vector<std::int64_t> python_range(std::int64_t n, std::int64_t start, std::int64_t stop,
                                       std::int64_t step) {
  if (start < 0) start += n;
  if (stop < 0) stop += n;
  start = step > 0 ? std::max<std::int64_t>(start, 0) : std::min(start, n - 1);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (i >= 0 && i < n) indices.push_back(i);
  }
  return indices;
}

}  // namespace

std::int64_t ViewProgram::between(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
}

ViewProgram::Base ViewProgram::make_base() {
  Base base{{kTypes[between(0, 3)], {}}, {}};
  for (std::int64_t rank = between(0, 4); rank-- > 0;) base.spec.shape.push_back(between(1, 6));
  base.bytes.resize(byte_size(base.spec));
  for (std::byte& byte : base.bytes) byte = static_cast<std::byte>(between(0, 255));
  return base;
}

void ViewProgram::add(Array array, Base base) {
  text_ += "base " + to_string(base.spec) + "\n";
  values_.push_back({std::move(array), std::move(base.spec), std::move(base.bytes)});
}

void ViewProgram::grow(int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto from = static_cast<std::size_t>(between(0, std::ssize(values_) - 1));
    Known next = step(values_[from]);
    text_ += std::to_string(from) + " -> " + std::string(name(next.array.node()->op())) + " " +
             to_string(next.spec) + "\n";
    if (values_.size() < kKept) {
      values_.push_back(std::move(next));
    } else {
      values_[static_cast<std::size_t>(between(0, kKept - 1))] = std::move(next);
    }
  }
}

Known ViewProgram::step(const Known& x) {
  switch (between(0, 12)) {
    case 0:
    case 1:
      return sliced(x);
    case 2:
      return transposed(x);
    case 3:
      return reshaped(x);
    case 4:
      return broadcast(x);
    case 5:
      return squeezed(x);
    case 6:
      return expanded(x);
    case 7:
      return strided(x);
    case 8:
      return reinterpreted(x);
    case 9:
    case 10:
      return updated(x);
    case 11:
      return renamed(contiguous(x.array), x, x.spec.shape);
    default:
      return flipped_bits(x);
  }
}

Known ViewProgram::sliced(const Known& x) {
  Dims start, stop, step;
  std::vector<std::vector<std::int64_t>> picked;
  Shape shape;
  for (const std::int64_t extent : x.spec.shape) {
    const std::int64_t steps[] = {1, 1, -1, -1, 2, -2, 3, -7};
    step.push_back(steps[between(0, 7)]);
    const bool whole = between(0, 2) == 0;
    const bool backwards = step.back() < 0;
    start.push_back(whole ? (backwards ? extent : 0) : between(-extent - 2, extent + 2));
    stop.push_back(whole ? (backwards ? -extent - 1 : extent) : between(-extent - 2, extent + 2));
    picked.push_back(python_range(extent, start.back(), stop.back(), step.back()));
    if (picked.back().empty() && between(0, 9) > 0) {  // few programs of nothing
      start[start.size() - 1] = backwards ? extent : 0;
      stop[stop.size() - 1] = backwards ? -extent - 1 : extent;
      picked.back() = python_range(extent, start.back(), stop.back(), step.back());
    }
    shape.push_back(std::ssize(picked.back()));
  }
  return gathered(slice(x.array, start, stop, step), x, shape, [&](Dims index) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] = picked[i][static_cast<std::size_t>(index[i])];
    }
    return flat_index(x.spec.shape, index);
  });
}

Known ViewProgram::transposed(const Known& x) {
  Dims axes(x.spec.shape.size(), 0);
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random_);
  Shape shape;
  for (const std::int64_t axis : axes) {
    shape.push_back(x.spec.shape[static_cast<std::size_t>(axis)]);
  }
  return gathered(transpose(x.array, axes), x, shape, [&](const Dims& index) {
    Dims from = index;
    for (std::size_t i = 0; i < axes.size(); ++i)
      from[static_cast<std::size_t>(axes[i])] = index[i];
    return flat_index(x.spec.shape, from);
  });
}

Known ViewProgram::reshaped(const Known& x) {
  std::int64_t left = elements(x.spec.shape);
  Shape shape;
  if (left == 0) return renamed(reshape(x.array, {0, 3}), x, {0, 3});
  for (std::int64_t factor = 2; left > 1 && shape.size() < 4;) {
    if (left % factor != 0) {
      ++factor;
      continue;
    }
    const std::int64_t extent =
        between(0, 1) && left % (factor * factor) == 0 ? factor * factor : factor;
    shape.insert(static_cast<std::size_t>(between(0, std::ssize(shape))), extent);
    left /= extent;
  }
  if (left > 1 || between(0, 3) == 0) {
    shape.insert(static_cast<std::size_t>(between(0, std::ssize(shape))), left);
  }
  return renamed(reshape(x.array, shape), x, shape);
}

Known ViewProgram::broadcast(const Known& x) {
  Shape shape = x.spec.shape;
  for (std::int64_t& extent : shape) {
    if (extent == 1 && elements(shape) < kMostElements / 3)
      extent = between(0, 20) ? between(1, 3) : 0;
  }
  if (shape.size() < 6 && elements(shape) < kMostElements / 3) shape.insert(0, between(1, 3));
  return gathered(broadcast_to(x.array, shape), x, shape,
                  [&](const Dims& index) { return broadcast_index(x.spec.shape, index); });
}

Known ViewProgram::squeezed(const Known& x) {
  Dims axes;
  Shape shape;
  for (std::size_t i = 0; i < x.spec.shape.size(); ++i) {
    if (x.spec.shape[i] == 1 && between(0, 2)) {
      axes.push_back(static_cast<std::int64_t>(i));
    } else {
      shape.push_back(x.spec.shape[i]);
    }
  }
  return renamed(squeeze(x.array, axes), x, shape);
}

Known ViewProgram::expanded(const Known& x) {
  if (x.spec.shape.size() >= 6) return squeezed(x);
  const std::int64_t axis = between(0, std::ssize(x.spec.shape));
  Shape shape = x.spec.shape;
  shape.insert(static_cast<std::size_t>(axis), 1);
  return renamed(expand_dims(x.array, static_cast<int>(axis)), x, shape);
}

Known ViewProgram::strided(const Known& x) {
  Shape shape;
  Dims strides;
  std::int64_t lowest = 0, highest = 0;
  const std::int64_t count = elements(x.spec.shape);
  for (std::int64_t rank = between(0, 3); rank-- > 0;) {
    const std::int64_t extent = between(1, 4), stride = between(-5, 5);
    const std::int64_t reach = (extent - 1) * stride;
    if (highest - lowest + std::abs(reach) >= count) continue;
    (reach < 0 ? lowest : highest) += reach;
    shape.push_back(extent);
    strides.push_back(stride);
  }
  if (count == 0) return renamed(as_strided(x.array, {0}, {-3}, 7), x, {0});
  const std::int64_t offset = between(-lowest, count - 1 - highest);
  return gathered(as_strided(x.array, shape, strides, offset), x, shape, [&](const Dims& index) {
    std::int64_t from = offset;
    for (std::size_t i = 0; i < index.size(); ++i) from += index[i] * strides[i];
    return static_cast<std::size_t>(from);
  });
}

Known ViewProgram::reinterpreted(const Known& x) {
  const DType to = kTypes[between(0, 3)];
  const auto from_size = static_cast<std::int64_t>(item_size(x.spec.dtype));
  const auto to_size = static_cast<std::int64_t>(item_size(to));
  Shape shape = x.spec.shape;
  if (from_size != to_size) {
    if (shape.empty() || shape.back() * from_size % to_size != 0) return transposed(x);
    shape[shape.size() - 1] = shape.back() * from_size / to_size;
  }
  if (elements(shape) > kMostElements) return sliced(x);
  return {view(x.array, to), {to, shape}, x.bytes};
}

/// Writes the first elements of each axis over others of the same array.
Known ViewProgram::updated(const Known& x) {
  const Shape& extents = x.spec.shape;
  Dims start, stop, step, length;
  for (const std::int64_t extent : extents) {
    const std::int64_t n = extent == 0 ? 0 : between(between(0, 9) ? 1 : 0, extent);
    std::int64_t stride = n < 2 ? 1 : between(1, (extent - 1) / (n - 1));
    const std::int64_t reach = std::max<std::int64_t>(n - 1, 0) * stride;
    std::int64_t first = n == 0 ? 0 : between(0, extent - 1 - reach);
    if (between(0, 1)) first += reach, stride = -stride;
    start.push_back(first);
    // Just beyond the last element; before the first one, what Python takes for that.
    const std::int64_t end = first + (n - 1) * stride + (stride > 0 ? 1 : -1);
    stop.push_back(n == 0 ? first : end < 0 ? -extent - 1 : end);
    step.push_back(stride);
    length.push_back(n);
  }
  const Array update = slice(x.array, Dims(extents.size(), 0), length);
  Known result = renamed(slice_update(x.array, update, start, stop, step), x, extents);
  const std::size_t item = item_size(x.spec.dtype);
  for_each_index(length, [&](const Dims& index) {
    Dims to = index;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = start[i] + index[i] * step[i];
    const std::byte* from = x.bytes.data() + flat_index(extents, index) * item;
    std::copy_n(from, item, result.bytes.data() + flat_index(extents, to) * item);
  });
  return result;
}

Known ViewProgram::flipped_bits(const Known& x) {
  constexpr std::byte kBits{0x55};
  Known result = renamed(bitwise_xor(x.array, astype(Array(0x55), x.spec.dtype)), x, x.spec.shape);
  for (std::size_t i = 0; i < result.bytes.size(); i += item_size(x.spec.dtype)) {
    result.bytes[i] ^= kBits;  // the lowest byte comes first
  }
  return result;
}

}  // namespace heddle::test
