// f16 (IEEE binary16) and bf16 as storage types. Arithmetic happens in float.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle {

/// Round to nearest even; overflow becomes infinity; a NaN stays a (quiet) NaN.
std::uint16_t f32_to_f16_bits(float value) noexcept;
float f16_bits_to_f32(std::uint16_t bits) noexcept;

struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value) noexcept : bits(f32_to_f16_bits(value)) {}
  static constexpr f16 from_bits(std::uint16_t b) noexcept {
    f16 h;
    h.bits = b;
    return h;
  }
  explicit operator float() const noexcept { return f16_bits_to_f32(bits); }
};

struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
               : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  static constexpr bf16 from_bits(std::uint16_t b) noexcept {
    bf16 h;
    h.bits = b;
    return h;
  }
  explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

}  // namespace heddle
