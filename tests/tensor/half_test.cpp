#include "heddle/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace heddle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A binary format: what a number rounds to, and what bits mean, worked out in double.
struct Format {
  int mantissa_bits;
  int smallest_exponent;  // of a normal number
  int largest_exponent;

  double decode(std::uint16_t bits) const {
    const int fraction = bits & ((1 << mantissa_bits) - 1);
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int all_ones = (1 << (15 - mantissa_bits)) - 1;
    double magnitude;
    if (exponent == all_ones) {
      magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : kInfinity;
    } else if (exponent == 0) {
      magnitude = std::ldexp(fraction, smallest_exponent - mantissa_bits);
    } else {
      magnitude = std::ldexp((1 << mantissa_bits) + fraction,
                             smallest_exponent + exponent - 1 - mantissa_bits);
    }
    return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
  }

  double round(double value) const {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value), smallest_exponent);
    const double unit = std::ldexp(1.0, exponent - mantissa_bits);
    const double rounded = std::nearbyint(value / unit) * unit;  // the default mode: ties to even
    const bool overflow = std::fabs(rounded) >= std::ldexp(1.0, largest_exponent + 1);
    return overflow ? std::copysign(kInfinity, value) : rounded;
  }
};

constexpr Format kF16{10, -14, 15};
constexpr Format kBf16{7, -126, 127};

template <class Half>
void expect_rounds(const Format& format, float value) {
  const std::uint16_t bits = Half(value).bits;
  if (std::isnan(value)) {
    ASSERT_TRUE(std::isnan(format.decode(bits))) << std::hexfloat << value;
    return;
  }
  ASSERT_EQ(format.decode(bits), format.round(value)) << std::hexfloat << value;
  ASSERT_EQ((bits & 0x8000) != 0, std::signbit(value)) << std::hexfloat << value;
}

std::vector<float> edge_floats() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> edges;
  for (const float v : {0.0f,
                        Limits::denorm_min(),
                        Limits::min(),
                        Limits::max(),
                        Limits::infinity(),
                        Limits::quiet_NaN(),
                        std::bit_cast<float>(0x7f800001u),
                        std::bit_cast<float>(0x7fffffffu),
                        65504.0f,
                        65519.99f,
                        65520.0f,
                        65536.0f,
                        0x1p-14f,
                        0x1p-24f,
                        0x1p-25f,
                        0x1.8p-25f,
                        0x1.000002p-25f,
                        0x1.fffffep-26f,
                        1.0f,
                        3.3895314e38f,
                        3.3961776e38f}) {
    edges.push_back(v);
    edges.push_back(-v);
  }
  return edges;
}

// Every number of the format, every tie between neighbours, and the floats beside each.
std::vector<float> around_every_value(const Format& format) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const double low = format.decode(static_cast<std::uint16_t>(bits));
    const double high = format.decode(static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(high)) break;
    for (const double v : {low, (low + high) / 2}) {
      const auto centre = static_cast<float>(v);
      values.insert(values.end(), {centre, std::nextafter(centre, -1.0f),
                                   std::nextafter(centre, 1e38f), -centre});
    }
  }
  return values;
}

template <class Half>
void expect_all_bits_round_trip(const Format& format) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double expected = format.decode(bits);
    const auto value = static_cast<float>(Half::from_bits(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(format.decode(Half(value).bits))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(Half(value).bits, bits);
    }
  }
}

template <class Half>
void expect_rounds_to_nearest_even(const Format& format) {
  for (const float value : edge_floats()) expect_rounds<Half>(format, value);
  for (const float value : around_every_value(format)) expect_rounds<Half>(format, value);
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    expect_rounds<Half>(format, std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
}

TEST(F16, AllBitsRoundTrip) {
  expect_all_bits_round_trip<f16>(kF16);
}
TEST(Bf16, AllBitsRoundTrip) {
  expect_all_bits_round_trip<bf16>(kBf16);
}
TEST(F16, RoundsToNearestEven) {
  expect_rounds_to_nearest_even<f16>(kF16);
}
TEST(Bf16, RoundsToNearestEven) {
  expect_rounds_to_nearest_even<bf16>(kBf16);
}

TEST(F16, KnownBits) {
  EXPECT_EQ(f16(1.0f).bits, 0x3c00);
  EXPECT_EQ(f16(-2.0f).bits, 0xc000);
  EXPECT_EQ(f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16(0.333333343f).bits, 0x3555);
  EXPECT_EQ(f16(5.9604645e-8f).bits, 0x0001);
  EXPECT_EQ(f16(-0.0f).bits, 0x8000);
  EXPECT_EQ(f16().bits, 0);
}

TEST(Bf16, KnownBits) {
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bf16(3.14159265f).bits, 0x4049);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bf16(-0.0f).bits, 0x8000);
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
#if defined(__aarch64__)
using CompilersHalf = __fp16;
#else
using CompilersHalf = _Float16;
#endif

TEST(F16, AgreesWithTheCompilers) {
  std::mt19937 random(2);
  std::vector<float> values = around_every_value(kF16);
  for (int i = 0; i < 1'000'000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  for (const float value : values) {
    if (std::isnan(value)) continue;
    const auto theirs = static_cast<CompilersHalf>(value);
    ASSERT_EQ(f16(value).bits, std::bit_cast<std::uint16_t>(theirs)) << std::hexfloat << value;
  }
}
#endif

}  // namespace
}  // namespace heddle
