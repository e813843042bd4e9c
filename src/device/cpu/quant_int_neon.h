// The primitives of quant_int.h in NEON.
//
// Integers of 16 bits are held with those of even index apart from the others, so that a product of
// pairs is two multiply-adds that widen, without any rearranging of sums.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

struct Bytes16 {
  uint8x16_t v;
};
struct Bytes32 {
  uint8x16_t low, high;
};
struct I16x32 {  // integer 2i is even[i / 8][i % 8], integer 2i + 1 odd[i / 8][i % 8]
  int16x8_t even[2], odd[2];
};
struct I32x16 {
  int32x4_t v[4];
};
struct GroupScales {
  alignas(16) std::int16_t v[16];
};

// Rows and columns of weights that are computed together; 32 registers, four to an I32x16.
inline constexpr int kQuantRows = 4, kQuantColumns = 1;
// For weights in panels: rows that take codes straight from them, how far loops are unrolled, and
// the rows and panels that are computed together, with a sum of integers and one of floats each.
inline constexpr int kFewRows = 2, kUnrolledParts = 1, kUnrolledPairs = 16;
inline constexpr int kUnpackedRows = 4, kUnpackedPanels = 1;

inline uint8x16_t all_bytes(int value) {
  return vdupq_n_u8(static_cast<std::uint8_t>(value));
}
inline uint8x16_t bits(uint8x16_t x, int shift, int mask) {
  return (x >> static_cast<std::uint8_t>(shift)) & all_bytes(mask);
}
inline uint8x16_t bits_up(uint8x16_t x, int shift, int mask) {
  return (x << static_cast<std::uint8_t>(shift)) & all_bytes(mask);
}

inline Bytes16 two_words(std::uint64_t low, std::uint64_t high) {
  return {vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)))};
}
inline Bytes16 each_twice(std::uint64_t bytes) {
  const uint8x16_t once = two_words(bytes, 0).v;
  return {vzip1q_u8(once, once)};
}
inline Bytes16 load_bytes16(const void* from) {
  return {vld1q_u8(static_cast<const std::uint8_t*>(from))};
}
inline Bytes16 add(Bytes16 a, int b) {
  return {vaddq_u8(a.v, all_bytes(b))};
}
inline Bytes16 bits(Bytes16 x, int shift, int mask) {
  return {bits(x.v, shift, mask)};
}
inline Bytes16 bits_up(Bytes16 x, int shift, int mask) {
  return {bits_up(x.v, shift, mask)};
}
inline Bytes16 bit_or(Bytes16 a, Bytes16 b) {
  return {vorrq_u8(a.v, b.v)};
}
inline F32x16 to_float(Bytes16 x) {
  const int8x16_t bytes = vreinterpretq_s8_u8(x.v);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
}

inline Bytes32 load_bytes32(const void* from) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
}
inline Bytes32 nibbles(const std::uint8_t* from) {
  const uint8x16_t both = vld1q_u8(from);
  return {bits(both, 0, 15), bits(both, 4, 15)};
}
inline Bytes32 spread_bits(const std::uint8_t* from, int value) {
  // Byte i takes byte i / 8 of the four and keeps its bit i % 8.
  const uint8x16_t bit = two_words(0x8040201008040201, 0x8040201008040201).v;
  std::uint32_t mask;
  std::memcpy(&mask, from, sizeof mask);
  const uint8x16_t four = vreinterpretq_u8_u32(vdupq_n_u32(mask));
  const uint8x16_t low = vqtbl1q_u8(four, two_words(0, 0x0101010101010101).v),
                   high = vqtbl1q_u8(four, two_words(0x0202020202020202, 0x0303030303030303).v);
  const uint8x16_t values = all_bytes(value);
  return {vtstq_u8(low, bit) & values, vtstq_u8(high, bit) & values};
}
inline Bytes32 bits(Bytes32 x, int shift, int mask) {
  return {bits(x.low, shift, mask), bits(x.high, shift, mask)};
}
inline Bytes32 bits_up(Bytes32 x, int shift, int mask) {
  return {bits_up(x.low, shift, mask), bits_up(x.high, shift, mask)};
}
inline Bytes32 bit_or(Bytes32 a, Bytes32 b) {
  return {vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)};
}
inline Bytes32 add(Bytes32 a, int b) {
  return {vaddq_u8(a.low, all_bytes(b)), vaddq_u8(a.high, all_bytes(b))};
}
inline Bytes32 look_up(const std::int8_t* table, Bytes32 codes) {
  const uint8x16_t bytes = load_bytes16(table).v;
  return {vqtbl1q_u8(bytes, codes.low), vqtbl1q_u8(bytes, codes.high)};
}

