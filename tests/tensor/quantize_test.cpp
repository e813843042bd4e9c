#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heddle/half.h"
#include "hwy/targets.h"
#include "tensor/blocks.h"
#include "tensor/expect_invalid.h"
#include "tensor/tensor_test_support.h"

namespace heddle {
namespace {

using test::expect_invalid;
using test::relative_l2;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Bound {
  DType dtype;
  double gaussian;  // relative L2 error of normal numbers, measured, plus 1 %
  double levels;    // steps of the code across a block's range
};

constexpr Bound kBounds[] = {
    {DType::q4_0, 0.0811, 15}, {DType::q4_1, 0.0701, 15},   {DType::q5_0, 0.0401, 31},
    {DType::q5_1, 0.0339, 31}, {DType::q8_0, 0.00502, 255}, {DType::q2_K, 0.2633, 3},
    {DType::q3_K, 0.1445, 7},  {DType::q4_K, 0.0705, 15},   {DType::q5_K, 0.0349, 31},
    {DType::q6_K, 0.0170, 63}, {DType::iq4_nl, 0.0737, 15}, {DType::iq4_xs, 0.0744, 15},
};

std::vector<unsigned char> encoded(DType dtype, const std::vector<float>& values) {
  std::vector<unsigned char> bytes(row_bytes(dtype, std::ssize(values)));
  quantize_row(dtype, values.data(), bytes.data(), std::ssize(values));
  return bytes;
}

std::vector<float> round_trip(DType dtype, const std::vector<float>& values) {
  const auto bytes = encoded(dtype, values);
  std::vector<float> back(values.size());
  dequantize_row(dtype, bytes.data(), back.data(), std::ssize(values));
  return back;
}

class Quantize : public testing::TestWithParam<Bound> {
 protected:
  DType dtype() const { return GetParam().dtype; }
};

TEST_P(Quantize, LosesLittleOfNormalNumbers) {
  for (const double deviation : {1.0, 0.02, 3e3}) {
    const auto values = test::gaussian(1 << 14, deviation, 3);
    EXPECT_LE(relative_l2(round_trip(dtype(), values), values), GetParam().gaussian) << deviation;
  }
}

TEST_P(Quantize, KeepsConstantRows) {
  for (const float value : {1.0f, -1.0f, 0.37f, -1234.5f, 60000.0f, 0.25f}) {
    const std::vector<float> values(512, value);
    for (const float back : round_trip(dtype(), values)) {
      // One f16 scale, or two for the affine types: half a unit in the 11th place each.
      ASSERT_NEAR(back / value, 1.0, 0x1p-10) << value;
    }
  }
}

TEST_P(Quantize, KeepsZeros) {
  std::vector<float> values(512, 0.0f);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = -0.0f;
  for (const float back : round_trip(dtype(), values)) ASSERT_EQ(back, 0.0f);
}

TEST_P(Quantize, KeepsOneZeroBlockAmongOthers) {
  auto values = test::gaussian(768, 1.0, 4);
  std::fill(values.begin() + 256, values.begin() + 512, 0.0f);
  const auto back = round_trip(dtype(), values);
  EXPECT_TRUE(std::all_of(back.begin() + 256, back.begin() + 512, [](float v) { return v == 0; }));
}

TEST_P(Quantize, TinyRowsAreNeverWorseThanZeros) {
  // Scales here lie about and below f16's smallest number, 6e-8.
  for (const double deviation : {1e-4, 1e-5, 1e-6, 1e-7, 3e-8, 1e-8, 1e-9}) {
    const auto values = test::gaussian(1024, deviation, 5);
    EXPECT_LE(relative_l2(round_trip(dtype(), values), values), 1.0) << deviation;
  }
  for (const float back : round_trip(dtype(), test::gaussian(256, 1e-30, 6))) ASSERT_EQ(back, 0.0f);
  const std::vector<float> denormals(256, std::numeric_limits<float>::denorm_min());
  for (const float back : round_trip(dtype(), denormals)) ASSERT_EQ(back, 0.0f);
}

TEST_P(Quantize, HugeRowsSaturate) {
  for (const double deviation : {1e5, 1e10, 1e37}) {
    const auto values = test::gaussian(1024, deviation, 7);
    const auto back = round_trip(dtype(), values);
    for (const float value : back) ASSERT_TRUE(std::isfinite(value));
    EXPECT_LE(relative_l2(back, values), 1.0) << deviation;
  }
  const float largest = std::numeric_limits<float>::max();
  for (const float value : round_trip(dtype(), std::vector<float>(256, largest))) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_GE(value, 65504.0f);
  }
}

TEST_P(Quantize, AnOutlierCostsAtMostAStep) {
  for (const float outlier : {100.0f, -100.0f}) {
    auto values = test::gaussian(256, 0.1, 8);
    values[77] = outlier;
    const auto back = round_trip(dtype(), values);
    // From zero to the outlier at least half of the levels are in use.
    const double step = 100 / (GetParam().levels / 2);
    EXPECT_NEAR(back[77], outlier, 1.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(back[i], values[i], 0.6 * step) << i;
    }
  }
}

TEST_P(Quantize, IsDeterministicAtAnyAlignment) {
  const auto values = test::gaussian(512, 1.0, 9);
  const auto bytes = encoded(dtype(), values);
  std::vector<unsigned char> shifted(bytes.size() + 1);
  quantize_row(dtype(), values.data(), shifted.data() + 1, std::ssize(values));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), shifted.begin() + 1));
}

