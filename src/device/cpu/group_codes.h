// Codes of eight bits and less: the float formats of OCP's "8-bit Floating Point" and
// "Microscaling Formats", and what a GroupFormat's codes are to the loops that read them.
#pragma once

#include <bit>
#include <cstdint>

#include "heddle/op_quantized.h"

namespace heddle::cpu {

/// What a code means; the index of arrays in GroupLoops.
enum class GroupCode : std::uint8_t { bits2, bits3, bits4, bits5, bits6, bits8, e2m1, e4m3 };
inline constexpr int kGroupCodes = 8;

inline GroupCode group_code(const GroupFormat& format) noexcept {
  if (format.mode == QuantMode::mxfp8) return GroupCode::e4m3;
  if (format.mode != QuantMode::affine) return GroupCode::e2m1;
  return format.bits == 8 ? GroupCode::bits8 : static_cast<GroupCode>(format.bits - 2);
}

/// How scales are stored.
enum class GroupScale : std::uint8_t { f32, f16, bf16, e8m0, e4m3 };

inline constexpr float kLargestE4m3 = 448.0f, kLargestE2m1 = 6.0f;

/// A float that is 2^-120 times the code's value: the fields lie where a float has them, and
/// exponents are less by the difference of their biases.
inline std::uint32_t scaled_e4m3_bits(std::uint32_t code) noexcept {
  return (code & 0x80u) << 24 | (code & 0x7fu) << 20;
}
inline constexpr float kE4m3Scale = 0x1p120f;

inline float decode_e4m3(std::uint8_t code) noexcept {
  return std::bit_cast<float>(scaled_e4m3_bits(code)) * kE4m3Scale;
}

/// The nearest, ties to even; 448 beyond it and for NaN.
inline std::uint8_t encode_e4m3(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const float size = std::bit_cast<float>(magnitude);
  constexpr std::uint8_t kLargest = 0x7e;
  if (!(size < kLargestE4m3)) return sign | kLargest;
  constexpr float kSmallestNormal = 0x1p-6f, kUnits = 0x1p9f, kRound = 0x1.8p23f;
  if (size < kSmallestNormal) {
    return sign | static_cast<std::uint8_t>((size * kUnits + kRound) - kRound);
  }
  constexpr std::uint32_t kBias = (127 - 7) << 3;
  const std::uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
  return sign | static_cast<std::uint8_t>((rounded >> 20) - kBias);
}

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6: the nearest, ties to the even code; 6 beyond it, 0 for NaN.
inline std::uint8_t encode_e2m1(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float size = std::bit_cast<float>(bits & 0x7fffffffu);
  const int code = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) +
                   (size > 2.5f) + (size >= 3.5f) + (size > 5.0f);
  return static_cast<std::uint8_t>((bits >> 28 & 8u) | static_cast<std::uint32_t>(code));
}

}  // namespace heddle::cpu
