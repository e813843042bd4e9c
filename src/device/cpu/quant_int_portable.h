// The primitives of quant_int.h in C++ with GCC's vector types, which become what the baseline has.
#pragma once

#include <cstdint>
#include <cstring>

#include "device/cpu/simd.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace heddle::cpu::HEDDLE_SIMD {

typedef std::int8_t SixteenBytes __attribute__((vector_size(16)));
typedef std::int16_t EightShorts __attribute__((vector_size(16)));
typedef std::uint16_t EightUnsigned __attribute__((vector_size(16)));

struct Bytes16 {
  SixteenBytes v;
};
struct Bytes32 {
  SixteenBytes low, high;
};
struct I16x32 {
  EightShorts v[4];
};
struct I32x16 {
  FourInts v[4];
};
struct GroupScales {
  std::int16_t v[16];
};

// Rows and columns of weights that are computed together; 16 registers, four to an I32x16.
inline constexpr int kQuantRows = 2, kQuantColumns = 1;
// For weights in panels: rows that take codes straight from them, how far loops are unrolled, and
// the rows and panels that are computed together, with a sum of integers and one of floats each.
inline constexpr int kFewRows = 0, kUnrolledParts = 1, kUnrolledPairs = 2;
inline constexpr int kUnpackedRows = 2, kUnpackedPanels = 1;

