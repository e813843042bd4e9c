// Sums of products with panels of blocks by pairs of 16-bit integers.
#pragma once

#include "device/cpu/quant_panel_sums.h"

namespace heddle::cpu::HEDDLE_SIMD {

// ---- A few rows

/// Part `part` of a block, which is part `at` of 256 elements.
template <class T, int R>
inline void add_part(const std::byte* panel, const PanelHeader& header, int part,
                     const RoundedBlock* const (&x)[R], int at, F32x16 (&sums)[R]) {
  constexpr int kGroupPairs = kPairs / T::kGroups;
  constexpr int kChains = kGroupPairs == kPairs ? 2 : 1;  // a long one would wait for itself
#pragma GCC unroll 2
  for (int group = 0; group < T::kGroups; ++group) {
    I32x16 dots[R][kChains];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const float codes = sum_of_codes<T::kGroups>(*x[r], at, group);
      dots[r][0] =
          T::kOffset == 0 ? no_sums() : to_int(multiply(broadcast(codes), broadcast(-T::kOffset)));
      if constexpr (kChains > 1) dots[r][1] = no_sums();
    }
#pragma GCC unroll kUnrolledPairs
    for (int i = 0; i < kGroupPairs; ++i) {
      // Pairs 0, 8, 1, 9, ...: those of small blocks share bytes.
      const int k = T::kGroups == 1 ? i / 2 + i % 2 * 8 : group * kGroupPairs + i;
      const I16x32 codes = T::codes(panel, part, k);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        dots[r][i % kChains] =
            dot_add(dots[r][i % kChains], codes, broadcast_pair(x[r]->codes + at * kPart, k));
      }
    }
    const int index = part * T::kGroups + group;
    const F32x16 scale = T::scale(header, panel, index), min = T::min(header, panel, index);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      I32x16 dot = dots[r][0];
      if constexpr (kChains > 1) dot = add(dot, dots[r][1]);
      sums[r] =
          join<T::kHasMins>(sums[r], dot, scale, min, sum_of_codes<T::kGroups>(*x[r], at, group));
    }
  }
}

// ---- Many rows

/// 256 elements of a panel.
struct UnpackedPanel {
  alignas(64) std::int16_t codes[kParts][kPairs][2 * kPanelBlocks];
  alignas(64) float scales[2 * kParts][kPanelBlocks];
  alignas(64) float mins[2 * kParts][kPanelBlocks];

  void put(int part, int pair, I16x32 values) { store_codes(codes[part][pair], values); }
};

/// Part `part` of R rows with P panels.
template <int Groups, bool HasMins, int R, int P>
inline void sum_part(const UnpackedPanel* panels, int part, const RoundedBlock* const (&x)[R],
                     F32x16 (&sums)[R][P]) {
  constexpr int kGroupPairs = kPairs / Groups;
  for (int group = 0; group < Groups; ++group) {
    const int first = group * kGroupPairs;
    I32x16 dots[R][P];
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) dots[r][p] = no_sums();
    }
#pragma GCC unroll 16
    for (int i = 0; i < kGroupPairs; ++i) {
      I16x32 weights[P];
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) weights[p] = load_codes(panels[p].codes[part][first + i]);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const I16x32 pair = broadcast_pair(x[r]->codes + part * kPart + 2 * first, i);
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) dots[r][p] = dot_add(dots[r][p], weights[p], pair);
      }
    }
    const int index = part * Groups + group;
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const F32x16 scale = load16(panels[p].scales[index]);
      const F32x16 min = HasMins ? load16(panels[p].mins[index]) : scale;
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        sums[r][p] = join<HasMins>(sums[r][p], dots[r][p], scale, min,
                                   sum_of_codes<Groups>(*x[r], part, group));
      }
    }
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
