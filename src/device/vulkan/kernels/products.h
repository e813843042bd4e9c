// What the matrix products have in common: their forms, and which is best where.
//
// All forms add a row's products in one order (shaders/product.glsl), so that the choice may depend
// on the number of rows without any row's result doing so (rule 17). Forms on cooperative matrices
// belong here too: a form of their own, a shader beside the tiled one, and a line in
// `product_form`. As their order is the driver's, a device must then use them for every number of
// rows, or not at all.
#pragma once

#include <cstdint>
#include <optional>

#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

enum class ProductForm : std::uint8_t {
  vector,  // lanes share a column's sum: few rows, weights read once and in the order of memory
  tiled,   // tiles of rows and columns in shared memory: many rows
  scalar,  // a lane for each column, no shared memory
};

/// The form for so many rows: what HEDDLE_VULKAN_MATMUL says, or the best on the device. Where the
/// device lacks what that form needs, it is the scalar one, which runs everywhere.
ProductForm product_form(const Limits& limits, std::int64_t rows);

/// Whatever the setting says, for tests; nothing: the setting counts again.
void force_product_form(std::optional<ProductForm> form);

// ---- What the forms' workgroups compute; shaders have these numbers as constants

inline constexpr std::int64_t kUnitElements = 32;

/// The least power of two that holds so many rows, but at most `most`.
std::uint32_t some_rows(std::int64_t rows, std::uint32_t most);

/// The vector form: lanes, of which there must be one for each sum; rows at most; columns.
std::uint32_t vector_lanes(const Limits& limits);
inline constexpr std::uint32_t kVectorRows = 8, kVectorColumns = 4;

/// The tiled form: a tile's lanes and columns; each lane has some rows, and so many lanes lie along
/// that axis. Few rows get a lower tile.
inline constexpr std::uint32_t kTileLanes = 128, kTileColumns = 64, kTileRowLanes = 8;
std::uint32_t tile_lane_rows(std::int64_t rows);

/// The scalar form: lanes, and what each computes.
struct LaneBlock {
  std::uint32_t rows, columns;
};
std::uint32_t scalar_lanes(const Limits& limits);
LaneBlock scalar_block(const Limits& limits, std::int64_t rows, std::int64_t columns);

/// The longest axis that the shaders index.
inline constexpr std::int64_t kMostIndex = 0x7fffffff;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace heddle::vulkan
