// Operands that are walked together, element by element: shaders/walk.glsl's side in C++.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/strides.h"
#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

/// Axes of a shape merged wherever the strides of all operands allow, of one axis at least.
struct Walk {
  Dims extents;
  std::vector<Dims> strides;            // an operand each, in items
  std::vector<std::uint64_t> first;     // items from the operand's start to its first element
  std::uint32_t rows = 1, per_row = 1;  // of axis 0 as it was, which an extent may cut
  std::string refusal;                  // why shaders cannot walk so; empty if they can

  /// As shaders have it: merged axes, or 0 where all operands lie contiguously.
  std::uint32_t rank() const;
  /// For shaders in which several elements share an item's offsets: rows of elements.
  void share_items(std::uint32_t per_item);
  std::uint64_t count() const { return std::uint64_t{rows} * per_row; }
};

/// Walks `shape` with the strides of each operand. The merged extents and the strides must be at
/// most `most_numbers`, which is what the shader has room for.
Walk make_walk(std::string_view op, const Shape& shape, std::span<const Dims> strides,
               std::size_t most_numbers);

/// walk.glsl's Params, of a shader without EXTRA_PARAMS.
template <std::size_t kNumbers>
struct WalkParams {
  std::uint32_t rows = 0, per_row = 0;
  std::array<std::int32_t, kNumbers> axes{};
};

void fill_axes(const Walk& walk, std::span<std::int32_t> axes);

template <std::size_t kNumbers>
WalkParams<kNumbers> walk_params(const Walk& walk) {
  WalkParams<kNumbers> params{walk.rows, walk.per_row};
  fill_axes(walk, params.axes);
  return params;
}

/// Invocations of a walk's workgroup. Each computes four elements (walk.glsl's kPerLane).
std::uint32_t walk_group(const Limits& limits);

/// Invocations of a workgroup that makes blocks of q8_0 (q8_0.glsl): few, since the values of each
/// wait in shared memory.
std::uint32_t block_group(const Limits& limits);
/// Why blocks of the dtype, if it is a block type, cannot be made.
std::string block_refusal(const PrepareArgs& args, DType dtype);

/// Workgroups for rows of `per_row` elements, each for `chunk` elements; an extent makes them
/// fewer.
Grid grid_of_rows(std::uint32_t rows, std::uint32_t per_row, std::uint32_t chunk);
Grid grid_of(const Walk& walk, bool honours_extent, const Limits& limits);
Grid grid_of(const Walk& walk, bool honours_extent, std::uint32_t group);

/// Why items of the dtype cannot be stored, on devices without stores of 8 and 16 bits.
std::string narrow_refusal(const PrepareArgs& args, DType dtype);

/// An operand as items of 1, 2, 4 or 8 bytes: blocks, whose last stride is 1, in words or halves.
Items movable_items(const OperandSpec& operand);
/// Why such items cannot be stored.
std::string item_refusal(const PrepareArgs& args, const Items& items);

/// Names the first operand that is packed, if any is.
std::string packed_refusal(const PrepareArgs& args);

}  // namespace heddle::vulkan