inline Bytes16 two_words(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t words[2] = {low, high};
  Bytes16 x;
  std::memcpy(&x, words, sizeof x);
  return x;
}
inline Bytes16 each_twice(std::uint64_t bytes) {
  const SixteenBytes once = two_words(bytes, 0).v;
  return {__builtin_shufflevector(once, once, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)};
}
inline Bytes16 load_bytes16(const void* from) {
  Bytes16 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
// Bytes are shifted in pairs: what crosses between them is for a mask to take away.
inline SixteenBytes shift_right(SixteenBytes x, int shift) {
  return reinterpret_cast<SixteenBytes>(reinterpret_cast<EightUnsigned>(x) >>
                                        static_cast<std::uint16_t>(shift));
}
inline SixteenBytes shift_left(SixteenBytes x, int shift) {
  return reinterpret_cast<SixteenBytes>(reinterpret_cast<EightUnsigned>(x)
                                        << static_cast<std::uint16_t>(shift));
}
inline Bytes16 add(Bytes16 a, int b) {
  return {a.v + static_cast<std::int8_t>(b)};
}
inline Bytes16 bits(Bytes16 x, int shift, int mask) {
  return {shift_right(x.v, shift) & static_cast<std::int8_t>(mask)};
}
inline Bytes16 bits_up(Bytes16 x, int shift, int mask) {
  return {shift_left(x.v, shift) & static_cast<std::int8_t>(mask)};
}
inline Bytes16 bit_or(Bytes16 a, Bytes16 b) {
  return {a.v | b.v};
}
inline F32x16 to_float(Bytes16 x) {
  return each([&](int i) {
    return Four{static_cast<float>(x.v[4 * i]), static_cast<float>(x.v[4 * i + 1]),
                static_cast<float>(x.v[4 * i + 2]), static_cast<float>(x.v[4 * i + 3])};
  });
}

inline Bytes32 load_bytes32(const void* from) {
  Bytes32 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline Bytes32 nibbles(const std::uint8_t* from) {
  const Bytes16 both = load_bytes16(from);
  return {bits(both, 0, 15).v, bits(both, 4, 15).v};
}
inline Bytes32 spread_bits(const std::uint8_t* from, int value) {
  const SixteenBytes bit{1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128};
  const auto half = [&](int first) {
    const std::uint64_t ones = 0x0101010101010101;
    const SixteenBytes bytes = two_words(from[first] * ones, from[first + 1] * ones).v;
    return ((bytes & bit) == bit) & static_cast<std::int8_t>(value);
  };
  return {half(0), half(2)};
}
inline Bytes32 bits(Bytes32 x, int shift, int mask) {
  const auto m = static_cast<std::int8_t>(mask);
  return {shift_right(x.low, shift) & m, shift_right(x.high, shift) & m};
}
inline Bytes32 bits_up(Bytes32 x, int shift, int mask) {
  const auto m = static_cast<std::int8_t>(mask);
  return {shift_left(x.low, shift) & m, shift_left(x.high, shift) & m};
}
inline Bytes32 bit_or(Bytes32 a, Bytes32 b) {
  return {a.low | b.low, a.high | b.high};
}
inline Bytes32 add(Bytes32 a, int b) {
  const auto all = static_cast<std::int8_t>(b);
  return {a.low + all, a.high + all};
}
// By way of words: single bytes that were stored would hold up the load of them all.
inline std::uint64_t look_up_word(const std::int8_t* table, std::uint64_t codes) {
  std::uint64_t word = 0;
#pragma GCC unroll 8
  for (int i = 0; i < 64; i += 8) {
    word |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(table[codes >> i & 15])) << i;
  }
  return word;
}
inline Bytes32 look_up(const std::int8_t* table, const Bytes32& codes) {
  std::uint64_t words[4];
  std::memcpy(words, &codes, sizeof words);
  return {two_words(look_up_word(table, words[0]), look_up_word(table, words[1])).v,
          two_words(look_up_word(table, words[2]), look_up_word(table, words[3])).v};
}

// A byte above each byte, and then its sign down over it.
inline EightShorts widen_low(SixteenBytes x) {
  return reinterpret_cast<EightShorts>(__builtin_shufflevector(
             SixteenBytes{}, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)) >>
         8;
}
inline EightShorts widen_high(SixteenBytes x) {
  return reinterpret_cast<EightShorts>(__builtin_shufflevector(
             SixteenBytes{}, x, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)) >>
         8;
}

inline I16x32 widen(const Bytes32& x) {
  return {{widen_low(x.low), widen_high(x.low), widen_low(x.high), widen_high(x.high)}};
}
inline I16x32 load_codes(const std::int16_t* from) {
  I16x32 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline I16x32 load_any(const void* from) {
  I16x32 x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline void store_codes(std::int16_t* to, const I16x32& x) {
  std::memcpy(to, &x, sizeof x);
}
template <class F>
inline I16x32 each_shorts(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}
/// Two codes, the `k`th two from `from` on, for each of 16 columns.
inline I16x32 broadcast_pair(const std::int16_t* from, int k) {
  const std::int16_t a = from[2 * k], b = from[2 * k + 1];
  const EightShorts all{a, b, a, b, a, b, a, b};
  return {{all, all, all, all}};
}
inline I16x32 add(const I16x32& a, int b) {
  return each_shorts([&](int i) { return a.v[i] + static_cast<std::int16_t>(b); });
}
inline EightShorts shift_right(EightShorts x, int shift) {
  const auto all = reinterpret_cast<EightUnsigned>(x);
  return reinterpret_cast<EightShorts>(shift >= 0 ? all >> static_cast<std::uint16_t>(shift)
                                                  : all << static_cast<std::uint16_t>(-shift));
}
/// `count` bits from bit `shift` on.
inline I16x32 bits(const I16x32& x, int shift, int count) {
  const auto mask = static_cast<std::int16_t>((1 << count) - 1);
  return each_shorts([&](int i) { return shift_right(x.v[i], shift) & mask; });
}
/// x with the bits of `more` at `mask` once it is shifted to the right, or to the left.
inline I16x32 with_bits(const I16x32& x, const I16x32& more, int shift, int mask) {
  const auto all = static_cast<std::int16_t>(mask);
  return each_shorts([&](int i) { return x.v[i] | (shift_right(more.v[i], shift) & all); });
}
inline I16x32 low_bytes(const I16x32& x) {
  return each_shorts([&](int i) { return shift_right(x.v[i], -8) >> 8; });
}
inline I16x32 high_bytes(const I16x32& x) {
  return each_shorts([&](int i) { return x.v[i] >> 8; });
}
inline I16x32 look_up(const std::int8_t* table, const I16x32& codes) {
  return each_shorts([&](int i) {
    EightShorts found{};
    for (int lane = 0; lane < 8; ++lane) found[lane] = table[codes.v[i][lane] & 15];
    return found;
  });
}
inline GroupScales group_scales(Bytes16 x) {
  GroupScales scales;
  for (int i = 0; i < 16; ++i) scales.v[i] = x.v[i];
  return scales;
}
inline I16x32 scale(const I16x32& x, const GroupScales& scales, int pair) {
  const std::int16_t a = scales.v[2 * pair], b = scales.v[2 * pair + 1];
  return {{x.v[0] * a, x.v[1] * a, x.v[2] * b, x.v[3] * b}};
}

inline I32x16 no_sums() {
  return {};
}
inline FourInts dot(EightShorts a, EightShorts b) {
#if defined(__SSE2__)
  return reinterpret_cast<FourInts>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  const auto pairs_a = reinterpret_cast<FourInts>(a), pairs_b = reinterpret_cast<FourInts>(b);
  return ((pairs_a << 16) >> 16) * ((pairs_b << 16) >> 16) + (pairs_a >> 16) * (pairs_b >> 16);
#endif
}
inline I32x16 dot(const I16x32& a, const I16x32& b) {
  return {{dot(a.v[0], b.v[0]), dot(a.v[1], b.v[1]), dot(a.v[2], b.v[2]), dot(a.v[3], b.v[3])}};
}
inline I32x16 dot_add(const I32x16& sums, const I16x32& a, const I16x32& b) {
  const I32x16 more = dot(a, b);
  return {
      {sums.v[0] + more.v[0], sums.v[1] + more.v[1], sums.v[2] + more.v[2], sums.v[3] + more.v[3]}};
}
inline I32x16 add(const I32x16& a, const I32x16& b) {
  return {{a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2], a.v[3] + b.v[3]}};
}
/// Of whole numbers.
inline I32x16 to_int(const F32x16& x) {
  return {{__builtin_convertvector(x.v[0], FourInts), __builtin_convertvector(x.v[1], FourInts),
           __builtin_convertvector(x.v[2], FourInts), __builtin_convertvector(x.v[3], FourInts)}};
}
inline F32x16 to_float(const I32x16& x) {
  return each([&](int i) { return __builtin_convertvector(x.v[i], Four); });
}
inline F32x16 broadcast_f16(std::uint16_t x) {
  std::uint16_t all[kLanes];
  for (std::uint16_t& lane : all) lane = x;
  return load16_f16(all);
}
/// Of eight f16 each.
inline F32x16 floats_of_f16(Bytes16 low, Bytes16 high) {
  const Bytes16 both[2] = {low, high};
  std::uint16_t all[kLanes];
  std::memcpy(all, both, sizeof all);
  return load16_f16(all);
}

inline F32x16 magnitude(const F32x16& x) {
  return each([&](int i) {
    return reinterpret_cast<Four>(reinterpret_cast<FourInts>(x.v[i]) & 0x7fffffff);
  });
}
inline F32x16 divide(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return a.v[i] / b.v[i]; });
}
/// Whole numbers within the target's range.
template <class T>
inline void store_whole(T* to, const F32x16& x) {
  for (int i = 0; i < kLanes; ++i) to[i] = static_cast<T>(x.v[i / 4][i % 4]);
}
inline void store_i16(std::int16_t* to, const F32x16& x) {
  store_whole(to, x);
}
inline void store_i8(std::int8_t* to, const F32x16& x) {
  store_whole(to, x);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
