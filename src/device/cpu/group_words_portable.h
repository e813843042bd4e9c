// Words of codes and what becomes of them, in C++ with GCC's vector types.
#pragma once

#include <cstdint>
#include <cstring>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

typedef std::uint32_t SixteenWords __attribute__((vector_size(64)));
typedef std::int32_t SixteenInts __attribute__((vector_size(64)));
typedef float SixteenFloats __attribute__((vector_size(64)));

struct U32x16 {
  SixteenWords v;
};
/// Sixteen floats by the low four bits of an index.
struct Table16 {
  float v[16];
};

inline constexpr int kGroupRowsAtOnce = 2;

inline F32x16 as_sixteen(const SixteenFloats& x) {
  F32x16 result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

inline U32x16 load_words(const std::uint32_t* from) {
  U32x16 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline U32x16 load_first_words(const std::uint32_t* from, std::int64_t n) {
  U32x16 x = {};
  if (n > 0) std::memcpy(&x, from, static_cast<std::size_t>(n) * sizeof(std::uint32_t));
  return x;
}
inline U32x16 widen_bytes(const std::uint8_t* from) {
  U32x16 x;
  for (int i = 0; i < 16; ++i) x.v[i] = from[i];
  return x;
}
template <int kBits>
inline U32x16 shift_right(U32x16 x) {
  return {x.v >> kBits};
}
template <int kBits>
inline U32x16 shift_left(U32x16 x) {
  return {x.v << kBits};
}
inline U32x16 bit_and(U32x16 x, std::uint32_t bits) {
  return {x.v & bits};
}
inline U32x16 bit_or(U32x16 a, U32x16 b) {
  return {a.v | b.v};
}
inline U32x16 at_least(U32x16 x, std::uint32_t least) {
  for (int i = 0; i < 16; ++i) {
    if (x.v[i] < least) x.v[i] = least;
  }
  return x;
}
inline F32x16 to_floats(U32x16 x) {
  return as_sixteen(__builtin_convertvector(reinterpret_cast<SixteenInts&>(x.v), SixteenFloats));
}
inline F32x16 as_floats(U32x16 x) {
  F32x16 result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

inline Table16 load_table(const float* values) {
  Table16 table;
  std::memcpy(&table, values, sizeof table);
  return table;
}
/// values[bits [kShift, kShift + 4) of x]
template <int kShift>
inline F32x16 look_up(const Table16& table, U32x16 x) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = table.v[x.v[i] >> kShift & 15u];
  return load16(values);
}

/// Codes 16 * half ... of kBits bits in `words` words, of which the first is at `from`.
template <int kBits>
inline U32x16 unpack_codes(const std::uint32_t* from, std::int64_t words, int half) {
  U32x16 codes;
  for (int i = 0; i < 16; ++i) {
    const std::int64_t bit = std::int64_t{16 * half + i} * kBits, word = bit / 32;
    const std::uint64_t low = word < words ? from[word] : 0;
    const std::uint64_t high = word + 1 < words ? from[word + 1] : 0;
    codes.v[i] = static_cast<std::uint32_t>((high << 32 | low) >> bit % 32) & ((1u << kBits) - 1u);
  }
  return codes;
}

/// How many values there are, each of which is repeated in its turn.
struct Spread {
  int count;
};
inline Spread make_spread(int count) {  // 1, 2, 4 or 8
  return {count};
}
inline F32x16 spread_from(const float* from, const Spread& spread) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = from[i * spread.count / 16];
  return load16(values);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
