// What sums of products with panels of blocks have in common.
#pragma once

#include "device/cpu/quant.h"
#include "device/cpu/quant_panel_codes.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr int kPairs = kPart / 2;
inline constexpr std::int64_t kPanelColumns = kPanelBlocks;

/// A part's sums of products, by groups, join `sum`; `activations` are the sums of its codes.
template <bool HasMins>
inline F32x16 join(F32x16 sum, I32x16 dot, F32x16 scale, F32x16 min, float activations) {
  sum = multiply_add(to_float(dot), scale, sum);
  return HasMins ? multiply_add(broadcast(activations), min, sum) : sum;
}

template <int Groups>
inline float sum_of_codes(const RoundedBlock& x, int part, int group) {
  return Groups == 1 ? x.pair_sums[part] : x.sums[2 * part + group];
}

inline void store_columns(float* to, std::int64_t columns, F32x16 values) {
  if (columns >= kPanelColumns) {
    store16(to, values);
  } else {
    store_first(to, values, columns);
  }
}

template <class T>
inline constexpr std::int64_t kBytesOfBlocks = sizeof(typename T::Block) * kPanelBlocks;

template <class T>
inline std::int64_t bytes_of_panel(std::int64_t depth) {
  return depth / (kIsSuperPanel<T> ? kRoundedElements : kPart) * kBytesOfBlocks<T>;
}

}  // namespace heddle::cpu::HEDDLE_SIMD
