// How attention is shared out among invocations: the constants of shaders/attention.glsl.
#pragma once

#include <cstdint>
#include <string>

#include "device/vulkan/limits.h"

namespace heddle::vulkan {

/// Positions of a split, as the shaders have it.
inline constexpr std::int64_t kSplitPositions = 256;

/// A workgroup's share: `row_vectors` times four rows, whose scores take `lane_positions` positions
/// of each block to an invocation. All but the rows are functions of the heads and the device,
/// since they decide in which order sums run (rule 17).
struct AttentionTile {
  std::uint32_t group_size = 0, lane_positions = 1, row_vectors = 1;
  std::string problem;  // why there is none; empty if there is
  std::int64_t rows() const { return 4 * static_cast<std::int64_t>(row_vectors); }
};

/// For heads of `features` features in keys and `value_features` in values, for up to
/// `rows_wanted` rows; fewer where shared memory does not hold so many.
AttentionTile attention_tile(std::int64_t features, std::int64_t value_features,
                             std::int64_t rows_wanted, const Limits& limits);

}  // namespace heddle::vulkan
