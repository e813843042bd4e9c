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

/// Rows that a lane of the vector and scalar forms computes at once, at most.
inline constexpr std::int64_t kMostLaneRows = 8;
/// Columns of a workgroup of the vector form, a lane's rows times which its lanes must outnumber.
inline constexpr std::uint32_t kVectorColumns = 4;
/// Lanes of a workgroup of the vector form.
std::uint32_t vector_lanes(const Limits& limits);

/// shaders/tile.glsl: lanes, and the rows and columns of a tile. Few rows get a lower tile.
inline constexpr std::uint32_t kTileLanes = 128, kTileColumns = 64;
std::uint32_t tile_lane_rows(std::int64_t rows);
inline constexpr std::uint32_t kLaneRowsToTileRows = 8;

/// The longest axis that the shaders index.
inline constexpr std::int64_t kMostIndex = 0x7fffffff;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace heddle::vulkan
