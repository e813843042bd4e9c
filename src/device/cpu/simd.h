// Sixteen floats at a time, for the level of instructions that HEDDLE_SIMD names.
//
// Included only by sources built for that level. Everything lives in a namespace of that name and
// nothing here comes from the standard library's templates: a function shared with other sources
// could be kept in this level's version and run on a processor that lacks it.
#pragma once

#if !defined(HEDDLE_SIMD)
#error "define HEDDLE_SIMD as the level's name"
#endif
// HEDDLE_SIMD_256: vectors of 256 bits, though the compiler may encode them as AVX-512 does.

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) && !defined(HEDDLE_SIMD_256)
#include "device/cpu/simd_avx512.h"
#elif defined(__AVX2__)
#include "device/cpu/simd_avx2.h"
#elif defined(HEDDLE_SIMD_NEON)
#include "device/cpu/simd_neon.h"
#else
#include "device/cpu/simd_portable.h"
#endif

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr std::int64_t kLanes = 16;

inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
inline std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

// How 16 stored elements become floats: one struct for each stored type. What they share is how
// floats are multiplied: see product_tiles.h.

struct StoredF32;

struct FloatTerms {
  using Vector = F32x16;
  using Ready = StoredF32;                   // how vectors are kept for many rows
  static constexpr std::int64_t kTerms = 1;  // multiplied at once in each of 16 columns
  static constexpr bool kIsReady = false;
  static F32x16 broadcast(const float* x) { return cpu::HEDDLE_SIMD::broadcast(*x); }
  static F32x16 multiply_add(F32x16 x, F32x16 w, F32x16 sum) {
    return cpu::HEDDLE_SIMD::multiply_add(x, w, sum);
  }
};

struct StoredF32 : FloatTerms {
  using Element = float;
  static constexpr bool kIsReady = true;
  static void store(float* to, F32x16 x) { store16(to, x); }
  static F32x16 load(const float* from) { return load16(from); }
  static F32x16 load_first(const float* from, std::int64_t n) {
    return cpu::HEDDLE_SIMD::load_first(from, n);
  }
};

struct StoredF16 : FloatTerms {
  using Element = std::uint16_t;
  static F32x16 load(const std::uint16_t* from) { return load16_f16(from); }
  static F32x16 load_first(const std::uint16_t* from, std::int64_t n) {
    std::uint16_t padded[kLanes] = {};
    std::memcpy(padded, from, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
    return load16_f16(padded);
  }
};

struct StoredBf16 : FloatTerms {
  using Element = std::uint16_t;
  static F32x16 load(const std::uint16_t* from) { return load16_bf16(from); }
  static F32x16 load_first(const std::uint16_t* from, std::int64_t n) {
    std::uint16_t padded[kLanes] = {};
    std::memcpy(padded, from, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
    return load16_bf16(padded);
  }
};

/// e^x for x <= 88: within 2 units in the last place; 0 below the smallest normal number.
inline F32x16 exponential(F32x16 x) {
  // x = n ln 2 + r with |r| <= ln(2)/2; ln 2 in two parts, of which the first has trailing zeros,
  // so that n times it is exact. Taylor's series to r^7 leaves less than 1e-8.
  const F32x16 n = round_even(multiply(x, broadcast(1.44269504f)));
  F32x16 r = multiply_add(n, broadcast(-0.693359375f), x);
  r = multiply_add(n, broadcast(2.12194440e-4f), r);
  F32x16 p = broadcast(1.0f / 5040);
  p = multiply_add(p, r, broadcast(1.0f / 720));
  p = multiply_add(p, r, broadcast(1.0f / 120));
  p = multiply_add(p, r, broadcast(1.0f / 24));
  p = multiply_add(p, r, broadcast(1.0f / 6));
  p = multiply_add(p, r, broadcast(0.5f));
  p = multiply_add(p, r, broadcast(1.0f));
  p = multiply_add(p, r, broadcast(1.0f));
  return zero_where_less(x, broadcast(-87.0f), times_power_of_two(p, n));
}

}  // namespace heddle::cpu::HEDDLE_SIMD
