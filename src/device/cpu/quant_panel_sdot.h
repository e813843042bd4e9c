// Sums of products with panels of blocks by NEON's four-byte dot products: each takes four products
// to a lane, where multiply-adds that widen take one.
//
// Activations have 16 bits, so they come as two planes of bytes, x = 256 * high + low: the sums are
// the same integers as the other levels'. Bytes of the low plane have no sign. Where instructions
// cannot take that (before i8mm) the plane holds low - 128, and 128 times the sum of the weights is
// added.
#pragma once

#include "device/cpu/quant_panel_quads.h"
#include "device/cpu/quant_panel_sums.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr int kGroupLanes = 16;  // bytes of a plane to a register, which has four quads

#if defined(__ARM_FEATURE_MATMUL_INT8)
inline constexpr bool kUnsignedLow = true;
using LowPlane = uint8x16_t;
inline LowPlane low_plane(uint8x16_t bytes) {
  return bytes;
}
template <int Lane>
inline int32x4_t dot_lane(int32x4_t sum, int8x16_t w, uint8x16_t plane) {
  return vsudotq_laneq_s32(sum, w, plane, Lane);
}
#else
inline constexpr bool kUnsignedLow = false;
using LowPlane = int8x16_t;
inline LowPlane low_plane(uint8x16_t bytes) {
  return vreinterpretq_s8_u8(bytes ^ all_bytes(0x80));
}
#endif
template <int Lane>
inline int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t plane) {
  return vdotq_laneq_s32(sum, w, plane, Lane);
}

// Of 16 codes, in the order that quads have.
inline int8x16_t load_high(const std::int16_t* codes) {
  const uint8x16x2_t bytes = vld1q_u8_x2(reinterpret_cast<const std::uint8_t*>(codes));
  return vreinterpretq_s8_u8(
      vqtbl2q_u8(bytes, two_words(0x0f0b0d0907030501, 0x1f1b1d1917131511).v));
}
inline LowPlane load_low(const std::int16_t* codes) {
  const uint8x16x2_t bytes = vld1q_u8_x2(reinterpret_cast<const std::uint8_t*>(codes));
  return low_plane(vqtbl2q_u8(bytes, two_words(0x0e0a0c0806020400, 0x1e1a1c1816121410).v));
}

template <int Lane, class Plane>
inline I32x16 dot_quad(const I32x16& sums, const Quad& w, Plane plane) {
  return each_sum([&](int i) { return dot_lane<Lane>(sums.v[i], w.v[i], plane); });
}
inline I32x16 add_weights(const I32x16& sums, const Quad& w) {
  return each_sum([&](int i) { return vdotq_s32(sums.v[i], w.v[i], vdupq_n_s8(1)); });
}
template <int Shift>
inline I32x16 shifted_left(const I32x16& x) {
  return each_sum([&](int i) { return vshlq_n_s32(x.v[i], Shift); });
}

template <int I>
struct Index {
  static constexpr int value = I;
};
/// f(Index<Begin>()), ..., f(Index<End - 1>()).
template <int Begin, int End, class F>
[[gnu::always_inline]] inline void for_each_index(const F& f) {
  if constexpr (Begin < End) {
    f(Index<Begin>());
    for_each_index<Begin + 1, End>(f);
  }
}

template <int Groups>
inline constexpr int kGroupQuads = kQuads / Groups;
/// Registers that hold a plane of a group's activations.
template <int Groups>
inline constexpr int kPlaneParts = kPart / Groups / kGroupLanes;

// ---- A few rows

/// Part `part` of a block, which is part `at` of 256 elements.
template <class T, int R>
inline void add_part(const std::byte* panel, const PanelHeader& header, int part,
                     const RoundedBlock* const (&x)[R], int at, F32x16 (&sums)[R]) {
  for_each_index<0, T::kGroups>([&](auto group) {
    constexpr int kGroup = decltype(group)::value, kFirst = kGroup * kGroupQuads<T::kGroups>;
    constexpr int kPlanes = kPlaneParts<T::kGroups>;
    int8x16_t high[R][kPlanes];
    LowPlane low[R][kPlanes];
    I32x16 highs[R], lows[R], weights = no_sums();
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const std::int16_t* codes = x[r]->codes + at * kPart + 4 * kFirst;
#pragma GCC unroll 2
      for (int p = 0; p < kPlanes; ++p) {
        high[r][p] = load_high(codes + p * kGroupLanes);
        low[r][p] = load_low(codes + p * kGroupLanes);
      }
      highs[r] = lows[r] = no_sums();
    }
    for_each_index<0, kGroupQuads<T::kGroups>>([&](auto index) {
      constexpr int kQuad = decltype(index)::value, kLane = kQuad % 4, kPlane = kQuad / 4;
      const Quad w = quad<T>(panel, part, kFirst + kQuad);
      if constexpr (!kUnsignedLow) weights = add_weights(weights, w);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        highs[r] = dot_quad<kLane>(highs[r], w, high[r][kPlane]);
        lows[r] = dot_quad<kLane>(lows[r], w, low[r][kPlane]);
      }
    });
    if constexpr (!kUnsignedLow) weights = shifted_left<7>(weights);
    const int index = part * T::kGroups + kGroup;
    const F32x16 scale = T::scale(header, panel, index), min = T::min(header, panel, index);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      I32x16 dots = add(shifted_left<8>(highs[r]), lows[r]);
      if constexpr (!kUnsignedLow) dots = add(dots, weights);
      sums[r] =
          join<T::kHasMins>(sums[r], dots, scale, min, sum_of_codes<T::kGroups>(*x[r], at, kGroup));
    }
  });
}