TEST_P(Quantize, RefusesWhatItCannotHold) {
  auto values = test::gaussian(512, 1.0, 10);
  std::vector<unsigned char> bytes(row_bytes(dtype(), 512));
  const auto quantize = [&](std::int64_t n) {
    quantize_row(dtype(), values.data(), bytes.data(), n);
  };
  expect_invalid([&] { quantize(31); }, "whole");
  expect_invalid([&] { quantize(-256); }, "-256");
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    values[300] = bad;
    expect_invalid([&] { quantize(512); }, "element 300");
  }
  quantize_row(dtype(), nullptr, nullptr, 0);
}

// A block that has been decoded can be represented exactly, and mostly is. The K types' sub-block
// scales are rounded to steps of the largest, which may move.
TEST_P(Quantize, LosesNothingMoreTheSecondTime) {
  for (const double deviation : {1.0, 0.02, 3e3}) {
    const auto values = test::gaussian(1 << 14, deviation, 11);
    const auto once = round_trip(dtype(), values);
    const auto twice = round_trip(dtype(), once);
    const bool small = info(dtype()).block_elements == kSmallBlock;
    EXPECT_LE(relative_l2(twice, once), small ? 1e-6 : 0.25 * GetParam().gaussian);
    EXPECT_LE(relative_l2(twice, values), 1.02 * relative_l2(once, values));
  }
}

/// The error of rounding each block to even steps over its range, as exact scales would allow.
double even_rounding_error(const std::vector<float>& values, std::size_t block, double steps) {
  double error = 0, size = 0;
  for (std::size_t at = 0; at < values.size(); at += block) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
    const auto [low, high] = std::minmax_element(begin, begin + static_cast<std::ptrdiff_t>(block));
    const double step = (double{*high} - double{*low}) / steps;
    for (std::size_t i = at; i < at + block; ++i) {
      const double code = std::round((values[i] - double{*low}) / step);
      error += std::pow(double{*low} + step * code - double{values[i]}, 2);
      size += std::pow(double{values[i]}, 2);
    }
  }
  return std::sqrt(error / size);
}

// Bounds that no measurement of ours has a part in. No code of R bits a number represents normal
// ones with less than a relative error of 2^-R (Shannon's rate-distortion function); R counts the
// scales. And a fitted affine code must beat plain rounding to as many steps.
TEST_P(Quantize, ErrorsLieBetweenTheoryAndPlainRounding) {
  const DTypeInfo& type = info(dtype());
  const double bits = 8.0 * type.block_bytes / type.block_elements;
  const auto values = test::gaussian(1 << 16, 1.0, 12);
  const double error = relative_l2(round_trip(dtype(), values), values);
  EXPECT_GE(error, std::exp2(-bits));
  const bool affine = dtype() == DType::q4_1 || dtype() == DType::q5_1 || dtype() == DType::q2_K ||
                      dtype() == DType::q4_K || dtype() == DType::q5_K;
  if (!affine) return;
  const std::size_t scaled = dtype() == DType::q2_K ? 16 : 32;  // elements that share a scale
  EXPECT_LE(error, even_rounding_error(values, scaled, GetParam().levels));
}

class OnTarget {
 public:
  explicit OnTarget(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~OnTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(Quantize, GivesTheSameBytesOnEveryProcessor) {
  auto values = test::gaussian(4096, 1.0, 13);
  for (std::size_t i = 0; i < values.size(); i += 100) values[i] *= 50;
  const auto expected = encoded(dtype(), values);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnTarget scope(target);
    EXPECT_EQ(encoded(dtype(), values), expected) << hwy::TargetName(target);
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, Quantize, testing::ValuesIn(kBounds), [](const auto& parameter) {
  return std::string(to_string(parameter.param.dtype));
});

TEST(QuantizePlain, RoundsAndKeepsWhatIsNotFinite) {
  const std::vector<float> values{1.0f, -0.1f, 70000.0f, kInfinity, -kInfinity, 3e38f};
  EXPECT_EQ(round_trip(DType::f32, values), values);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto back = round_trip(dtype, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = dtype == DType::f16 ? static_cast<float>(f16(values[i]))
                                                 : static_cast<float>(bf16(values[i]));
      EXPECT_EQ(back[i], expected);
    }
    EXPECT_TRUE(std::isnan(round_trip(dtype, {kNan})[0]));
  }
}

TEST(QuantizePlain, RefusesOtherTypes) {
  float value = 1;
  double room = 0;
  for (const DType dtype : {DType::i8, DType::f64, DType::bool_, DType::complex64}) {
    expect_invalid([&] { quantize_row(dtype, &value, &room, 1); }, to_string(dtype).data());
  }
}

}  // namespace
}  // namespace heddle
