// Words of codes and what becomes of them, in AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

struct U32x16 {
  __m512i v;
};
/// Sixteen floats by the low four bits of an index.
struct Table16 {
  __m512 v;
};

inline constexpr int kGroupRowsAtOnce = 8;

inline U32x16 load_words(const std::uint32_t* from) {
  return {_mm512_loadu_si512(from)};
}
inline U32x16 load_first_words(const std::uint32_t* from, std::int64_t n) {
  return {_mm512_maskz_loadu_epi32(first_lanes(n), from)};
}
inline U32x16 widen_bytes(const std::uint8_t* from) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
template <int kBits>
inline U32x16 shift_right(U32x16 x) {
  return {_mm512_srli_epi32(x.v, kBits)};
}
template <int kBits>
inline U32x16 shift_left(U32x16 x) {
  return {_mm512_slli_epi32(x.v, kBits)};
}
inline U32x16 bit_and(U32x16 x, std::uint32_t bits) {
  return {_mm512_and_si512(x.v, _mm512_set1_epi32(static_cast<int>(bits)))};
}
inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
inline U32x16 at_least(U32x16 x, std::uint32_t least) {
  return {_mm512_max_epu32(x.v, _mm512_set1_epi32(static_cast<int>(least)))};
}
inline F32x16 to_floats(U32x16 x) {
  return {_mm512_cvtepi32_ps(x.v)};
}
inline F32x16 as_floats(U32x16 x) {
  return {_mm512_castsi512_ps(x.v)};
}

inline Table16 load_table(const float* values) {
  return {_mm512_loadu_ps(values)};
}
/// values[bits [kShift, kShift + 4) of x]
template <int kShift>
inline F32x16 look_up(const Table16& table, U32x16 x) {
  return {_mm512_permutexvar_ps(shift_right<kShift>(x).v, table.v)};
}

/// Codes 16 * half ... of kBits bits in `words` words, of which the first is at `from`.
template <int kBits>
inline U32x16 unpack_codes(const std::uint32_t* from, std::int64_t words, int half) {
  const __m512i source = _mm512_maskz_loadu_epi32(first_lanes(words), from);
  const __m512i code =
      _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                       _mm512_set1_epi32(16 * half));
  const __m512i bit = _mm512_mullo_epi32(code, _mm512_set1_epi32(kBits));
  const __m512i word = _mm512_srli_epi32(bit, 5),
                shift = _mm512_and_si512(bit, _mm512_set1_epi32(31));
  const __m512i low = _mm512_srlv_epi32(_mm512_permutexvar_epi32(word, source), shift);
  __m512i all = low;
  if constexpr (32 % kBits != 0) {  // some codes go on in the next word; shifts by 32 give 0
    const __m512i next =
        _mm512_permutexvar_epi32(_mm512_add_epi32(word, _mm512_set1_epi32(1)), source);
    all = _mm512_or_si512(low,
                          _mm512_sllv_epi32(next, _mm512_sub_epi32(_mm512_set1_epi32(32), shift)));
  }
  return {_mm512_and_si512(all, _mm512_set1_epi32((1 << kBits) - 1))};
}

/// Which of `count` values each lane takes, so that each is repeated in its turn.
struct Spread {
  __m512i lanes;
  int count;
};
inline Spread make_spread(int count) {  // 1, 2, 4 or 8
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return {
      _mm512_srlv_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(count)), _mm512_set1_epi32(4)),
      count};
}
inline F32x16 spread_from(const float* from, const Spread& spread) {
  // Loads no larger than the stores that the values came from, which they can overtake.
  switch (spread.count) {
    case 1:
      return broadcast(*from);
    case 2: {
      double two;
      std::memcpy(&two, from, sizeof two);
      return {_mm512_permutexvar_ps(spread.lanes, _mm512_castpd_ps(_mm512_set1_pd(two)))};
    }
    case 4:
      return {_mm512_permutexvar_ps(spread.lanes, _mm512_broadcast_f32x4(_mm_loadu_ps(from)))};
    default:
      return {_mm512_permutexvar_ps(spread.lanes, _mm512_broadcast_f32x8(_mm256_loadu_ps(from)))};
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