// ---- Many rows

/// 256 elements of a panel.
struct UnpackedPanel {
  alignas(64) std::int8_t codes[kParts][kQuads][4 * kPanelBlocks];
  alignas(64) std::int32_t weights[2 * kParts][kPanelBlocks];  // 128 times a group's sum
  alignas(64) float scales[2 * kParts][kPanelBlocks];
  alignas(64) float mins[2 * kParts][kPanelBlocks];
};

inline Quad load_codes_of_quad(const std::int8_t (&codes)[4 * kPanelBlocks]) {
  return each_quarter([&](int i) { return vld1q_s8(codes + 16 * i); });
}

template <class T>
inline void unpack_part(const std::byte* panel, const PanelHeader& header, int part, int at,
                        UnpackedPanel& to) {
  for_each_index<0, T::kGroups>([&](auto group) {
    constexpr int kGroup = decltype(group)::value, kFirst = kGroup * kGroupQuads<T::kGroups>;
    I32x16 weights = no_sums();
    for_each_index<kFirst, kFirst + kGroupQuads<T::kGroups>>([&](auto index) {
      constexpr int kQuad = decltype(index)::value;
      const Quad w = quad<T>(panel, part, kQuad);
      if constexpr (!kUnsignedLow) weights = add_weights(weights, w);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) vst1q_s8(to.codes[at][kQuad] + 16 * i, w.v[i]);
    });
    const int index = part * T::kGroups + kGroup, there = at * T::kGroups + kGroup;
    if constexpr (!kUnsignedLow) {
      weights = shifted_left<7>(weights);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) vst1q_s32(to.weights[there] + 4 * i, weights.v[i]);
    }
    store16(to.scales[there], T::scale(header, panel, index));
    if (T::kHasMins) store16(to.mins[there], T::min(header, panel, index));
  });
}

/// Adds R rows' products with 16 columns of a group, by one of their planes.
template <int Groups, int R, class Plane>
[[gnu::always_inline]] inline void add_plane(const std::int8_t (&codes)[kQuads][4 * kPanelBlocks],
                                             int first,
                                             const Plane (&planes)[R][kPlaneParts<Groups>],
                                             I32x16 (&dots)[R]) {
  for_each_index<0, kGroupQuads<Groups>>([&](auto index) {
    constexpr int kQuad = decltype(index)::value;
    const Quad w = load_codes_of_quad(codes[first + kQuad]);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) dots[r] = dot_quad<kQuad % 4>(dots[r], w, planes[r][kQuad / 4]);
  });
}

/// Part `part` of R rows with a panel.
template <int Groups, bool HasMins, int R>
inline void sum_part(const UnpackedPanel* panels, int part, const RoundedBlock* const (&x)[R],
                     F32x16 (&sums)[R][1]) {
  constexpr int kPlanes = kPlaneParts<Groups>;
  const UnpackedPanel& panel = *panels;
  for (int group = 0; group < Groups; ++group) {
    const int first = group * kGroupQuads<Groups>, index = part * Groups + group;
    I32x16 dots[R];
    int8x16_t high[R][kPlanes];
    LowPlane low[R][kPlanes];
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      dots[r] = no_sums();
#pragma GCC unroll 2
      for (int p = 0; p < kPlanes; ++p) {
        high[r][p] = load_high(x[r]->codes + part * kPart + 4 * first + p * kGroupLanes);
      }
    }
    add_plane<Groups>(panel.codes[part], first, high, dots);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      dots[r] = shifted_left<8>(dots[r]);
#pragma GCC unroll 2
      for (int p = 0; p < kPlanes; ++p) {
        low[r][p] = load_low(x[r]->codes + part * kPart + 4 * first + p * kGroupLanes);
      }
    }
    add_plane<Groups>(panel.codes[part], first, low, dots);
    const F32x16 scale = load16(panel.scales[index]);
    const F32x16 min = HasMins ? load16(panel.mins[index]) : scale;
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      if constexpr (!kUnsignedLow) {
        dots[r] = each_sum([&](int i) {
          return vaddq_s32(dots[r].v[i], vld1q_s32(panel.weights[index] + 4 * i));
        });
      }
      sums[r][0] =
          join<HasMins>(sums[r][0], dots[r], scale, min, sum_of_codes<Groups>(*x[r], part, group));
    }
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
