// Distributions: moments, and Kolmogorov's distance from the exact distribution function. All from
// fixed keys, so that a test that passes always passes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "array_test_support.h"
#include "heddle/random.h"

namespace heddle::test {
namespace {

constexpr int kCount = 40000;

double normal_below(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

/// The largest distance between the share of numbers below x and `below(x)`. Of numbers that have
/// the distribution, it exceeds 1.95 / sqrt(n) once in a thousand times.
double distance(const Array& sample, const std::function<double(double)>& below) {
  std::vector<double> x = doubles(sample);
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = below(x[i]);
    most = std::max(
        {most, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
  }
  return most;
}

void expect_distribution(const Array& sample, const std::function<double(double)>& below,
                         double grain = 0) {
  EXPECT_LT(distance(sample, below), 1.95 / std::sqrt(kCount) + grain) << to_string(sample.dtype());
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const Array& sample) {
  const std::vector<double> x = doubles(sample);
  const auto n = static_cast<double>(x.size());
  Moments m{std::accumulate(x.begin(), x.end(), 0.0) / n, 0};
  for (const double value : x) m.deviation += (value - m.mean) * (value - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

/// How far apart numbers of a type are below 1: what rounding moves the distribution by.
double grain(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
}

constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

TEST(RandomDistribution, Uniform) {
  for (const DType dtype : kTypes) {
    expect_distribution(
        random::uniform({kCount}, dtype, random::key(1)),
        [](double x) { return std::clamp(x, 0.0, 1.0); }, grain(dtype));
    expect_distribution(
        random::uniform(-2, 6, {kCount}, dtype, random::key(2)),
        [](double x) { return std::clamp((x + 2) / 8, 0.0, 1.0); }, 4 * grain(dtype));
  }
}

TEST(RandomDistribution, Normal) {
  for (const DType dtype : kTypes) {
    expect_distribution(random::normal({kCount}, dtype, random::key(3)), normal_below,
                        2 * grain(dtype));
    const Array moved = random::normal({kCount}, dtype, 3.0f, 0.5f, random::key(4));
    EXPECT_EQ(moved.dtype(), dtype);
    const Moments m = moments(moved);
    EXPECT_NEAR(m.mean, 3, 0.02);
    EXPECT_NEAR(m.deviation, 0.5, 0.01);
  }
  for (const double x : doubles(random::normal({1000000}, random::key(5)))) {
    ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(RandomDistribution, NormalWithArraysOfMeansAndDeviations) {
  const Array sample = random::normal({kCount, 2}, DType::f32, Array({-1.0f, 100.0f}),
                                      Array({2.0f, 0.25f}), random::key(6));
  const std::vector<Array> columns = split(sample, 2, 1);
  EXPECT_NEAR(moments(columns[0]).mean, -1, 0.05);
  EXPECT_NEAR(moments(columns[0]).deviation, 2, 0.04);
  EXPECT_NEAR(moments(columns[1]).mean, 100, 0.01);
  EXPECT_NEAR(moments(columns[1]).deviation, 0.25, 0.005);
}

TEST(RandomDistribution, ComplexNormalHasHalfTheVarianceInEachPart) {
  const Array sample = random::normal({kCount}, DType::complex64, random::key(7));
  EXPECT_EQ(sample.spec(), (TensorSpec{DType::complex64, {kCount}}));
  const std::vector<Array> parts = split(view(expand_dims(sample, 1), DType::f32), 2, 1);
  for (const Array& part : parts) {
    expect_distribution(part, [](double x) { return normal_below(x * std::sqrt(2.0)); });
  }
}

TEST(RandomDistribution, TruncatedNormal) {
  const double low = normal_below(-1), high = normal_below(2);
  for (const DType dtype : kTypes) {
    const Array sample = random::truncated_normal(-1.0, 2.0, {kCount}, dtype, random::key(8));
    EXPECT_EQ(sample.dtype(), dtype);
    expect_distribution(
        sample,
        [&](double x) { return std::clamp((normal_below(x) - low) / (high - low), 0.0, 1.0); },
        8 * grain(dtype));
    const std::vector<double> numbers = doubles(sample);
    EXPECT_GE(*std::min_element(numbers.begin(), numbers.end()), -1);
    EXPECT_LE(*std::max_element(numbers.begin(), numbers.end()), 2);
  }
  expect_near(random::truncated_normal(2.0, -2.0, {3}), {2, 2, 2});
  EXPECT_EQ(random::truncated_normal(zeros({1, 2}), ones({3, 1})).shape(), Shape({3, 2}));
}

TEST(RandomDistribution, Gumbel) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array sample = random::gumbel({kCount}, dtype, random::key(9));
    EXPECT_EQ(sample.dtype(), dtype);
    expect_distribution(sample, [](double x) { return std::exp(-std::exp(-x)); });
  }
}

TEST(RandomDistribution, Laplace) {
  const auto below = [](double x) { return x < 0 ? 0.5 * std::exp(x) : 1 - 0.5 * std::exp(-x); };
  for (const DType dtype : kTypes) {
    expect_distribution(random::laplace({kCount}, dtype, random::key(10)), below, 2 * grain(dtype));
    const Moments m = moments(random::laplace({kCount}, dtype, -2.0f, 3.0f, random::key(11)));
    EXPECT_NEAR(m.mean, -2, 0.1);
    EXPECT_NEAR(m.deviation, 3 * std::sqrt(2.0), 0.1);
  }
}

TEST(RandomDistribution, Bernoulli) {
  for (const double p : {0.1, 0.5, 0.93}) {
    const Array sample = random::bernoulli(p, {kCount}, random::key(12));
    EXPECT_NEAR(moments(sample).mean, p, 0.01);
  }
  const Array three = random::bernoulli(Array({0.2f, 0.5f, 0.8f}), {kCount, 3}, random::key(13));
  const std::vector<double> means = doubles(mean(astype(three, DType::f32), 0));
  EXPECT_NEAR(means[0], 0.2, 0.01);
  EXPECT_NEAR(means[1], 0.5, 0.01);
  EXPECT_NEAR(means[2], 0.8, 0.01);
}

TEST(RandomDistribution, RandintIsEven) {
  const Array sample = random::randint(-3, 4, {7 * kCount}, DType::i32, random::key(14));
  std::vector<int> counts(7, 0);
  for (const int x : values<int>(sample)) ++counts[static_cast<std::size_t>(x + 3)];
  for (const int count : counts) EXPECT_NEAR(count, kCount, 5 * std::sqrt(kCount));
}

TEST(RandomDistribution, MultivariateNormal) {
  const Array mean(std::vector<float>{1, -2, 3}, {3});
  const std::vector<double> cov{4, 1, -0.5, 1, 2, 0.25, -0.5, 0.25, 1};
  const Array covariance = astype(Array(cov, {3, 3}), DType::f32);
  const Array sample =
      random::multivariate_normal(mean, covariance, {kCount}, DType::f32, random::key(16));
  EXPECT_EQ(sample.spec(), (TensorSpec{DType::f32, {kCount, 3}}));
  const std::vector<double> means = doubles(heddle::mean(sample, 0));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(means[i], doubles(mean)[i], 0.04);
  const Array centred = sample - mean;
  const std::vector<double> got =
      doubles(matmul(transpose(centred), centred) / static_cast<float>(kCount));
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(got[i], cov[i], 0.08) << i;
  // A covariance without an inverse; leading axes and the shape broadcast.
  const Array flat = random::multivariate_normal(zeros({2, 1, 2}), ones({3, 2, 2}), {5, 1, 3},
                                                 DType::f32, random::key(17));
  EXPECT_EQ(flat.shape(), Shape({5, 2, 3, 2}));
  for (const Array& pair : split(flat, 5)) {
    const std::vector<double> values = doubles(pair);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      EXPECT_NEAR(values[i], values[i + 1], 1e-4);
    }
  }
}

TEST(RandomDistribution, Permutation) {
  const auto order = values<std::uint32_t>(random::permutation(1000, random::key(18)));
  std::vector<std::uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(sorted[i], i);
  EXPECT_NE(order, sorted);
  EXPECT_EQ(random::permutation(0).spec(), (TensorSpec{DType::u32, {0}}));
  const Array x = reshape(arange(12, DType::i32), {3, 4});
  const Array columns = random::permutation(x, 1, random::key(19));
  EXPECT_EQ(columns.spec(), x.spec());
  const std::vector<int> first = values<int>(slice(columns, {0, 0}, {1, 4}));
  for (int row = 1; row < 3; ++row) {
    const std::vector<int> other = values<int>(slice(columns, {row, 0}, {row + 1, 4}));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(other[i], first[i] + 4 * row);
  }
  // Where the first element goes: everywhere alike.
  std::vector<int> counts(8, 0);
  for (int i = 0; i < 4000; ++i) {
    const auto small = values<std::uint32_t>(random::permutation(8, random::key(100 + i)));
    ++counts[static_cast<std::size_t>(std::find(small.begin(), small.end(), 0u) - small.begin())];
  }
  for (const int count : counts) EXPECT_NEAR(count, 500, 5 * std::sqrt(500.0));
}

TEST(RandomDistribution, Categorical) {
  const std::vector<float> chances{0.1f, 0.2f, 0.3f, 0.4f};
  const Array logits = log(Array(chances, {1, 4})) + 2.5f;
  const Array sample = random::categorical(logits, -1, kCount, random::key(15));
  EXPECT_EQ(sample.spec(), (TensorSpec{DType::u32, {1, kCount}}));
  std::vector<double> counts(4, 0);
  for (const std::uint32_t i : values<std::uint32_t>(sample)) counts.at(i) += 1.0 / kCount;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], static_cast<double>(chances[i]), 0.01);

  EXPECT_EQ(random::categorical(zeros({10, 20})).shape(), Shape({10}));
  EXPECT_EQ(random::categorical(zeros({10, 20}), 0).shape(), Shape({20}));
  EXPECT_EQ(random::categorical(zeros({10, 20}), 0, 5).shape(), Shape({20, 5}));
  EXPECT_EQ(random::categorical(zeros({10, 20}), 1, Shape{7, 10}).shape(), Shape({7, 10}));
  EXPECT_EQ(random::categorical(zeros({10, 20}), 0, Shape{7, 20}).shape(), Shape({7, 20}));
  // Each element from its own distribution.
  const Array sure = (Array(std::vector<float>{0, 50, 50, 0}, {2, 2}));
  EXPECT_THAT(values<std::uint32_t>(random::categorical(sure, 1, Shape{3, 2})),
              testing::ElementsAre(1u, 0u, 1u, 0u, 1u, 0u));
  EXPECT_THAT(values<std::uint32_t>(random::categorical(transpose(sure), 0, Shape{3, 2})),
              testing::ElementsAre(1u, 0u, 1u, 0u, 1u, 0u));
}

}  // namespace
}  // namespace heddle::test
