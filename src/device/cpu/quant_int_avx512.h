// The primitives of quant_int.h in AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

struct Bytes16 {
  __m128i v;
};
struct Bytes32 {
  __m256i v;
};
struct I16x32 {
  __m512i v;
};
struct I32x16 {
  __m512i v;
};
struct GroupScales {
  __m512i v;  // in the low half
};

// Rows and columns of weights that are computed together; 32 registers.
inline constexpr int kQuantRows = 8, kQuantColumns = 2;
// For weights in panels: rows that take codes straight from them, how far loops are unrolled, and
// the rows and panels that are computed together, with a sum of integers and one of floats each.
inline constexpr int kFewRows = 4, kUnrolledParts = 8, kUnrolledPairs = 16;
inline constexpr int kUnpackedRows = 6, kUnpackedPanels = 2;

inline Bytes16 two_words(std::uint64_t low, std::uint64_t high) {
  return {_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low))};
}
inline Bytes16 each_twice(std::uint64_t bytes) {
  const __m128i once = _mm_cvtsi64_si128(static_cast<long long>(bytes));
  return {_mm_unpacklo_epi8(once, once)};
}
inline Bytes16 load_bytes16(const void* from) {
  return {_mm_loadu_si128(static_cast<const __m128i*>(from))};
}
inline Bytes16 add(Bytes16 a, int b) {
  return {_mm_add_epi8(a.v, _mm_set1_epi8(static_cast<char>(b)))};
}
inline Bytes16 bits(Bytes16 x, int shift, int mask) {
  return {_mm_and_si128(_mm_srli_epi16(x.v, shift), _mm_set1_epi8(static_cast<char>(mask)))};
}
inline Bytes16 bits_up(Bytes16 x, int shift, int mask) {
  return {_mm_and_si128(_mm_slli_epi16(x.v, shift), _mm_set1_epi8(static_cast<char>(mask)))};
}
inline Bytes16 bit_or(Bytes16 a, Bytes16 b) {
  return {_mm_or_si128(a.v, b.v)};
}
inline F32x16 to_float(Bytes16 x) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x.v))};
}

inline Bytes32 load_bytes32(const void* from) {
  return {_mm256_loadu_si256(static_cast<const __m256i*>(from))};
}
inline Bytes32 nibbles(const std::uint8_t* from) {
  const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m256i apart =
      _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
  return {_mm256_and_si256(apart, _mm256_set1_epi8(15))};
}
inline Bytes32 spread_bits(const std::uint8_t* from, int value) {
  std::uint32_t mask;
  std::memcpy(&mask, from, sizeof mask);
  return {_mm256_maskz_set1_epi8(mask, static_cast<char>(value))};
}
inline Bytes32 bits(Bytes32 x, int shift, int mask) {
  return {
      _mm256_and_si256(_mm256_srli_epi16(x.v, shift), _mm256_set1_epi8(static_cast<char>(mask)))};
}
inline Bytes32 bits_up(Bytes32 x, int shift, int mask) {
  return {
      _mm256_and_si256(_mm256_slli_epi16(x.v, shift), _mm256_set1_epi8(static_cast<char>(mask)))};
}
inline Bytes32 bit_or(Bytes32 a, Bytes32 b) {
  return {_mm256_or_si256(a.v, b.v)};
}
inline Bytes32 add(Bytes32 a, int b) {
  return {_mm256_add_epi8(a.v, _mm256_set1_epi8(static_cast<char>(b)))};
}
inline Bytes32 look_up(const std::int8_t* table, Bytes32 codes) {
  const __m128i once = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(once), codes.v)};
}

