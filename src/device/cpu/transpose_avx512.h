// A square of bytes transposed, in AVX-512.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace heddle::cpu::HEDDLE_SIMD {

/// columns[c][r] = byte c of the 16 at rows[r] + offset.
inline void transpose_bytes16(const std::byte* const* rows, std::int64_t offset,
                              std::int8_t (&columns)[16][16]) {
  const auto load = [&](int r) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[r] + offset));
  };
  __m512i four[4];  // quarter q of four[j] is row 4q + j
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    four[j] = _mm512_castsi128_si512(load(j));
    four[j] = _mm512_inserti32x4(four[j], load(j + 4), 1);
    four[j] = _mm512_inserti32x4(four[j], load(j + 8), 2);
    four[j] = _mm512_inserti32x4(four[j], load(j + 12), 3);
  }
  const __m512i pairs[4] = {
      _mm512_unpacklo_epi8(four[0], four[1]), _mm512_unpackhi_epi8(four[0], four[1]),
      _mm512_unpacklo_epi8(four[2], four[3]), _mm512_unpackhi_epi8(four[2], four[3])};
  const __m512i fours[4] = {
      // of each quarter's rows: columns 0 to 3, 4 to 7, 8 to 11, 12 to 15
      _mm512_unpacklo_epi16(pairs[0], pairs[2]), _mm512_unpackhi_epi16(pairs[0], pairs[2]),
      _mm512_unpacklo_epi16(pairs[1], pairs[3]), _mm512_unpackhi_epi16(pairs[1], pairs[3])};
  const __m512i by_column = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(columns[4 * i], _mm512_permutexvar_epi32(by_column, fours[i]));
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
