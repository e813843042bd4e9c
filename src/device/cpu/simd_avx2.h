// The primitives of simd.h in AVX2 with FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace heddle::cpu::HEDDLE_SIMD {

struct F32x16 {
  __m256 low, high;
};

// Registers: 16, two to an F32x16.
inline constexpr int kTileRows = 6;
constexpr int tile_panels(int rows) {
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}
inline constexpr int kValueRows = kTileRows;
constexpr int value_panels(int rows) {
  return tile_panels(rows);
}
inline constexpr int kDotRows = 1, kDotColumns = 4;

inline __m256i lanes_below(std::int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline F32x16 zeros() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F32x16 broadcast(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F32x16 load16(const float* from) {
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
inline F32x16 load_first(const float* from, std::int64_t n) {
  return {_mm256_maskload_ps(from, lanes_below(n)),
          _mm256_maskload_ps(from + 8, lanes_below(n - 8))};
}
inline F32x16 load16_f16(const std::uint16_t* from) {
  const auto* halves = reinterpret_cast<const __m128i*>(from);
  return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}
inline __m256 widen_bf16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline F32x16 load16_bf16(const std::uint16_t* from) {
  const auto* halves = reinterpret_cast<const __m128i*>(from);
  return {widen_bf16(_mm_loadu_si128(halves)), widen_bf16(_mm_loadu_si128(halves + 1))};
}
inline __m256 round_to_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, even), _mm256_set1_epi32(0x7fff));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 kept = _mm256_blendv_ps(_mm256_castsi256_ps(up), _mm256_castsi256_ps(quiet),
                                       _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_and_ps(kept, _mm256_castsi256_ps(_mm256_set1_epi32(-0x10000)));
}
/// The nearest bf16, as a float; of two the even one.
inline F32x16 round_to_bf16(F32x16 x) {
  return {round_to_bf16(x.low), round_to_bf16(x.high)};
}
inline void store16(float* to, F32x16 x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + 8, x.high);
}
inline void store_first(float* to, F32x16 x, std::int64_t n) {
  _mm256_maskstore_ps(to, lanes_below(n), x.low);
  _mm256_maskstore_ps(to + 8, lanes_below(n - 8), x.high);
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline F32x16 subtract(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline F32x16 multiply(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline F32x16 multiply_add(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
/// The larger; b where a is not a number.
inline F32x16 maximum(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline __m256 round_even(__m256 x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline F32x16 round_even(F32x16 x) {
  return {round_even(x.low), round_even(x.high)};
}
inline __m256 times_power_of_two(__m256 x, __m256 n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
inline F32x16 times_power_of_two(F32x16 x, F32x16 n) {  // n in [-126, 127]
  return {times_power_of_two(x.low, n.low), times_power_of_two(x.high, n.high)};
}
inline F32x16 zero_where_less(F32x16 x, F32x16 limit, F32x16 value) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_NLT_UQ), value.low),
          _mm256_and_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_NLT_UQ), value.high)};
}

inline float first_lane(F32x16 x) {
  return _mm256_cvtss_f32(x.low);
}
inline float sum_lanes(F32x16 x) {
  const __m256 eight = _mm256_add_ps(x.low, x.high);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline float max_lanes(F32x16 x) {
  const __m256 eight = _mm256_max_ps(x.low, x.high);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

inline void transpose8(__m256 (&x)[8]) {
  __m256 t[8], u[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int c = 0; c < 4; ++c) {
    x[c] = _mm256_permute2f128_ps(u[c], u[c + 4], 0x20);
    x[c + 4] = _mm256_permute2f128_ps(u[c], u[c + 4], 0x31);
  }
}

/// Element j of x[i] becomes element i of x[j].
inline void transpose16(F32x16 (&x)[16]) {
  __m256 quarter[4][8];  // top left, top right, bottom left, bottom right
  for (int i = 0; i < 8; ++i) {
    quarter[0][i] = x[i].low, quarter[1][i] = x[i].high;
    quarter[2][i] = x[i + 8].low, quarter[3][i] = x[i + 8].high;
  }
  for (auto& q : quarter) transpose8(q);
  for (int i = 0; i < 8; ++i) {
    x[i].low = quarter[0][i], x[i].high = quarter[2][i];
    x[i + 8].low = quarter[1][i], x[i + 8].high = quarter[3][i];
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
