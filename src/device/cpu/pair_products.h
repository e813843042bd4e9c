// Products of bf16 as it lies in memory, two terms at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/isa.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

/// Terms of a block: what is packed of a group of columns is read from the second level of caches,
/// which costs less than adding up more sums.
inline constexpr std::int64_t kPairsBlock = 4 * kDepthBlock;

/// Pairs of terms are counted as floats, which they are as large as. Of kGroupColumns columns at
/// most, pair k of column c is packed at to[k * kGroupColumns + c]; an odd term gets a zero beside
/// it, and absent columns are zeros up to a whole panel. `stride` is in bytes.
struct PairProducts {
  /// Where the columns of a term lie side by side, and terms `stride` apart.
  void (*pack_terms)(const std::byte* from, std::int64_t stride, std::int64_t depth,
                     std::int64_t columns, float* to);
  /// Where the terms of a column lie side by side, and columns `stride` apart.
  void (*pack_columns)(const std::byte* from, std::int64_t stride, std::int64_t depth,
                       std::int64_t columns, float* to);
  /// As Products::tile, with pairs for floats in x and w; x need not be aligned.
  void (*tile)(const TileJob&);
};

/// Null where the processor or the level has no instructions for them.
const PairProducts* pair_products(Isa level);

namespace avx512_bf16 {
extern const PairProducts kPairProducts;
}

}  // namespace heddle::cpu
