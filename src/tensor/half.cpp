#include "heddle/half.h"

namespace heddle {

namespace {

constexpr std::uint32_t kF32Infinity = 0x7f800000u;
constexpr std::uint32_t kF32HiddenBit = 0x00800000u;
constexpr std::uint32_t kF16Infinity = 0x7c00u;
constexpr std::uint32_t kF16QuietNan = 0x7e00u;
// 2^-14, the smallest normal f16, and 65520, the midpoint above the largest: the tie goes to the
// even neighbour, which is infinity.
constexpr std::uint32_t kF16SmallestNormalAsF32 = 0x38800000u;
constexpr std::uint32_t kF16OverflowAsF32 = 0x477ff000u;

// value / 2^shift to nearest, ties to even; shift in [1, 31].
std::uint32_t shift_round_even(std::uint32_t value, int shift) {
  const std::uint32_t below_half = (1u << (shift - 1)) - 1u;
  const std::uint32_t odd = (value >> shift) & 1u;
  return (value + below_half + odd) >> shift;
}

std::uint32_t magnitude_to_f16(std::uint32_t magnitude) {
  if (magnitude > kF32Infinity) return kF16QuietNan | ((magnitude >> 13) & 0x1ffu);
  if (magnitude >= kF16OverflowAsF32) return kF16Infinity;
  if (magnitude >= kF16SmallestNormalAsF32) {
    constexpr std::uint32_t kRebias = (127u - 15u) << 23;
    return shift_round_even(magnitude - kRebias, 13);  // a carry correctly raises the exponent
  }
  // Subnormal results count units of 2^-24; a float with biased exponent e has units of 2^(e-150).
  const int exponent = static_cast<int>(magnitude >> 23);
  const int shift = 126 - exponent;
  if (shift > 24) return 0;  // less than half a unit
  return shift_round_even((magnitude & (kF32HiddenBit - 1u)) | kF32HiddenBit, shift);
}

}  // namespace

std::uint16_t f32_to_f16_bits(float value) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  return static_cast<std::uint16_t>(sign | magnitude_to_f16(u & 0x7fffffffu));
}

float f16_bits_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  std::uint32_t result;
  if (magnitude >= kF16Infinity) {
    result = kF32Infinity | (magnitude & 0x3ffu) << 13;
    if (magnitude > kF16Infinity) result |= 0x00400000u;  // a quiet NaN, as hardware makes it
  } else if (magnitude >= 0x0400u) {
    result = (magnitude << 13) + ((127u - 15u) << 23);
  } else {
    constexpr float kUnit = 0x1p-24f;
    result = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kUnit);  // exact
  }
  return std::bit_cast<float>(sign | result);
}

}  // namespace heddle
