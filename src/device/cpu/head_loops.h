// The inner loops that read heads of keys and values where they lie, in one version for each level
// of instructions and stored type. They fetch what is read next while they compute.
//
// Sums are taken as TileJob takes them, so that a row's result is the same bits whether its values
// were decoded before or not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/isa.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

/// Pieces of memory to fetch into the second level of cache: a block is more than the first holds.
struct Upcoming {
  const std::byte* const* pieces = nullptr;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // of each
};

/// panel[c * 16 + r] = feature c of row r, and 0 for rows that are null and for features that round
/// their number up to 16.
struct KeyPanelJob {
  const std::byte* const* rows;  // 16
  std::int64_t offset;           // bytes from where a row begins to the head
  std::int64_t features;
  float* panel;
  Upcoming next;  // 16 pieces at most
};

inline constexpr std::int64_t kWeightsStride = 64;

/// out[r][c] = scales[r] * out[r][c] + sum over k < depth of weights[r][k] * values[k][c].
struct ValuesJob {
  const float* weights;  // a row every kWeightsStride
  std::int64_t rows;
  const std::byte* const* values;
  std::int64_t offset;  // bytes from where a row of values begins to the head
  std::int64_t depth;
  std::int64_t features;
  float* out;  // rows of features rounded up to 16
  std::int64_t out_stride;
  const float* scales;
  Upcoming next;  // `depth` pieces at most
};

struct HeadLoops {
  void (*key_panel)(const KeyPanelJob&);
  void (*add_values)(const ValuesJob&);
  std::int64_t few_rows;  // up to so many, add_values is quicker than tiles of decoded values
};

inline constexpr int kHeadTypes = 4;  // f32, f16, bf16, q8_0

/// The loops for `level`, or for the best one below it that this build has; null for other dtypes.
const HeadLoops* head_loops(Isa level, DType dtype);

namespace portable {
extern const HeadLoops kHeadLoops[kHeadTypes];
}
namespace avx2 {
extern const HeadLoops kHeadLoops[kHeadTypes];
}
namespace avx512 {
extern const HeadLoops kHeadLoops[kHeadTypes];
}
namespace neon {
extern const HeadLoops kHeadLoops[kHeadTypes];
}

}  // namespace heddle::cpu
