// Scans, padding and turning round: values worked out by hand, and against plain loops.
#include <cmath>
#include <limits>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Array row(const std::vector<float>& values) {
  return Array(values, {static_cast<std::int64_t>(values.size())});
}

// ---- Scans

TEST(Scans, OfARow) {
  const Array x = row({1, 3, -2, 4});
  expect_near(cumsum(x), {1, 4, 2, 6});
  expect_near(cumsum(x, true), {6, 5, 2, 4});
  expect_near(cumsum(x, false, false), {0, 1, 4, 2});
  expect_near(cumsum(x, true, false), {5, 2, 4, 0});
  expect_near(cumprod(x), {1, 3, -6, -24});
  expect_near(cumprod(x, true, false), {-24, -8, 4, 1});
  expect_near(cummax(x), {1, 3, 3, 4});
  expect_near(cummax(x, false, false), {-kInf, 1, 3, 3});
  expect_near(cummin(x), {1, 1, -2, -2});
  expect_near(cummin(x, true, false), {-2, -2, 4, kInf});
  expect_near(logcumsumexp(x), {1, std::log(std::exp(1) + std::exp(3)),
                                std::log(std::exp(1) + std::exp(3) + std::exp(-2)),
                                std::log(std::exp(1) + std::exp(3) + std::exp(-2) + std::exp(4))});
  expect_near(slice(logcumsumexp(x, false, false), {0}, {2}), {-kInf, 1});
}

TEST(Scans, AlongAnAxisOrOverAll) {
  const Array x = reshape(arange(6.0), {2, 3});
  expect_near(cumsum(x, 0), {0, 1, 2, 3, 5, 7});
  expect_near(cumsum(x, 1), {0, 1, 3, 3, 7, 12});
  expect_near(cumsum(x, -1, true), {3, 3, 2, 12, 9, 5});
  EXPECT_EQ(cumsum(x, 0).shape(), (Shape{2, 3}));
  EXPECT_EQ(cumsum(x).shape(), Shape{6});  // of all elements
  expect_near(cumsum(x), {0, 1, 3, 6, 10, 15});
  expect_near(cumsum(transpose(x), 1), {0, 3, 1, 5, 2, 7});  // of another layout
  EXPECT_EQ(cumsum(Array(3.0f)).shape(), Shape{1});
  EXPECT_EQ(cumsum(zeros({0, 3}), 0).shape(), (Shape{0, 3}));
}

