// Pairs of bf16, which AVX-512 BF16 multiplies and adds two at a time.
//
// A step of a panel is two terms of 16 columns; a row of activations is rounded to bf16, zeros up
// to a whole number of lines behind it. The instruction takes what is below 2^-126 for zero.
#pragma once

#include "device/cpu/product_tiles.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr std::int64_t kBf16OfLine = 32;

struct Bf16x32 {
  __m512i v;
};

inline Bf16x32 narrow(__m512 low, __m512 high) {
  return {__builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low))};
}

// 32 stored elements, or the first n of them and zeros, as bf16 in their order.

struct Bf16OfF32 {
  using Element = float;
  static Bf16x32 load32(const float* from) {
    return narrow(_mm512_loadu_ps(from), _mm512_loadu_ps(from + kLanes));
  }
  static Bf16x32 load32_first(const float* from, std::int64_t n) {
    const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << n) - 1);
    return narrow(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
                  _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kLanes), from + kLanes));
  }
};

inline __m512i load32_halves(const std::uint16_t* from, std::int64_t n) {
  const auto mask = static_cast<__mmask32>((std::uint64_t{1} << n) - 1);
  return _mm512_maskz_loadu_epi16(mask, from);
}

struct Bf16OfF16 {
  using Element = std::uint16_t;
  static Bf16x32 convert(__m512i halves) {
    return narrow(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                  _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)));
  }
  static Bf16x32 load32(const std::uint16_t* from) { return convert(_mm512_loadu_si512(from)); }
  static Bf16x32 load32_first(const std::uint16_t* from, std::int64_t n) {
    return convert(load32_halves(from, n));
  }
};

struct Bf16Itself {
  using Element = std::uint16_t;
  static Bf16x32 load32(const std::uint16_t* from) { return {_mm512_loadu_si512(from)}; }
  static Bf16x32 load32_first(const std::uint16_t* from, std::int64_t n) {
    return {load32_halves(from, n)};
  }
};

inline F32x16 multiply_pairs(Bf16x32 a, Bf16x32 b, F32x16 sum) {
  return {_mm512_dpbf16_ps(sum.v, __builtin_bit_cast(__m512bh, a.v),
                           __builtin_bit_cast(__m512bh, b.v))};
}

/// Element i of the first 16 and element i of the others become neighbours.
inline Bf16x32 interleave(Bf16x32 x) {
  const __m512i index = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return {_mm512_permutexvar_epi16(index, x.v)};
}

// ---- Panels

struct ReadyPairs;

struct PairTerms {
  using Vector = Bf16x32;
  using Ready = ReadyPairs;
  static constexpr std::int64_t kTerms = 2;
  static constexpr bool kIsReady = false;
  static Bf16x32 broadcast(const float* x) {
    std::int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return {_mm512_set1_epi32(pair)};
  }
  static F32x16 multiply_add(Bf16x32 x, Bf16x32 w, F32x16 sum) { return multiply_pairs(x, w, sum); }
};

struct ReadyPairs : PairTerms {
  using Element = float;  // the bits of a pair
  static constexpr bool kIsReady = true;
  static Bf16x32 load(const float* from) { return {_mm512_loadu_si512(from)}; }
  static void store(float* to, Bf16x32 x) { _mm512_storeu_si512(to, x.v); }
};

template <class Stored>
struct Pairs : PairTerms {
  using Element = typename Stored::Element;
  static Bf16x32 load(const Element* from) { return interleave(Stored::load32(from)); }
  /// One term, and zeros.
  static Bf16x32 load_part(const Element* from) {
    return interleave(Stored::load32_first(from, kPanel));
  }
};

// ---- Activations

inline std::int64_t bf16_stride(std::int64_t depth) {
  return (depth + kBf16OfLine - 1) / kBf16OfLine * kBf16OfLine / 2;
}

inline void round_to_pairs(const float* x, std::int64_t depth, float* to) {
  std::int64_t i = 0;
  for (; i + kBf16OfLine <= depth; i += kBf16OfLine) {
    _mm512_storeu_si512(to + i / 2, Bf16OfF32::load32(x + i).v);
  }
  if (i < depth) _mm512_storeu_si512(to + i / 2, Bf16OfF32::load32_first(x + i, depth - i).v);
}

// ---- Dots

template <class Stored, int R, int C>
void pair_dot_tile(const ProductJob& job, std::int64_t row, std::int64_t column) {
  using Element = typename Stored::Element;
  const float* x = job.x + row * job.x_stride;
  const Element* w = reinterpret_cast<const Element*>(job.weights) + column * job.depth;
  F32x16 sums[R][C];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sums[r][c] = zeros();
  }
  const auto step = [&](std::int64_t k, auto load_weights) {
    Bf16x32 weights[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) weights[c] = load_weights(w + c * job.depth + k);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Bf16x32 values{_mm512_loadu_si512(x + r * job.x_stride + k / 2)};
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sums[r][c] = multiply_pairs(values, weights[c], sums[r][c]);
    }
  };
  std::int64_t k = 0;
  for (; k + kBf16OfLine <= job.depth; k += kBf16OfLine) {
    step(k, [](const Element* from) { return Stored::load32(from); });
  }
  if (k < job.depth) {
    const std::int64_t rest = job.depth - k;
    step(k, [rest](const Element* from) { return Stored::load32_first(from, rest); });
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      job.out[(row + r) * job.out_stride + column + c] = sum_lanes(sums[r][c]);
    }
  }
}

template <class Stored, int R>
void pair_dot_rows(const ProductJob& job, std::int64_t row) {
  std::int64_t c = 0;
  for (; c + kDotColumns <= job.columns; c += kDotColumns) {
    pair_dot_tile<Stored, R, kDotColumns>(job, row, c);
  }
  for (; c < job.columns; ++c) pair_dot_tile<Stored, R, 1>(job, row, c);
}

template <class Stored>
void pair_dots(const ProductJob& job) {
  std::int64_t row = 0;
  for (; row + kDotRows <= job.rows; row += kDotRows) pair_dot_rows<Stored, kDotRows>(job, row);
  for (; row < job.rows; ++row) pair_dot_rows<Stored, 1>(job, row);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
