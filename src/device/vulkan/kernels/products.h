// What the matrix products have in common: their forms, and which is best where.
//
// All forms add a row's products in one order (shaders/product.glsl), so that the choice may depend
// on the number of rows without any row's result doing so (rule 17). A place for more forms, on
// cooperative matrices, is here and in `product_form`; but since their order is the driver's own,
// a device must then use them for every number of rows.
#pragma once

#include <cstdint>

#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

enum class ProductForm : std::uint8_t {
  vector,  // lanes share a column's sum: few rows, weights read once at the speed of memory
  tiled,   // tiles of rows and columns in shared memory: many rows
  scalar,  // a lane for each column, no shared memory
};

/// Rows that the vector form computes in one pass over the weights, at most.
inline constexpr std::uint32_t kVectorRows = 8;

/// The form for so many rows: what HEDDLE_VULKAN_MATMUL says, or the best on the device. A form that
/// the device cannot run is never chosen: the scalar one takes its place.
ProductForm product_form(const Limits& limits, std::int64_t rows);

}  // namespace heddle::vulkan