template <class F>
[[gnu::always_inline]] inline I16x32 each_shorts(const I16x32& x, const F& f) {
  return {{f(x.even[0]), f(x.even[1])}, {f(x.odd[0]), f(x.odd[1])}};
}
inline I16x32 widen(Bytes32 x) {
  const int8x16_t low = vreinterpretq_s8_u8(x.low), high = vreinterpretq_s8_u8(x.high);
  const int8x16_t even = vuzp1q_s8(low, high), odd = vuzp2q_s8(low, high);
  return {{vmovl_s8(vget_low_s8(even)), vmovl_high_s8(even)},
          {vmovl_s8(vget_low_s8(odd)), vmovl_high_s8(odd)}};
}
inline I16x32 load_any(const void* from) {
  const auto* shorts = static_cast<const std::int16_t*>(from);
  const int16x8x2_t low = vld2q_s16(shorts), high = vld2q_s16(shorts + 16);
  return {{low.val[0], high.val[0]}, {low.val[1], high.val[1]}};
}
/// As store_codes left them.
inline I16x32 load_codes(const std::int16_t* from) {
  return {{vld1q_s16(from), vld1q_s16(from + 8)}, {vld1q_s16(from + 16), vld1q_s16(from + 24)}};
}
inline void store_codes(std::int16_t* to, const I16x32& x) {
  vst1q_s16(to, x.even[0]);
  vst1q_s16(to + 8, x.even[1]);
  vst1q_s16(to + 16, x.odd[0]);
  vst1q_s16(to + 24, x.odd[1]);
}
/// Two codes, the `k`th two from `from` on, for each of 16 columns. By way of eight at once, whose
/// lanes multiply-adds can take where k is known.
inline I16x32 broadcast_pair(const std::int16_t* from, int k) {
  const int16x8_t eight = vld1q_s16(from + k / 4 * 8);
  const int16x8_t first = vdupq_n_s16(eight[k % 4 * 2]), second = vdupq_n_s16(eight[k % 4 * 2 + 1]);
  return {{first, first}, {second, second}};
}
inline I16x32 add(const I16x32& a, int b) {
  const int16x8_t all = vdupq_n_s16(static_cast<std::int16_t>(b));
  return each_shorts(a, [all](int16x8_t x) { return vaddq_s16(x, all); });
}
inline int16x8_t shift_right(int16x8_t x, int shift) {
  const uint16x8_t all = vreinterpretq_u16_s16(x);
  return vreinterpretq_s16_u16(shift >= 0 ? all >> static_cast<std::uint16_t>(shift)
                                          : all << static_cast<std::uint16_t>(-shift));
}
/// `count` bits from bit `shift` on.
inline I16x32 bits(const I16x32& x, int shift, int count) {
  const int16x8_t mask = vdupq_n_s16(static_cast<std::int16_t>((1 << count) - 1));
  return each_shorts(x, [=](int16x8_t all) {
    const int16x8_t low = shift_right(all, shift);
    return shift + count == 16 ? low : vandq_s16(low, mask);
  });
}
/// x with the bits of `more` at `mask` once it is shifted to the right, or to the left.
inline I16x32 with_bits(const I16x32& x, const I16x32& more, int shift, int mask) {
  const int16x8_t masks = vdupq_n_s16(static_cast<std::int16_t>(mask));
  const I16x32 there =
      each_shorts(more, [=](int16x8_t all) { return vandq_s16(shift_right(all, shift), masks); });
  return {{vorrq_s16(x.even[0], there.even[0]), vorrq_s16(x.even[1], there.even[1])},
          {vorrq_s16(x.odd[0], there.odd[0]), vorrq_s16(x.odd[1], there.odd[1])}};
}
inline I16x32 high_bytes(const I16x32& x) {
  return each_shorts(x, [](int16x8_t all) { return vshrq_n_s16(all, 8); });
}
inline I16x32 low_bytes(const I16x32& x) {
  return each_shorts(x, [](int16x8_t all) { return vshrq_n_s16(vshlq_n_s16(all, 8), 8); });
}
inline I16x32 look_up(const std::int8_t* table, const I16x32& codes) {
  const int8x16_t bytes = vld1q_s8(table);
  // The high bytes are zero and find the table's first; they are shifted away.
  return low_bytes(each_shorts(codes, [bytes](int16x8_t all) {
    return vreinterpretq_s16_s8(vqtbl1q_s8(bytes, vreinterpretq_u8_s16(all)));
  }));
}
inline GroupScales group_scales(Bytes16 x) {
  const int8x16_t bytes = vreinterpretq_s8_u8(x.v);
  GroupScales scales;
  vst1q_s16(scales.v, vmovl_s8(vget_low_s8(bytes)));
  vst1q_s16(scales.v + 8, vmovl_high_s8(bytes));
  return scales;
}
inline I16x32 scale(const I16x32& x, const GroupScales& scales, int pair) {
  const std::int16_t a = scales.v[2 * pair], b = scales.v[2 * pair + 1];
  return {{vmulq_n_s16(x.even[0], a), vmulq_n_s16(x.even[1], b)},
          {vmulq_n_s16(x.odd[0], a), vmulq_n_s16(x.odd[1], b)}};
}

