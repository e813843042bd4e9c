// The inner loops of products and attention, in one version for each level of instructions.
//
// Every sum is taken in an order that depends on its own length only: in blocks of kDepthBlock
// terms, each a chain of multiply-adds from zero (panels, tiles), or in kLanes interleaved chains
// (dots). So a row's result is the same bits whatever rows are computed beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/cpu/isa.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

inline constexpr std::int64_t kPanel = 16;       // columns of a panel (LayoutKind::panel16)
inline constexpr std::int64_t kGroupPanels = 4;  // panels that are computed together
inline constexpr std::int64_t kGroupColumns = kPanel * kGroupPanels;
inline constexpr std::int64_t kDepthBlock = 128;  // terms summed before they join the total

/// The stored types these loops read; indices of the arrays in Products.
enum class Stored : std::uint8_t { f32, f16, bf16 };
inline constexpr int kStoredCount = 3;

inline std::optional<Stored> stored_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return Stored::f32;
    case DType::f16:
      return Stored::f16;
    case DType::bf16:
      return Stored::bf16;
    default:
      return std::nullopt;
  }
}

/// out[r][c] = sum over k < depth of x[r][k] * w[c][k]. Strides are in elements.
struct ProductJob {
  const float* x;  // or what RoundedProducts::round made of it, in units as large as a float
  std::int64_t x_stride;
  std::int64_t rows;
  const std::byte* weights;  // the first panel, or the first row
  std::int64_t depth;
  std::int64_t columns;  // for panels at most kGroupColumns; the last panel may be part of one
  float* out;
  std::int64_t out_stride;
};

/// out[r][c] = scales[r] * old[r][c] + sum over k < depth of x[r][k] * w[k][c], where term k of row
/// r is at x + r * x_stride + k * x_step, and column c of row k at
/// w + k * step + (c / 16) * panel + c % 16. Without `scales`, old values are not read;
/// without `old`, they are what `out` holds. w must be readable up to whole panels; the sum is one
/// chain.
struct TileJob {
  const float* x;
  std::int64_t x_stride;
  std::int64_t rows;
  const float* w;
  std::int64_t step, panel;
  std::int64_t depth;
  std::int64_t columns;  // at most kGroupColumns
  float* out;
  std::int64_t out_stride;
  const float* scales;
  const float* old = nullptr;
  std::int64_t old_stride = 0;
  std::int64_t x_step = 1;
};

// Rows that share their part of the first and second level of caches: with what is made of both
// operands for them, and with the weights alone.
inline constexpr std::int64_t kMostTileRows = 96;
inline constexpr std::int64_t kMostPanelRows = 256;
/// Scales that add a tile's sums to what is there, for kMostPanelRows rows.
extern const float* const kOnes;

/// One row of scores against a block of positions, of which [begin, end) count. They become
/// exp(score - maximum), the others within [0, whole) zero; `whole` is a multiple of 16.
struct SoftmaxRow {
  float* scores;
  std::int64_t begin, end, whole;
  float maximum, sum;  // so far; updated
  float rescale;       // result: what earlier sums must be multiplied by
};

/// Products with operands rounded to bf16, for HEDDLE_MATMUL=bf16. Sums are of floats.
struct RoundedProducts {
  /// What a row of x takes once it is rounded, in units as large as a float.
  std::int64_t (*x_stride)(std::int64_t depth);
  void (*round)(const float* x, std::int64_t depth, float* to);
  void (*panels[kStoredCount])(const ProductJob&);  // weights in panels of 16
  void (*dots[kStoredCount])(const ProductJob&);    // weights [columns, depth], row-major
};

struct Products {
  void (*panels[kStoredCount])(const ProductJob&);  // weights in panels of 16
  void (*dots[kStoredCount])(const ProductJob&);    // weights [columns, depth], row-major
  void (*tile)(const TileJob&);
  /// Makes `count` floats of stored elements, and zeros up to the next multiple of 16.
  void (*decode[kStoredCount])(const std::byte* from, std::int64_t count, float* to);
  /// The same of `rows` rows of kGroupColumns elements, `stride` bytes apart, side by side.
  void (*decode_group[kStoredCount])(const std::byte* from, std::int64_t stride, std::int64_t rows,
                                     float* to);
  /// panel[c * 16 + r] = rows[r * stride + c] for 16 rows and columns rounded up to 16.
  void (*to_panel)(const float* rows, std::int64_t stride, std::int64_t columns, float* panel);
  void (*softmax)(SoftmaxRow&);
  /// to[i] = to[i] * a + from[i] * b; `count` is a multiple of 16.
  void (*blend)(float* to, float a, const float* from, float b, std::int64_t count);
  bool (*all_finite)(const float* from, std::int64_t count);  // a multiple of 16
};

/// The loops for `level`, or for the best one below it that this build has.
const Products& products(Isa level);

inline std::int64_t round_up_to_panel(std::int64_t count) {
  return (count + kPanel - 1) / kPanel * kPanel;
}

/// The rounded ones, with instructions for bf16 where the processor has them at this level.
const RoundedProducts& rounded_products(Isa level);

namespace portable {
extern const Products kProducts;
extern const RoundedProducts kRoundedProducts;
}  // namespace portable
namespace avx2 {
extern const Products kProducts;
extern const RoundedProducts kRoundedProducts;
}  // namespace avx2
namespace avx512 {
extern const Products kProducts;
/// For processors that make f32 of f16 in units which products do not need.
extern const Products kConvertingProducts;
extern const RoundedProducts kRoundedProducts;
}  // namespace avx512
namespace avx512_bf16 {
extern const RoundedProducts kRoundedProducts;
}
namespace amx {
extern const RoundedProducts kRoundedProducts;
}
namespace neon {
extern const Products kProducts;
extern const RoundedProducts kRoundedProducts;
}  // namespace neon

}  // namespace heddle::cpu