TEST(Scans, DtypesAsInMlx) {
  EXPECT_EQ(cumsum(ones({3}, DType::bool_)).dtype(), DType::i32);
  EXPECT_THAT(values<std::int32_t>(cumsum(ones({3}, DType::bool_))), ElementsAre(1, 2, 3));
  EXPECT_EQ(cumsum(ones({3}, DType::i8)).dtype(), DType::i8);
  EXPECT_EQ(cumprod(ones({3}, DType::bool_)).dtype(), DType::bool_);
  EXPECT_EQ(cummax(ones({3}, DType::u16)).dtype(), DType::u16);
  EXPECT_EQ(logcumsumexp(ones({3}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(logcumsumexp(ones({3}, DType::f16)).dtype(), DType::f16);
  const std::vector<std::int8_t> hundred{100, 100};
  EXPECT_THAT(values<std::int8_t>(cumsum(Array(hundred, {2}))), ElementsAre(100, -56));
}

// ---- Padding and turning round

TEST(Pad, EveryForm) {
  const Array x = reshape(arange(4.0), {2, 2});
  expect_near(pad(x, 1), {0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0, 0, 0, 0, 0});
  expect_near(pad(x, {1, 0}, 9), {9, 9, 9, 9, 0, 1, 9, 2, 3});
  expect_near(pad(x, {{0, 1}, {1, 0}}, -1.0f), {-1, 0, 1, -1, 2, 3, -1, -1, -1});
  expect_near(pad(x, Dims{-1}, {1}, {2}, 0, "edge"), {0, 0, 1, 1, 1, 2, 2, 3, 3, 3});
  expect_near(pad(x, 0), {0, 1, 2, 3});
  EXPECT_EQ(pad(zeros({2}, DType::i8), 1, 2.5f).dtype(), DType::i8);
  EXPECT_EQ(pad(Array(1), Dims{}, {}, {}).shape(), Shape{});
}

TEST(Flip, AllOrSomeAxes) {
  const Array x = reshape(arange(6.0), {2, 3});
  expect_near(flip(x), {5, 4, 3, 2, 1, 0});
  expect_near(flip(x, 0), {3, 4, 5, 0, 1, 2});
  expect_near(flip(x, -1), {2, 1, 0, 5, 4, 3});
  expect_near(flip(x, Dims{0, 1}), {5, 4, 3, 2, 1, 0});
  expect_near(flip(x, Dims{}), {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(flip(zeros({0, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(flip(Array(2)).item<std::int32_t>(), 2);
  // A second look at the same memory.
  Array held = contiguous(x);
  held.eval();
  const Array turned = flip(held, 1);
  turned.eval();
  EXPECT_EQ(turned.view().buffer.get(), held.view().buffer.get());
}

// ---- Norms over channels, experts, state spaces

TEST(ChannelNorm, IsLayerNormWithTheAxisMoved) {
  const Array x = reshape(sin(arange(60.0)), {3, 4, 5});
  const Array weight = arange(1.0, 5.0), bias = arange(4.0);
  const Array moved = fast::layer_norm(moveaxis(x, 1, -1), weight, bias, 1e-5f);
  expect_near(fast::channel_norm(x, 1, weight, bias, 1e-5f), doubles(moveaxis(moved, -1, 1)), 1e-5);
  // One group over one position is layer_norm of the channels.
  const Array rows = reshape(x, {12, 5});
  expect_near(fast::group_norm(rows, 1, std::nullopt, std::nullopt, 1e-5f),
              doubles(fast::layer_norm(rows, std::nullopt, std::nullopt, 1e-5f)), 1e-5);
  // And f64, which the cpu computes by way of simpler ops.
  const Array wide = astype(x, DType::f64);
  expect_near(fast::group_norm(wide, 5, std::nullopt, std::nullopt, 1e-5f),
              doubles(fast::group_norm(x, 5, std::nullopt, std::nullopt, 1e-5f)), 1e-5);
}

TEST(GroupedLinear, ChoosesWeightsByRow) {
  const Array x = reshape(arange(6.0), {3, 2});
  const Array weights = Array(std::vector<float>{1, 0, 0, 1, 1, 1, 2, 0}, {2, 2, 2});
  const Array experts = Array(std::vector<std::int32_t>{1, -1, 0}, {3});
  expect_near(grouped_linear(x, weights, experts), {1, 0, 0, 0, 4, 5});
  expect_near(grouped_linear(astype(x, DType::f16), weights, astype(experts, DType::i64)),
              {1, 0, 0, 0, 4, 5});
}

TEST(SelectiveScan, DecaysAndAdds) {
  const Array x = Array(std::vector<float>{1, 2}, {1, 2, 1});
  const Array dt = Array(std::vector<float>{1, 0.5f}, {1, 2, 1});
  const Array a = Array(std::vector<float>{-1}, {1, 1});
  const Array b = Array(std::vector<float>{3, 4}, {1, 2, 1});
  const Array c = Array(std::vector<float>{1, 10}, {1, 2, 1});
  const Array state = Array(std::vector<float>{2}, {1, 1, 1});
  const double h1 = std::exp(-1.0) * 2 + 3, h2 = std::exp(-0.5) * h1 + 0.5 * 2 * 4;
  const auto [y, last] = selective_scan(x, dt, a, b, c, Array({100}), state);
  expect_near(y, {h1 + 100, 10 * h2 + 200}, 1e-6);
  expect_near(last, {h2}, 1e-6);
  const auto [without, same] =
      selective_scan(x, dt, a, expand_dims(b, 2), expand_dims(c, 2), std::nullopt, state);
  expect_near(without, {h1, 10 * h2}, 1e-6);
}

}  // namespace
}  // namespace heddle::test