template <class F>
[[gnu::always_inline]] inline I32x16 each_sum(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}
inline I32x16 no_sums() {
  const int32x4_t zero = vdupq_n_s32(0);
  return {{zero, zero, zero, zero}};
}
inline int32x4_t add_low(int32x4_t sum, int16x8_t a, int16x8_t b) {
  return vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b));
}
inline I32x16 dot_add(const I32x16& sums, const I16x32& a, const I16x32& b) {
  const I32x16 even{
      {add_low(sums.v[0], a.even[0], b.even[0]), vmlal_high_s16(sums.v[1], a.even[0], b.even[0]),
       add_low(sums.v[2], a.even[1], b.even[1]), vmlal_high_s16(sums.v[3], a.even[1], b.even[1])}};
  return {{add_low(even.v[0], a.odd[0], b.odd[0]), vmlal_high_s16(even.v[1], a.odd[0], b.odd[0]),
           add_low(even.v[2], a.odd[1], b.odd[1]), vmlal_high_s16(even.v[3], a.odd[1], b.odd[1])}};
}
inline I32x16 dot(const I16x32& a, const I16x32& b) {
  return dot_add(no_sums(), a, b);
}
inline I32x16 add(const I32x16& a, const I32x16& b) {
  return each_sum([&](int i) { return vaddq_s32(a.v[i], b.v[i]); });
}
/// Of whole numbers.
inline I32x16 to_int(const F32x16& x) {
  return each_sum([&](int i) { return vcvtq_s32_f32(x.v[i]); });
}
inline F32x16 to_float(const I32x16& x) {
  return each([&](int i) { return vcvtq_f32_s32(x.v[i]); });
}
inline F32x16 broadcast_f16(std::uint16_t x) {
  const float32x4_t all = vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x)));
  return {{all, all, all, all}};
}
/// Of eight f16 each.
inline F32x16 floats_of_f16(Bytes16 low, Bytes16 high) {
  const float16x8_t a = vreinterpretq_f16_u8(low.v), b = vreinterpretq_f16_u8(high.v);
  return {{vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)),
           vcvt_high_f32_f16(b)}};
}

inline F32x16 magnitude(const F32x16& x) {
  return each([&](int i) { return vabsq_f32(x.v[i]); });
}
inline F32x16 divide(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
inline int16x8_t to_shorts(float32x4_t low, float32x4_t high) {
  return vmovn_high_s32(vmovn_s32(vcvtq_s32_f32(low)), vcvtq_s32_f32(high));
}
/// Whole numbers within the target's range.
inline void store_i16(std::int16_t* to, const F32x16& x) {
  vst1q_s16(to, to_shorts(x.v[0], x.v[1]));
  vst1q_s16(to + 8, to_shorts(x.v[2], x.v[3]));
}
inline void store_i8(std::int8_t* to, const F32x16& x) {
  vst1q_s8(to, vmovn_high_s16(vmovn_s16(to_shorts(x.v[0], x.v[1])), to_shorts(x.v[2], x.v[3])));
}

}  // namespace heddle::cpu::HEDDLE_SIMD
