#include "device/vulkan/kernels/attention_tile.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::vulkan {

namespace {

// Features of values whose sums one invocation holds for four rows, at most: more would not stay in
// registers.
constexpr std::int64_t kLaneFeatures = 16;
constexpr std::int64_t kMostRowVectors = 2;

std::int64_t in_fours(std::int64_t features) {
  return (features + 3) / 4 * 4;
}

/// Bytes of shared memory of the shader (attention.glsl, and a little more in those that use it).
std::int64_t shared_bytes(const AttentionTile& tile, std::int64_t features,
                          std::int64_t value_features) {
  constexpr std::int64_t kVector = 16, kWord = 4, kSeen = 12;
  const std::int64_t block = std::int64_t{tile.group_size} * tile.lane_positions;
  return (in_fours(std::max(features, value_features)) + block) * tile.row_vectors * kVector +
         block * kWord + std::int64_t{tile.group_size} * kWord + tile.rows() * kSeen;
}

}  // namespace

AttentionTile attention_tile(std::int64_t features, std::int64_t value_features,
                             std::int64_t rows_wanted, const Limits& limits) {
  constexpr std::uint32_t kLeastGroup = 8, kLeastBlock = 32;
  AttentionTile tile;
  tile.group_size = std::max(kLeastGroup, limits.subgroup_size);
  while (in_fours(value_features) > kLaneFeatures * tile.group_size) tile.group_size *= 2;
  if (tile.group_size > std::min<std::int64_t>(limits.max_group_size, kSplitPositions)) {
    tile.problem = fmt::format("heads of {} features, which take a workgroup of {}; at most {}",
                               value_features, tile.group_size,
                               std::min<std::int64_t>(limits.max_group_size, kSplitPositions));
    return tile;
  }
  tile.lane_positions = std::clamp(kLeastBlock / tile.group_size, 2u, 4u);
  tile.lane_positions =
      std::min<std::uint32_t>(tile.lane_positions, kSplitPositions / tile.group_size);
  tile.row_vectors = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((rows_wanted + 3) / 4, 1, kMostRowVectors));
  while (tile.row_vectors > 1 &&
         shared_bytes(tile, features, value_features) > limits.shared_bytes) {
    --tile.row_vectors;
  }
  if (shared_bytes(tile, features, value_features) > limits.shared_bytes) {
    tile.problem =
        fmt::format("heads of {} features take {} bytes of shared memory, there are {}", features,
                    shared_bytes(tile, features, value_features), limits.shared_bytes);
  }
  return tile;
}

}  // namespace heddle::vulkan
