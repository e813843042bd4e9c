// The primitives of simd.h in AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace heddle::cpu::HEDDLE_SIMD {

struct F32x16 {
  __m512 v;
};

// Registers: 32. Sizes of the tiles of products.h and head_loops.h that fill them without spilling.
inline constexpr int kTileRows = 6;
constexpr int tile_panels(int) {
  return 4;
}
inline constexpr int kValueRows = 8;
constexpr int value_panels(int rows) {
  return rows <= 4 ? 4 : 2;
}
inline constexpr int kDotRows = 4, kDotColumns = 4;

inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

inline F32x16 zeros() {
  return {_mm512_setzero_ps()};
}
inline F32x16 broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
inline F32x16 load16(const float* from) {
  return {_mm512_loadu_ps(from)};
}
inline F32x16 load_first(const float* from, std::int64_t n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), from)};
}
inline F32x16 load16_f16(const std::uint16_t* from) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
inline F32x16 load16_bf16(const std::uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
/// The nearest bf16, as a float; of two the even one.
inline F32x16 round_to_bf16(F32x16 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, even), _mm512_set1_epi32(0x7fff));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nothing = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_mov_epi32(up, nothing, quiet);
  return {_mm512_castsi512_ps(_mm512_and_si512(kept, _mm512_set1_epi32(-0x10000)))};
}
inline void store16(float* to, F32x16 x) {
  _mm512_storeu_ps(to, x.v);
}
inline void store_first(float* to, F32x16 x, std::int64_t n) {
  _mm512_mask_storeu_ps(to, first_lanes(n), x.v);
}

inline F32x16 add(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline F32x16 subtract(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline F32x16 multiply(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline F32x16 multiply_add(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
/// The larger; b where a is not a number.
inline F32x16 maximum(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline F32x16 round_even(F32x16 x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F32x16 times_power_of_two(F32x16 x, F32x16 n) {
  return {_mm512_scalef_ps(x.v, n.v)};
}
inline F32x16 zero_where_less(F32x16 x, F32x16 limit, F32x16 value) {
  const __mmask16 keep = _mm512_cmp_ps_mask(x.v, limit.v, _CMP_NLT_UQ);
  return {_mm512_maskz_mov_ps(keep, value.v)};
}

inline float sum_lanes(F32x16 x) {
  return _mm512_reduce_add_ps(x.v);
}
inline float max_lanes(F32x16 x) {
  return _mm512_reduce_max_ps(x.v);
}
inline float first_lane(F32x16 x) {
  return _mm512_cvtss_f32(x.v);
}

/// Element j of x[i] becomes element i of x[j].
inline void transpose16(F32x16 (&x)[16]) {
  __m512 t[16], u[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {  // pairs of rows
    t[i] = _mm512_unpacklo_ps(x[i].v, x[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(x[i].v, x[i + 1].v);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {  // fours: u[i + c] holds columns c, c+4, c+8, c+12
    for (int half = 0; half < 2; ++half) {
      const __m512d a = _mm512_castps_pd(t[i + half]), b = _mm512_castps_pd(t[i + half + 2]);
      u[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      u[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < 4; ++c) {  // the quarters of four registers, transposed
    const __m512 a = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
    const __m512 e = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
    x[c].v = _mm512_shuffle_f32x4(a, d, 0x88);
    x[c + 4].v = _mm512_shuffle_f32x4(b, e, 0x88);
    x[c + 8].v = _mm512_shuffle_f32x4(a, d, 0xdd);
    x[c + 12].v = _mm512_shuffle_f32x4(b, e, 0xdd);
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
