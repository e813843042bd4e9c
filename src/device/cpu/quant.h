// Products of activations with block-quantised weights: as a GGUF file has them, or in panels.
//
// A row of activations is rounded once, 256 elements at a time, to 16-bit integers with a scale of
// their own: an error of at most 2^-16 of the largest of the 256. Products with the weights' codes,
// and their sums within a block, are then exact; what is rounded is the sum of blocks, in float.
//
// Each sum is taken in an order that depends on its own length only, so a row's result is the same
// bits whatever rows and columns are computed beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/cpu/isa.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

inline constexpr int kRoundedElements = 256;  // a super-block of the K types
inline constexpr int kRoundedGroup = 16;
inline constexpr int kPart = 32;  // elements unpacked together: a small block, or some of a larger
inline constexpr int kParts = kRoundedElements / kPart;

/// 256 activations x = scale * codes, the rest of a shorter row being zeros. A scale of NaN stands
/// for elements that are not all finite.
struct alignas(64) RoundedBlock {
  std::int16_t codes[kRoundedElements];                     // |code| <= 32767
  float sums[kRoundedElements / kRoundedGroup];             // of the codes, 16 at a time; exact
  float pair_sums[kRoundedElements / (2 * kRoundedGroup)];  // and 32 at a time
  float scale;
};

inline std::int64_t rounded_blocks(std::int64_t depth) {
  return (depth + kRoundedElements - 1) / kRoundedElements;
}

/// out[r][c] = sum over k < depth of x[r][k] * w[c][k].
struct QuantJob {
  const RoundedBlock* x;  // rows of rounded_blocks(depth)
  std::int64_t rows;
  const std::byte* weights;  // rows of whole blocks, one after the other; or the first panel
  std::int64_t depth;
  std::int64_t columns;
  float* out;
  std::int64_t out_stride;  // in elements
};

inline constexpr int kQuantTypes = 12;

/// The index in QuantLoops::dots of a block type.
inline std::optional<std::size_t> quant_type(DType dtype) noexcept {
  if (dtype < DType::q4_0 || dtype > DType::iq4_xs) return std::nullopt;
  return static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::q4_0);
}

/// The loops in one version for each level of instructions.
struct QuantLoops {
  /// Rounds `count` <= 256 floats, a multiple of 32.
  void (*round)(const float* x, std::int64_t count, RoundedBlock& to);
  void (*dots[kQuantTypes])(const QuantJob&);
  /// Makes `count` floats, a multiple of 32, of q8_0 blocks.
  void (*decode_q8_0)(const std::byte* from, std::int64_t count, float* to);
  /// The other way: to nearest, the largest of each 32 being 127 steps. A block that is not all
  /// finite becomes NaN; values beyond the reach of f16's largest number saturate.
  void (*encode_q8_0)(const float* from, void* to, std::int64_t count);
};

/// The same products with weights in panels (tensor/block_panels.h), by type.
struct QuantPanelLoops {
  void (*products[kQuantTypes])(const QuantJob&);
};

/// The loops for `level`, or for the best one below it that this build has.
const QuantLoops& quant_loops(Isa level);
const QuantPanelLoops& quant_panel_loops(Isa level);

namespace portable {
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace portable
namespace avx2 {
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace avx2
namespace avx_vnni {
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace avx_vnni
namespace avx512vl {  // the same, as AVX-512 VL encodes it
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace avx512vl
namespace avx512 {
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace avx512
namespace amx {
extern const QuantPanelLoops kQuantPanelLoops;
}
namespace neon {
extern const QuantLoops kQuantLoops;
extern const QuantPanelLoops kQuantPanelLoops;
}  // namespace neon
namespace neon_dotprod {
extern const QuantPanelLoops kQuantPanelLoops;
}
namespace neon_i8mm {
extern const QuantPanelLoops kQuantPanelLoops;
}

}  // namespace heddle::cpu
