// Words of codes and what becomes of them, in AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

struct U32x16 {
  __m256i low, high;
};
/// Sixteen floats by the low four bits of an index.
struct Table16 {
  __m256 low, high;
};

inline constexpr int kGroupRowsAtOnce = 4;

inline U32x16 load_words(const std::uint32_t* from) {
  const auto* halves = reinterpret_cast<const __m256i*>(from);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
inline U32x16 load_first_words(const std::uint32_t* from, std::int64_t n) {
  const auto* words = reinterpret_cast<const int*>(from);
  return {_mm256_maskload_epi32(words, lanes_below(n)),
          _mm256_maskload_epi32(words + 8, lanes_below(n - 8))};
}
inline U32x16 widen_bytes(const std::uint8_t* from) {
  const auto eight = [](const std::uint8_t* bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  };
  return {eight(from), eight(from + 8)};
}
template <int kBits>
inline U32x16 shift_right(U32x16 x) {
  return {_mm256_srli_epi32(x.low, kBits), _mm256_srli_epi32(x.high, kBits)};
}
template <int kBits>
inline U32x16 shift_left(U32x16 x) {
  return {_mm256_slli_epi32(x.low, kBits), _mm256_slli_epi32(x.high, kBits)};
}
inline U32x16 bit_and(U32x16 x, std::uint32_t bits) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(bits));
  return {_mm256_and_si256(x.low, mask), _mm256_and_si256(x.high, mask)};
}
inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
inline U32x16 at_least(U32x16 x, std::uint32_t least) {
  const __m256i bound = _mm256_set1_epi32(static_cast<int>(least));
  return {_mm256_max_epu32(x.low, bound), _mm256_max_epu32(x.high, bound)};
}
inline F32x16 to_floats(U32x16 x) {
  return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)};
}
inline F32x16 as_floats(U32x16 x) {
  return {_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)};
}

inline Table16 load_table(const float* values) {
  return {_mm256_loadu_ps(values), _mm256_loadu_ps(values + 8)};
}
inline __m256 look_up8(const Table16& table, __m256i index) {
  // A permutation looks at three bits; the fourth, moved to the sign, chooses between two.
  const __m256 choice = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, index),
                          _mm256_permutevar8x32_ps(table.high, index), choice);
}
/// values[bits [kShift, kShift + 4) of x]
template <int kShift>
inline F32x16 look_up(const Table16& table, U32x16 x) {
  const U32x16 index = shift_right<kShift>(x);
  return {look_up8(table, index.low), look_up8(table, index.high)};
}

template <int kBits>
inline __m256i unpack8(__m256i source, int first) {
  const __m256i code =
      _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
  const __m256i bit = _mm256_mullo_epi32(code, _mm256_set1_epi32(kBits));
  const __m256i word = _mm256_srli_epi32(bit, 5);
  const __m256i shift = _mm256_and_si256(bit, _mm256_set1_epi32(31));
  __m256i all = _mm256_srlv_epi32(_mm256_permutevar8x32_epi32(source, word), shift);
  if constexpr (32 % kBits != 0) {  // some codes go on in the next word; shifts by 32 give 0
    const __m256i next =
        _mm256_permutevar8x32_epi32(source, _mm256_add_epi32(word, _mm256_set1_epi32(1)));
    all = _mm256_or_si256(all,
                          _mm256_sllv_epi32(next, _mm256_sub_epi32(_mm256_set1_epi32(32), shift)));
  }
  return _mm256_and_si256(all, _mm256_set1_epi32((1 << kBits) - 1));
}
/// Codes 16 * half ... of kBits bits in `words` words, of which the first is at `from`.
template <int kBits>
inline U32x16 unpack_codes(const std::uint32_t* from, std::int64_t words, int half) {
  const __m256i source =
      _mm256_maskload_epi32(reinterpret_cast<const int*>(from), lanes_below(words));
  return {unpack8<kBits>(source, 16 * half), unpack8<kBits>(source, 16 * half + 8)};
}

/// Which of `count` values each lane takes, so that each is repeated in its turn.
struct Spread {
  __m256i low, high;
  int count;
};
inline Spread make_spread(int count) {  // 1, 2, 4 or 8
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), times = _mm256_set1_epi32(count);
  const auto chosen = [&](__m256i lanes) {
    return _mm256_srli_epi32(_mm256_mullo_epi32(lanes, times), 4);
  };
  return {chosen(lane), chosen(_mm256_add_epi32(lane, _mm256_set1_epi32(8))), count};
}
inline F32x16 spread_from(const float* from, const Spread& spread) {
  // Loads no larger than the stores that the values came from, which they can overtake.
  __m256 values;
  switch (spread.count) {
    case 1:
      return broadcast(*from);
    case 2: {
      double two;
      std::memcpy(&two, from, sizeof two);
      values = _mm256_castpd_ps(_mm256_set1_pd(two));
      break;
    }
    case 4:
      values = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
      break;
    default:
      values = _mm256_loadu_ps(from);
  }
  return {_mm256_permutevar8x32_ps(values, spread.low),
          _mm256_permutevar8x32_ps(values, spread.high)};
}

}  // namespace heddle::cpu::HEDDLE_SIMD