inline I16x32 widen(Bytes32 x) {
  return {_mm512_cvtepi8_epi16(x.v)};
}
inline I16x32 load_codes(const std::int16_t* from) {
  return {_mm512_load_si512(from)};
}
inline I16x32 load_any(const void* from) {
  return {_mm512_loadu_si512(from)};
}
inline void store_codes(std::int16_t* to, I16x32 x) {
  _mm512_store_si512(to, x.v);
}
/// Two codes, the `k`th two from `from` on, for each of 16 columns.
inline I16x32 broadcast_pair(const std::int16_t* from, int k) {
  std::int32_t pair;
  std::memcpy(&pair, from + 2 * k, sizeof pair);
  return {_mm512_set1_epi32(pair)};
}
inline I16x32 add(I16x32 a, int b) {
  return {_mm512_add_epi16(a.v, _mm512_set1_epi16(static_cast<short>(b)))};
}
/// `count` bits from bit `shift` on.
inline I16x32 bits(I16x32 x, int shift, int count) {
  const __m512i low = shift == 0 ? x.v : _mm512_srli_epi16(x.v, static_cast<unsigned>(shift));
  if (shift + count == 16) return {low};
  return {_mm512_and_si512(low, _mm512_set1_epi16(static_cast<short>((1 << count) - 1)))};
}
/// x with the bits of `more` at `mask` once it is shifted to the right, or to the left.
inline I16x32 with_bits(I16x32 x, I16x32 more, int shift, int mask) {
  constexpr int kOrAnd = 0xf8;  // a | (b & c)
  const __m512i there = shift == 0  ? more.v
                        : shift > 0 ? _mm512_srli_epi16(more.v, static_cast<unsigned>(shift))
                                    : _mm512_slli_epi16(more.v, static_cast<unsigned>(-shift));
  const __m512i masks = _mm512_set1_epi16(static_cast<short>(mask));
  return {_mm512_ternarylogic_epi64(x.v, there, masks, kOrAnd)};
}
inline I16x32 low_bytes(I16x32 x) {
  return {_mm512_srai_epi16(_mm512_slli_epi16(x.v, 8), 8)};
}
inline I16x32 high_bytes(I16x32 x) {
  return {_mm512_srai_epi16(x.v, 8)};
}
inline I16x32 look_up(const std::int8_t* table, I16x32 codes) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m512i shorts = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(bytes));
  return {_mm512_permutexvar_epi16(codes.v, shorts)};
}
inline GroupScales group_scales(Bytes16 x) {
  return {_mm512_castsi256_si512(_mm256_cvtepi8_epi16(x.v))};
}
inline I16x32 scale(I16x32 x, const GroupScales& scales, int pair) {
  const __m512i halves = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(1), 1);
  const __m512i index = _mm512_add_epi16(halves, _mm512_set1_epi16(static_cast<short>(2 * pair)));
  return {_mm512_mullo_epi16(x.v, _mm512_permutexvar_epi16(index, scales.v))};
}
inline I32x16 no_sums() {
  return {_mm512_setzero_si512()};
}
inline I32x16 dot_add(I32x16 sums, I16x32 a, I16x32 b) {
  return {_mm512_dpwssd_epi32(sums.v, a.v, b.v)};
}
inline I32x16 dot(I16x32 a, I16x32 b) {
  return {_mm512_madd_epi16(a.v, b.v)};
}
inline I32x16 add(I32x16 a, I32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
/// Of whole numbers.
inline I32x16 to_int(F32x16 x) {
  return {_mm512_cvtps_epi32(x.v)};
}
inline F32x16 to_float(I32x16 x) {
  return {_mm512_cvtepi32_ps(x.v)};
}
inline F32x16 broadcast_f16(std::uint16_t x) {
  return {_mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(x)))};
}
/// Of eight f16 each.
inline F32x16 floats_of_f16(Bytes16 low, Bytes16 high) {
  return {_mm512_cvtph_ps(_mm256_set_m128i(high.v, low.v))};
}

inline F32x16 magnitude(F32x16 x) {
  return {_mm512_abs_ps(x.v)};
}
inline F32x16 divide(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
/// Whole numbers within the target's range.
inline void store_i16(std::int16_t* to, F32x16 x) {
  const __m256i shorts = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x.v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), shorts);
}
inline void store_i8(std::int8_t* to, F32x16 x) {
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
