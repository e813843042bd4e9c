#include "exec/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "heddle/half.h"
#include "tensor/blocks.h"
#include "tensor/quantize.h"

namespace heddle::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
Statistics of(DType dtype, const std::vector<T>& values, Shape shape) {
  const auto found = statistics_of({dtype, shape}, std::as_bytes(std::span(values)));
  EXPECT_TRUE(found);
  return *found;
}

TEST(Statistics, OfAFewNumbers) {
  const Statistics s = of<float>(DType::f32, {-1, 0, 1, 3, kNan, kInf, -kInf, 1}, {2, 4});
  EXPECT_EQ(s.count, 8);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.inf, 2);
  EXPECT_EQ(s.min, -1);
  EXPECT_EQ(s.max, 3);
  EXPECT_DOUBLE_EQ(*s.mean, 4.0 / 5);
  EXPECT_DOUBLE_EQ(*s.mean_magnitude, 6.0 / 5);
  EXPECT_EQ(s.histogram[0], 1);   // -1
  EXPECT_EQ(s.histogram[8], 1);   // 0: a quarter of the way
  EXPECT_EQ(s.histogram[16], 2);  // 1
  EXPECT_EQ(s.histogram[31], 1);  // 3, though it is the end of the last
  EXPECT_EQ(std::accumulate(s.histogram.begin(), s.histogram.end(), std::int64_t{0}), 5);
  EXPECT_EQ(s.sample_columns, 4);
  ASSERT_EQ(s.sample.size(), 8u);
  EXPECT_EQ(s.sample[3], 3);
  EXPECT_TRUE(std::isnan(s.sample[4]));
}

TEST(Statistics, OfNothingAndOfNothingFinite) {
  const Statistics none = of<float>(DType::f32, {}, {0, 4});
  EXPECT_EQ(none.count, 0);
  EXPECT_FALSE(none.min || none.max || none.mean || none.mean_magnitude);
  EXPECT_TRUE(none.sample.empty());
  const Statistics nans = of<float>(DType::f32, {kNan, kNan}, {2});
  EXPECT_EQ(nans.nan, 2);
  EXPECT_FALSE(nans.min || nans.mean);
  const Statistics scalar = of<float>(DType::f32, {7}, {});
  EXPECT_EQ(scalar.min, 7);
  EXPECT_EQ(scalar.histogram[0], 1);
  EXPECT_EQ(scalar.sample, std::vector<float>{7});
}

TEST(Statistics, OfTheLargestNumbersThereAre) {
  const float most = std::numeric_limits<float>::max();
  const Statistics s = of<float>(DType::f32, {-most, most, most}, {3});
  EXPECT_EQ(s.min, -most);
  EXPECT_EQ(s.max, most);
  EXPECT_TRUE(std::isfinite(*s.mean));
  EXPECT_EQ(s.histogram[0], 1);
  EXPECT_EQ(s.histogram[31], 2);
}

TEST(Statistics, OfEveryTypeWithValues) {
  EXPECT_EQ(of<std::int8_t>(DType::i8, {-5, 7}, {2}).min, -5);
  EXPECT_EQ(of<std::uint8_t>(DType::u8, {200, 7}, {2}).max, 200);
  EXPECT_EQ(of<std::int16_t>(DType::i16, {-500, 7}, {2}).min, -500);
  EXPECT_EQ(of<std::uint16_t>(DType::u16, {65535, 7}, {2}).max, 65535);
  EXPECT_EQ(of<std::int32_t>(DType::i32, {-70000, 7}, {2}).min, -70000);
  EXPECT_EQ(of<std::uint32_t>(DType::u32, {1u << 31, 7}, {2}).max, 2147483648.0);
  EXPECT_EQ(of<std::int64_t>(DType::i64, {-(std::int64_t{1} << 40), 7}, {2}).min, -1099511627776.0);
  EXPECT_EQ(of<std::uint64_t>(DType::u64, {std::uint64_t{1} << 63, 7}, {2}).max, 0x1p63);
  EXPECT_EQ(of<double>(DType::f64, {-0.5, 7}, {2}).min, -0.5);
  EXPECT_EQ(of<std::uint8_t>(DType::bool_, {1, 0}, {2}).mean, 0.5);
  EXPECT_EQ(of<f16>(DType::f16, {f16(1.5f), f16(-2.0f)}, {2}).min, -2);
  EXPECT_EQ(of<bf16>(DType::bf16, {bf16(1.5f), bf16(-2.0f)}, {2}).max, 1.5);
  EXPECT_FALSE(statistics_of({DType::complex64, {1}}, std::vector<std::byte>(8)));
}

/// Against plain sums over what the reference decoder gives; more than one chunk, rows longer than
/// a sample.
TEST(Statistics, OfBlocks) {
  std::mt19937 random(1);
  std::normal_distribution<float> spread(0.5f, 2.0f);
  std::vector<float> values(70 * 256);
  for (float& value : values) value = spread(random);
  for (const DType dtype : {DType::q8_0, DType::q4_K}) {
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> blocks(row_bytes(dtype, count));
    quantize_row(dtype, values.data(), blocks.data(), count);
    std::vector<float> decoded(values.size());
    dequantize_row(dtype, blocks.data(), decoded.data(), count);
    const auto s = statistics_of({dtype, {70, 256}}, blocks);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->min, *std::ranges::min_element(decoded));
    EXPECT_EQ(s->max, *std::ranges::max_element(decoded));
    const double sum = std::accumulate(decoded.begin(), decoded.end(), 0.0);
    EXPECT_NEAR(*s->mean, sum / static_cast<double>(count), 1e-9);
    ASSERT_EQ(s->sample.size(), 8u * 32);
    EXPECT_EQ(s->sample.front(), decoded.front());
    EXPECT_EQ(s->sample.back(), decoded.back());
    EXPECT_EQ(s->sample[32], decoded[69 / 7 * 256]);  // the second of 8 rows out of 70
  }
}

}  // namespace
}  // namespace heddle::test
