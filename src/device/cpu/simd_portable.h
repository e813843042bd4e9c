// The primitives of simd.h in C++ with GCC's vector types, which become what the baseline has.
#pragma once

#include <cstdint>
#include <cstring>

namespace heddle::cpu::HEDDLE_SIMD {

typedef float Four __attribute__((vector_size(16)));
typedef std::int32_t FourInts __attribute__((vector_size(16)));

struct F32x16 {
  Four v[4];
};

// Registers: 16, four to an F32x16.
inline constexpr int kTileRows = 2;
constexpr int tile_panels(int rows) {
  return rows == 1 ? 2 : 1;
}
inline constexpr int kValueRows = kTileRows;
constexpr int value_panels(int rows) {
  return tile_panels(rows);
}
inline constexpr int kDotRows = 1, kDotColumns = 2;

template <class F>
inline F32x16 each(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}

inline F32x16 broadcast(float x) {
  return each([x](int) { return Four{x, x, x, x}; });
}
inline F32x16 zeros() {
  return broadcast(0.0f);
}
inline F32x16 load16(const float* from) {
  F32x16 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline F32x16 load_first(const float* from, std::int64_t n) {
  F32x16 x = zeros();
  if (n > 0) std::memcpy(&x, from, static_cast<std::size_t>(n) * sizeof(float));
  return x;
}
inline void store16(float* to, F32x16 x) {
  std::memcpy(to, &x, sizeof x);
}
inline void store_first(float* to, F32x16 x, std::int64_t n) {
  if (n > 0) std::memcpy(to, &x, static_cast<std::size_t>(n) * sizeof(float));
}

inline FourInts widen(const std::uint16_t* from) {
  typedef std::uint16_t FourShorts __attribute__((vector_size(8)));
  FourShorts bits;
  std::memcpy(&bits, from, sizeof bits);
  return __builtin_convertvector(bits, FourInts);
}
inline F32x16 load16_f16(const std::uint16_t* from) {
  return each([from](int i) {
    // The exponent and significand as a float's lie 112 too low, which a product puts right
    // exactly, subnormals included; infinities and NaNs then want the top exponent.
    const FourInts bits = widen(from + 4 * i), magnitude = bits & 0x7fff;
    const Four scaled = reinterpret_cast<Four>(magnitude << 13) * 0x1p112f;
    const FourInts top = (magnitude >= 0x7c00) & 0x7f800000;
    const FourInts quiet = (magnitude > 0x7c00) & 0x00400000;
    return reinterpret_cast<Four>(reinterpret_cast<FourInts>(scaled) | top | quiet |
                                  (bits & 0x8000) << 16);
  });
}
inline F32x16 load16_bf16(const std::uint16_t* from) {
  return each([from](int i) { return reinterpret_cast<Four>(widen(from + 4 * i) << 16); });
}

/// The nearest bf16, as a float; of two the even one.
inline F32x16 round_to_bf16(const F32x16& x) {
  typedef std::uint32_t FourBits __attribute__((vector_size(16)));
  return each([&](int i) {
    const FourBits bits = reinterpret_cast<FourBits>(x.v[i]);
    const FourBits up = bits + 0x7fff + (bits >> 16 & 1);
    const auto nothing = reinterpret_cast<FourBits>(x.v[i] != x.v[i]);
    const FourBits kept = (nothing & (bits | 0x400000)) | (~nothing & up);
    return reinterpret_cast<Four>(kept & 0xffff0000);
  });
}

inline F32x16 add(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32x16 subtract(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32x16 multiply(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32x16 multiply_add(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline Four select(FourInts condition, Four a, Four b) {
  return reinterpret_cast<Four>((condition & reinterpret_cast<FourInts>(a)) |
                                (~condition & reinterpret_cast<FourInts>(b)));
}
/// The larger; b where a is not a number.
inline F32x16 maximum(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return select(a.v[i] > b.v[i], a.v[i], b.v[i]); });
}
inline F32x16 round_even(const F32x16& x) {  // |x| < 2^22: the sum has no bits below the point
  constexpr float kShift = 0x1.8p23f;
  return each([&](int i) { return (x.v[i] + kShift) - kShift; });
}
inline F32x16 times_power_of_two(const F32x16& x, const F32x16& n) {  // n in [-126, 127]
  return each([&](int i) {
    // n's low bits, shifted up to where a float's exponent is; the bits above wrap away.
    const FourInts shifted = reinterpret_cast<FourInts>(n.v[i] + (0x1.8p23f + 127.0f));
    typedef std::uint32_t FourUnsigned __attribute__((vector_size(16)));
    return x.v[i] * reinterpret_cast<Four>(reinterpret_cast<FourUnsigned>(shifted) << 23);
  });
}
inline F32x16 zero_where_less(const F32x16& x, const F32x16& limit, const F32x16& value) {
  return each([&](int i) { return select(x.v[i] < limit.v[i], Four{}, value.v[i]); });
}

inline float first_lane(const F32x16& x) {
  return x.v[0][0];
}
inline float sum_lanes(const F32x16& x) {
  const Four four = (x.v[0] + x.v[2]) + (x.v[1] + x.v[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
inline float max_lanes(const F32x16& x) {
  float largest = x.v[0][0];
  for (const Four& four : x.v) {
    for (int i = 0; i < 4; ++i) largest = four[i] > largest ? four[i] : largest;
  }
  return largest;
}

/// Element j of x[i] becomes element i of x[j].
inline void transpose16(F32x16 (&x)[16]) {
  float from[16][16], to[16][16];
  std::memcpy(from, x, sizeof from);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) to[j][i] = from[i][j];
  }
  std::memcpy(x, to, sizeof to);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
