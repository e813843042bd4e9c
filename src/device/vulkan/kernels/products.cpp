#include "device/vulkan/kernels/products.h"

#include <algorithm>
#include <atomic>

#include "base/settings.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint32_t kFloat = 4;  // bytes
constexpr std::uint32_t kTallestTile = 64;
constexpr std::uint32_t kTileSharedBytes =
    static_cast<std::uint32_t>(kUnitElements) * (kTallestTile + kTileColumns) * kFloat;

std::atomic<int> forced{-1};

std::uint32_t vector_shared_bytes(std::uint32_t lanes) {
  return kVectorRows * kVectorColumns * (lanes + lanes / 4 + 1) * kFloat;
}

bool can_run(ProductForm form, const Limits& limits) {
  switch (form) {
    case ProductForm::vector:
      return vector_shared_bytes(vector_lanes(limits)) <= limits.shared_bytes;
    case ProductForm::tiled:
      return kTileLanes <= limits.max_group_size && kTileSharedBytes <= limits.shared_bytes;
    case ProductForm::scalar:
      return true;
  }
  return false;
}

/// Whether subgroups are so narrow that they must be a processor's vectors (or those of a GPU whose
/// shared memory is ordinary memory, as Arm's older ones).
bool is_processor(const Limits& limits) {
  return limits.subgroup_size < 16;
}

/// Drivers that put Vulkan on top of something else tend to lose more by barriers than tiles save,
/// and on a processor shared memory is no nearer than any other.
bool tiles_pay(const Limits& limits) {
  return !limits.portability_subset && !is_processor(limits);
}

ProductForm wanted_form(const Limits& limits, std::int64_t rows) {
  if (const int form = forced.load(std::memory_order_relaxed); form >= 0) {
    return static_cast<ProductForm>(form);
  }
  const std::string& setting = settings().vulkan_matmul;
  if (setting == "vector") return ProductForm::vector;
  if (setting == "tiled") return ProductForm::tiled;
  if (setting == "scalar" || !tiles_pay(limits)) return ProductForm::scalar;
  return rows <= kVectorRows ? ProductForm::vector : ProductForm::tiled;
}

}  // namespace

std::uint32_t vector_lanes(const Limits& limits) {
  return std::clamp(limits.subgroup_size, 32u, 64u);  // any device has 128
}

std::uint32_t tile_lane_rows(std::int64_t rows) {
  return rows <= 4 * kTileRowLanes ? 4 : kTallestTile / kTileRowLanes;
}

std::uint32_t some_rows(std::int64_t rows, std::uint32_t most) {
  std::uint32_t result = 1;
  while (result < rows && result < most) result *= 2;
  return result;
}

std::uint32_t scalar_lanes(const Limits& limits) {
  return std::min(limits.subgroup_size, limits.max_group_size);
}

LaneBlock scalar_block(const Limits& limits, std::int64_t rows, std::int64_t columns) {
  const std::uint32_t few = rows == 1 ? 1 : 4;  // one pipeline for all that lies between
  if (!is_processor(limits)) return {few, 1};
  // Measured on Mesa's lavapipe: it loads lane by lane, so the more a load serves the better; but
  // what has long loops unrolled takes seconds to compile, above all where lanes share no loads;
  // and a workgroup is one core's, so there should be some for each.
  constexpr std::int64_t kEnoughGroups = 16;
  LaneBlock block{rows <= 8 ? few : 16, 4};
  if (!limits.subgroup_arithmetic) block.rows = std::min(few, 2u);
  const auto groups = [&] {
    return ceil_div(rows, block.rows) * ceil_div(columns, scalar_lanes(limits) * block.columns);
  };
  while (block.columns > 1 && groups() < kEnoughGroups) block.columns /= 2;
  return block;
}

ProductForm product_form(const Limits& limits, std::int64_t rows) {
  const ProductForm form = wanted_form(limits, rows);
  return can_run(form, limits) ? form : ProductForm::scalar;
}

void force_product_form(std::optional<ProductForm> form) {
  forced.store(form ? static_cast<int>(*form) : -1, std::memory_order_relaxed);
}

}  // namespace heddle::vulkan
