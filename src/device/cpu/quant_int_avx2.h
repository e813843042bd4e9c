// The primitives of quant_int.h in AVX2, with VNNI in 256 bits where the level has it.
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
  __m256i low, high;
};
struct I32x16 {
  __m256i low, high;
};
struct GroupScales {
  alignas(32) std::int16_t v[16];
};

// Rows and columns of weights that are computed together; 16 registers, two to an I32x16.
inline constexpr int kQuantRows = 4, kQuantColumns = 1;
// For weights in panels: rows that take codes straight from them, how far loops are unrolled, and
// the rows and panels that are computed together, with a sum of integers and one of floats each.
inline constexpr int kFewRows = 2, kUnrolledParts = 1, kUnrolledPairs = 16;
inline constexpr int kUnpackedRows = 3, kUnpackedPanels = 1;

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
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x.v)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(x.v, x.v)))};
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
  std::int32_t mask;
  std::memcpy(&mask, from, sizeof mask);
  // Byte i takes the mask's byte i / 8 and keeps its bit i % 8.
  const __m256i which =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(mask), which);
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  return {_mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)))};
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
  return {_mm256_cvtepi8_epi16(_mm256_castsi256_si128(x.v)),
          _mm256_cvtepi8_epi16(_mm256_extracti128_si256(x.v, 1))};
}
inline I16x32 load_codes(const std::int16_t* from) {
  const auto* halves = reinterpret_cast<const __m256i*>(from);
  return {_mm256_load_si256(halves), _mm256_load_si256(halves + 1)};
}
inline I16x32 load_any(const void* from) {
  const auto* halves = static_cast<const __m256i*>(from);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
inline void store_codes(std::int16_t* to, I16x32 x) {
  auto* halves = reinterpret_cast<__m256i*>(to);
  _mm256_store_si256(halves, x.low);
  _mm256_store_si256(halves + 1, x.high);
}
/// Two codes, the `k`th two from `from` on, for each of 16 columns.
inline I16x32 broadcast_pair(const std::int16_t* from, int k) {
  std::int32_t pair;
  std::memcpy(&pair, from + 2 * k, sizeof pair);
  const __m256i all = _mm256_set1_epi32(pair);
  return {all, all};
}
inline I16x32 add(I16x32 a, int b) {
  const __m256i all = _mm256_set1_epi16(static_cast<short>(b));
  return {_mm256_add_epi16(a.low, all), _mm256_add_epi16(a.high, all)};
}
inline __m256i shift_right(__m256i x, int shift) {
  return shift == 0 ? x : shift > 0 ? _mm256_srli_epi16(x, shift) : _mm256_slli_epi16(x, -shift);
}
/// `count` bits from bit `shift` on.
inline I16x32 bits(I16x32 x, int shift, int count) {
  const I16x32 low{shift_right(x.low, shift), shift_right(x.high, shift)};
  if (shift + count == 16) return low;
  const __m256i mask = _mm256_set1_epi16(static_cast<short>((1 << count) - 1));
  return {_mm256_and_si256(low.low, mask), _mm256_and_si256(low.high, mask)};
}
/// x with the bits of `more` at `mask` once it is shifted to the right, or to the left.
inline I16x32 with_bits(I16x32 x, I16x32 more, int shift, int mask) {
  const __m256i masks = _mm256_set1_epi16(static_cast<short>(mask));
  return {_mm256_or_si256(x.low, _mm256_and_si256(shift_right(more.low, shift), masks)),
          _mm256_or_si256(x.high, _mm256_and_si256(shift_right(more.high, shift), masks))};
}
inline I16x32 low_bytes(I16x32 x) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(x.low, 8), 8),
          _mm256_srai_epi16(_mm256_slli_epi16(x.high, 8), 8)};
}
inline I16x32 high_bytes(I16x32 x) {
  return {_mm256_srai_epi16(x.low, 8), _mm256_srai_epi16(x.high, 8)};
}
inline I16x32 look_up(const std::int8_t* table, I16x32 codes) {
  const __m256i bytes =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  // The high bytes are zero and find the table's first; they are shifted away.
  return low_bytes({_mm256_shuffle_epi8(bytes, codes.low), _mm256_shuffle_epi8(bytes, codes.high)});
}
inline GroupScales group_scales(Bytes16 x) {
  GroupScales scales;
  _mm256_store_si256(reinterpret_cast<__m256i*>(scales.v), _mm256_cvtepi8_epi16(x.v));
  return scales;
}
inline I16x32 scale(I16x32 x, const GroupScales& scales, int pair) {
  return {_mm256_mullo_epi16(x.low, _mm256_set1_epi16(scales.v[2 * pair])),
          _mm256_mullo_epi16(x.high, _mm256_set1_epi16(scales.v[2 * pair + 1]))};
}

inline I32x16 no_sums() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline I32x16 dot(I16x32 a, I16x32 b) {
  return {_mm256_madd_epi16(a.low, b.low), _mm256_madd_epi16(a.high, b.high)};
}
inline I32x16 dot_add(I32x16 sums, I16x32 a, I16x32 b) {
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
  return {_mm256_dpwssd_epi32(sums.low, a.low, b.low),
          _mm256_dpwssd_epi32(sums.high, a.high, b.high)};
#else
  const I32x16 more = dot(a, b);
  return {_mm256_add_epi32(sums.low, more.low), _mm256_add_epi32(sums.high, more.high)};
#endif
}
inline I32x16 add(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
/// Of whole numbers.
inline I32x16 to_int(F32x16 x) {
  return {_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)};
}
inline F32x16 to_float(I32x16 x) {
  return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)};
}
inline F32x16 broadcast_f16(std::uint16_t x) {
  const __m256 eight = _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(x)));
  return {eight, eight};
}
/// Of eight f16 each.
inline F32x16 floats_of_f16(Bytes16 low, Bytes16 high) {
  return {_mm256_cvtph_ps(low.v), _mm256_cvtph_ps(high.v)};
}

inline F32x16 magnitude(F32x16 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}
inline F32x16 divide(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline __m256i to_shorts(F32x16 x) {
  const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high));
  return _mm256_permute4x64_epi64(packed, 0b11'01'10'00);  // undoes the packing by halves
}
/// Whole numbers within the target's range.
inline void store_i16(std::int16_t* to, F32x16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_shorts(x));
}
inline void store_i8(std::int8_t* to, F32x16 x) {
  const __m256i shorts = to_shorts(x);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
