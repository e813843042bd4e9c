#include "device/vulkan/kernels/walk.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint32_t kGroup = 128, kPerLane = 4;
constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostUint = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;  // groups stay below 2^32

bool merges(const Walk& walk, const Shape& shape, std::span<const Dims> strides, std::size_t axis) {
  if (walk.extents.empty()) return false;
  for (std::size_t n = 0; n < strides.size(); ++n) {
    if (walk.strides[n].back() != strides[n][axis] * shape[axis]) return false;
  }
  return true;
}

void merge_axes(Walk& walk, const Shape& shape, std::span<const Dims> strides) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const bool merged = merges(walk, shape, strides, axis);
    if (merged) {
      walk.extents[walk.extents.size() - 1] *= shape[axis];
    } else {
      walk.extents.push_back(shape[axis]);
    }
    for (std::size_t n = 0; n < strides.size(); ++n) {
      const std::int64_t stride = strides[n][axis];
      if (stride < 0) walk.first[n] += static_cast<std::uint64_t>((shape[axis] - 1) * -stride);
      if (merged) {
        walk.strides[n][walk.extents.size() - 1] = stride;
      } else {
        walk.strides[n].push_back(stride);
      }
    }
  }
}

void one_axis(Walk& walk, std::int64_t extent) {
  walk.extents = {extent};
  for (Dims& strides : walk.strides) strides = {0};
}

std::string refusal_of(const Walk& walk, std::string_view op, std::int64_t count,
                       std::size_t most_numbers) {
  const std::size_t rank = walk.extents.size();
  const std::size_t numbers = rank - 1 + rank * walk.strides.size();
  if (numbers > most_numbers) {
    return fmt::format(
        "{}: {} axes that do not merge, of {} operands; its shader has room for {} "
        "extents and strides, not {}",
        op, rank, walk.strides.size(), most_numbers, numbers);
  }
  if (count > kMostElements || (rank > 1 && count > kMostUint)) {
    return fmt::format("{}: {} elements along {} axes; at most {}", op, count, rank,
                       rank > 1 ? kMostUint : kMostElements);
  }
  for (const Dims& strides : walk.strides) {
    for (const std::int64_t stride : strides) {
      if (stride > kMostInt || -stride > kMostInt) {
        return fmt::format("{}: a stride of {} items; at most {}", op, stride, kMostInt);
      }
    }
  }
  for (std::size_t axis = 1; axis < rank; ++axis) {
    if (walk.extents[axis] > kMostInt) {
      return fmt::format("{}: an axis of {} items; at most {}", op, walk.extents[axis], kMostInt);
    }
  }
  return {};
}

}  // namespace

Walk make_walk(std::string_view op, const Shape& shape, std::span<const Dims> strides,
               std::size_t most_numbers) {
  Walk walk;
  walk.strides.resize(strides.size());
  walk.first.resize(strides.size(), 0);
  const std::int64_t count = elements(shape);
  const std::int64_t rows = shape.empty() ? 1 : shape[0];
  const std::int64_t per_row = rows == 0 ? 0 : count / rows;
  if (count > 0) merge_axes(walk, shape, strides);
  if (walk.extents.empty()) one_axis(walk, count);
  walk.refusal = refusal_of(walk, op, count, most_numbers);
  if (walk.refusal.empty() && (rows > kMostUint || per_row > kMostUint)) {
    walk.refusal = fmt::format("{}: {} rows of {} elements; at most {} of either", op, rows,
                               per_row, kMostUint);
  }
  walk.rows = static_cast<std::uint32_t>(rows);
  walk.per_row = static_cast<std::uint32_t>(per_row);
  return walk;
}

std::uint32_t Walk::rank() const {
  const bool dense = extents.size() == 1 &&
                     std::ranges::all_of(strides, [](const Dims& axes) { return axes[0] == 1; });
  return dense ? 0 : static_cast<std::uint32_t>(extents.size());
}

