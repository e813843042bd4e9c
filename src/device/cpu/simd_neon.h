// The primitives of simd.h in NEON, as every 64-bit Arm processor has it.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace heddle::cpu::HEDDLE_SIMD {

struct F32x16 {
  float32x4_t v[4];
};

// Registers: 32, four to an F32x16.
inline constexpr int kTileRows = 6;
constexpr int tile_panels(int rows) {
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}
inline constexpr int kValueRows = kTileRows;
constexpr int value_panels(int rows) {
  return tile_panels(rows);
}
inline constexpr int kDotRows = 2, kDotColumns = 2;

template <class F>
[[gnu::always_inline]] inline F32x16 each(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}

inline F32x16 broadcast(float x) {
  const float32x4_t all = vdupq_n_f32(x);
  return {{all, all, all, all}};
}
inline F32x16 zeros() {
  return broadcast(0.0f);
}
inline F32x16 load16(const float* from) {
  return each([from](int i) { return vld1q_f32(from + 4 * i); });
}
// Lane by lane: calls of memcpy would have all sums stored around them.
inline float32x4_t load_first_of_4(const float* from, std::int64_t n) {
  float32x4_t x = vdupq_n_f32(0.0f);
  if (n >= 4) return vld1q_f32(from);
  if (n > 0) x = vld1q_lane_f32(from, x, 0);
  if (n > 1) x = vld1q_lane_f32(from + 1, x, 1);
  if (n > 2) x = vld1q_lane_f32(from + 2, x, 2);
  return x;
}
inline F32x16 load_first(const float* from, std::int64_t n) {
  return each([=](int i) {
    const std::int64_t left = n - 4 * i;
    return left > 0 ? load_first_of_4(from + 4 * i, left) : vdupq_n_f32(0.0f);
  });
}
inline F32x16 load16_f16(const std::uint16_t* from) {
  const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(from)),
                    high = vreinterpretq_f16_u16(vld1q_u16(from + 8));
  return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low),
           vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)}};
}
inline F32x16 load16_bf16(const std::uint16_t* from) {
  const uint16x8_t low = vld1q_u16(from), high = vld1q_u16(from + 8);
  constexpr int kHalf = 16;
  return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), kHalf)),
           vreinterpretq_f32_u32(vshll_high_n_u16(low, kHalf)),
           vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), kHalf)),
           vreinterpretq_f32_u32(vshll_high_n_u16(high, kHalf))}};
}
/// The nearest bf16, as a float; of two the even one.
inline F32x16 round_to_bf16(const F32x16& x) {
  return each([&](int i) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x.v[i]);
    const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(vaddq_u32(bits, even), vdupq_n_u32(0x7fff));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t kept = vbslq_u32(vceqq_f32(x.v[i], x.v[i]), up, quiet);
    return vreinterpretq_f32_u32(vandq_u32(kept, vdupq_n_u32(0xffff0000)));
  });
}
inline void store16(float* to, const F32x16& x) {
  vst1q_f32(to, x.v[0]);
  vst1q_f32(to + 4, x.v[1]);
  vst1q_f32(to + 8, x.v[2]);
  vst1q_f32(to + 12, x.v[3]);
}
inline void store_first_of_4(float* to, float32x4_t x, std::int64_t n) {
  if (n >= 4) return vst1q_f32(to, x);
  if (n > 0) vst1q_lane_f32(to, x, 0);
  if (n > 1) vst1q_lane_f32(to + 1, x, 1);
  if (n > 2) vst1q_lane_f32(to + 2, x, 2);
}
inline void store_first(float* to, const F32x16& x, std::int64_t n) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if (n > 4 * i) store_first_of_4(to + 4 * i, x.v[i], n - 4 * i);
  }
}

inline F32x16 add(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
inline F32x16 subtract(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
inline F32x16 multiply(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
inline F32x16 multiply_add(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
/// The larger; b where a is not a number.
inline F32x16 maximum(const F32x16& a, const F32x16& b) {
  return each([&](int i) { return vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
inline F32x16 round_even(const F32x16& x) {
  return each([&](int i) { return vrndnq_f32(x.v[i]); });
}
inline F32x16 times_power_of_two(const F32x16& x, const F32x16& n) {  // n in [-126, 127]
  return each([&](int i) {
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n.v[i]), vdupq_n_s32(127));
    return vmulq_f32(x.v[i], vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
  });
}
inline F32x16 zero_where_less(const F32x16& x, const F32x16& limit, const F32x16& value) {
  return each([&](int i) {
    const uint32x4_t less = vcltq_f32(x.v[i], limit.v[i]);
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value.v[i]), less));
  });
}

inline float first_lane(const F32x16& x) {
  return vgetq_lane_f32(x.v[0], 0);
}
inline float sum_lanes(const F32x16& x) {  // in the order of the other levels
  const float32x4_t four = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float max_lanes(const F32x16& x) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.v[0], x.v[2]), vmaxq_f32(x.v[1], x.v[3])));
}

inline void transpose4(float32x4_t& a, float32x4_t& b, float32x4_t& c, float32x4_t& d) {
  const auto wide = [](float32x4_t x) { return vreinterpretq_f64_f32(x); };
  const auto narrow = [](float64x2_t x) { return vreinterpretq_f32_f64(x); };
  const float64x2_t ab_even = wide(vtrn1q_f32(a, b)), ab_odd = wide(vtrn2q_f32(a, b)),
                    cd_even = wide(vtrn1q_f32(c, d)), cd_odd = wide(vtrn2q_f32(c, d));
  a = narrow(vtrn1q_f64(ab_even, cd_even));
  b = narrow(vtrn1q_f64(ab_odd, cd_odd));
  c = narrow(vtrn2q_f64(ab_even, cd_even));
  d = narrow(vtrn2q_f64(ab_odd, cd_odd));
}

/// Element j of x[i] becomes element i of x[j].
inline void transpose16(F32x16 (&x)[16]) {
#pragma GCC unroll 4
  for (int row = 0; row < 4; ++row) {
    F32x16* const four = x + 4 * row;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) transpose4(four[0].v[i], four[1].v[i], four[2].v[i], four[3].v[i]);
  }
#pragma GCC unroll 4
  for (int row = 0; row < 4; ++row) {
#pragma GCC unroll 4
    for (int column = row + 1; column < 4; ++column) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const float32x4_t above = x[4 * row + i].v[column];
        x[4 * row + i].v[column] = x[4 * column + i].v[row];
        x[4 * column + i].v[row] = above;
      }
    }
  }
}

}  // namespace heddle::cpu::HEDDLE_SIMD
