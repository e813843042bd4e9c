#include "device/vulkan/kernels/products.h"

#include <algorithm>
#include <atomic>

#include "base/settings.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint32_t kUnitElements = 32, kFloat = 4;  // bytes
constexpr std::uint32_t kTileSharedBytes = kUnitElements * (64 + kTileColumns) * kFloat;

std::atomic<int> forced{-1};

std::uint32_t vector_shared_bytes(std::uint32_t lanes) {
  const auto sums = static_cast<std::uint32_t>(kMostLaneRows) * kVectorColumns;
  return sums * (lanes + lanes / 4 + 1) * kFloat;
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

/// Drivers that put Vulkan on top of something else tend to lose more by barriers than tiles save;
/// and where subgroups are this narrow they are a processor's vectors, which shared memory does not
/// help.
bool tiles_pay(const Limits& limits) {
  return !limits.portability_subset && limits.subgroup_size >= 16;
}

ProductForm wanted_form(const Limits& limits, std::int64_t rows) {
  if (const int form = forced.load(std::memory_order_relaxed); form >= 0) {
    return static_cast<ProductForm>(form);
  }
  const std::string& setting = settings().vulkan_matmul;
  if (setting == "vector") return ProductForm::vector;
  if (setting == "tiled") return ProductForm::tiled;
  if (setting == "scalar" || !tiles_pay(limits)) return ProductForm::scalar;
  return rows <= kMostLaneRows ? ProductForm::vector : ProductForm::tiled;
}

}  // namespace

std::uint32_t vector_lanes(const Limits& limits) {
  return std::clamp(limits.subgroup_size, 32u, 64u);  // any device has 128
}

std::uint32_t tile_lane_rows(std::int64_t rows) {
  return rows <= 32 ? 4 : 8;
}

ProductForm product_form(const Limits& limits, std::int64_t rows) {
  const ProductForm form = wanted_form(limits, rows);
  return can_run(form, limits) ? form : ProductForm::scalar;
}

void force_product_form(std::optional<ProductForm> form) {
  forced.store(form ? static_cast<int>(*form) : -1, std::memory_order_relaxed);
}

}  // namespace heddle::vulkan