void Walk::share_items(std::uint32_t per_item) {
  if (std::int64_t{per_row} * per_item > kMostUint) {
    refusal = fmt::format("rows of {} blocks of {} elements; at most {} elements", per_row,
                          per_item, kMostUint);
  }
  per_row *= per_item;
}

void fill_axes(const Walk& walk, std::span<std::int32_t> axes) {
  std::size_t next = 0;
  for (std::size_t axis = 1; axis < walk.extents.size(); ++axis) {
    axes[next++] = static_cast<std::int32_t>(walk.extents[axis]);
  }
  for (const Dims& strides : walk.strides) {
    for (const std::int64_t stride : strides) axes[next++] = static_cast<std::int32_t>(stride);
  }
}

std::uint32_t walk_group(const Limits& limits) {
  return std::min(kGroup, limits.max_group_size);
}

std::uint32_t block_group(const Limits& limits) {
  return std::min(std::max(32u, limits.subgroup_size), limits.max_group_size);
}

std::string block_refusal(const PrepareArgs& args, DType dtype) {
  if (!is_block(dtype)) return {};
  if (dtype != DType::q8_0) {
    return fmt::format("{}: into rows of {}; of block types only q8_0 is written", name(args.op),
                       to_string(dtype));
  }
  const std::uint32_t bytes = block_group(args.limits) * 32 * sizeof(float);
  if (bytes > args.limits.shared_bytes) {
    return fmt::format("{}: q8_0 takes {} bytes of shared memory; the device has {}", name(args.op),
                       bytes, args.limits.shared_bytes);
  }
  return {};
}

Grid grid_of_rows(std::uint32_t rows, std::uint32_t per_row, std::uint32_t chunk) {
  if (rows == 0 || per_row == 0) return {0, 0, 0};
  const auto groups_for = [&](std::uint64_t n) { return (n * per_row + chunk - 1) / chunk; };
  // Steps of several rows, until what rounding up to whole groups wastes is small.
  constexpr std::uint64_t kMostRows = 16;
  std::uint64_t step = std::max<std::uint64_t>(1, chunk / per_row);
  while (step < kMostRows && groups_for(step) * chunk > step * per_row * 9 / 8) step *= 2;
  const std::uint64_t groups = groups_for(step);
  return {(rows + step - 1) / step * groups, static_cast<std::uint32_t>(step),
          static_cast<std::uint32_t>(groups)};
}

Grid grid_of(const Walk& walk, bool honours_extent, const Limits& limits) {
  return grid_of(walk, honours_extent, walk_group(limits));
}
Grid grid_of(const Walk& walk, bool honours_extent, std::uint32_t group) {
  const std::uint32_t chunk = group * kPerLane;
  if (honours_extent) return grid_of_rows(walk.rows, walk.per_row, chunk);
  return {(walk.count() + chunk - 1) / chunk, 0, 0};
}

std::string narrow_refusal(const PrepareArgs& args, DType dtype) {
  if (info(dtype).block_bytes % 4 == 0 || (args.limits.storage_8 && args.limits.storage_16))
    return {};
  return fmt::format("{}: the device stores no items of 8 and 16 bits, as {} has", name(args.op),
                     to_string(dtype));
}

Items movable_items(const OperandSpec& operand) {
  Items items = as_items(operand);
  if (!is_block(operand.spec.dtype)) return items;
  const std::size_t unit = items.bytes % 4 == 0 ? 4 : 2;
  const auto units = static_cast<std::int64_t>(items.bytes / unit);
  const std::size_t last = items.shape.size() - 1;
  items.shape[last] *= units;
  for (std::size_t i = 0; i < last; ++i) items.strides[i] *= units;
  items.bytes = unit;
  return items;
}

std::string item_refusal(const PrepareArgs& args, const Items& items) {
  if (items.bytes == 2) return narrow_refusal(args, DType::u16);
  return items.bytes == 1 ? narrow_refusal(args, DType::u8) : std::string();
}

std::string packed_refusal(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind == LayoutKind::strided) continue;
    return fmt::format("{}: operands must be strided, one is {}", name(args.op), to_string(input));
  }
  return {};
}

}  // namespace heddle::vulkan
