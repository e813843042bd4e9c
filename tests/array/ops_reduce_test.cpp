// Reductions, softmax and products against double arithmetic.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

Array cube() {
  return reshape(arange(24.0) * 0.5f - 3.0f, {2, 3, 4});
}

/// Reduces [2, 3, 4] over the marked axes in double.
std::vector<double> reduced(const std::vector<double>& x, const std::vector<int>& axes,
                            double start, double (*join)(double, double)) {
  const int extents[] = {2, 3, 4};
  const auto kept = [&](int axis) {
    return std::find(axes.begin(), axes.end(), axis) == axes.end();
  };
  std::vector<double> result;
  std::size_t size = 1;
  for (int axis = 0; axis < 3; ++axis) size *= kept(axis) ? extents[axis] : 1;
  result.assign(size, start);
  for (int i = 0; i < 24; ++i) {
    const int at[] = {i / 12, i / 4 % 3, i % 4};
    std::size_t to = 0;
    for (int axis = 0; axis < 3; ++axis) {
      if (kept(axis)) to = to * extents[axis] + at[axis];
    }
    result[to] = join(result[to], x[i]);
  }
  return result;
}

TEST(Reduce, OverEverySetOfAxes) {
  const std::vector<double> x = doubles(cube());
  const auto plus = [](double a, double b) { return a + b; };
  for (int set = 1; set < 8; ++set) {
    std::vector<int> axes;
    Dims dims;
    double count = 1;
    const int extents[] = {2, 3, 4};
    for (int axis = 2; axis >= 0; --axis) {
      if (!(set >> axis & 1)) continue;
      axes.push_back(axis);
      dims.push_back(axis % 2 ? axis - 3 : axis);
      count *= extents[axis];
    }
    SCOPED_TRACE(to_string(dims));
    const std::vector<double> sums = reduced(x, axes, 0, plus);
    expect_near(sum(cube(), dims), sums);
    std::vector<double> means = sums;
    for (double& m : means) m /= count;
    expect_near(mean(cube(), dims), means);
    expect_near(max(cube(), dims),
                reduced(x, axes, -1e9, [](double a, double b) { return std::max(a, b); }));
    expect_near(min(cube(), dims),
                reduced(x, axes, 1e9, [](double a, double b) { return std::min(a, b); }));
    expect_near(prod(cube(), dims), reduced(x, axes, 1, [](double a, double b) { return a * b; }),
                1e-5);
    Shape kept = {2, 3, 4};
    for (const int axis : axes) kept[axis] = 1;
    EXPECT_EQ(sum(cube(), dims, true).shape(), kept);
  }
}

TEST(Reduce, AxisArgumentsMeanWhatTheySay) {
  EXPECT_EQ(sum(cube()).shape(), Shape({}));
  EXPECT_EQ(sum(cube(), true).shape(), Shape({1, 1, 1}));
  EXPECT_EQ(sum(cube(), 0).shape(), Shape({3, 4}));
  EXPECT_EQ(sum(cube(), {0}).shape(), Shape({3, 4}));
  EXPECT_EQ(sum(cube(), {1}).shape(), Shape({2, 4}));
  EXPECT_EQ(sum(cube(), -1, true).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(max(cube(), 1).shape(), Shape({2, 4}));
  EXPECT_EQ(mean(cube(), {0, 2}).shape(), Shape({3}));
  EXPECT_EQ(sum(cube(), Dims{}).shape(), Shape({2, 3, 4}));
  EXPECT_FLOAT_EQ(sum(Array(3.0f)).item<float>(), 3);
}

TEST(Reduce, TypesAsInMlx) {
  EXPECT_EQ(sum(Array({true, true})).item<int>(), 2);
  EXPECT_EQ(sum(astype(Array({200, 100}), DType::u8)).item<int>(), 300);
  EXPECT_EQ(sum(Array({true}), Dims{}).dtype(), DType::i32);
  EXPECT_EQ(prod(astype(Array({20, 30}), DType::i8)).item<int>(), 600);
  EXPECT_EQ(sum(arange(3, DType::i64)).item<std::int64_t>(), 3);
  EXPECT_EQ(mean(Array({1, 2})).dtype(), DType::f32);
  EXPECT_FLOAT_EQ(mean(Array({1, 2})).item<float>(), 1.5f);
  EXPECT_EQ(max(astype(Array({1, 2}), DType::u8)).dtype(), DType::u8);
  EXPECT_EQ(sum(ones({4096}, DType::f16)).dtype(), DType::f16);
  expect_near(sum(ones({4096}, DType::f16)), {4096});  // accumulated in f32
  EXPECT_TRUE(max(Array({false, true})).item<bool>());
}

TEST(Reduce, OfNothing) {
  EXPECT_FLOAT_EQ(sum(zeros({0})).item<float>(), 0);
  EXPECT_FLOAT_EQ(prod(zeros({0})).item<float>(), 1);
  EXPECT_EQ(sum(zeros({0, 3}), 1).shape(), Shape({0}));
  expect_near(sum(zeros({0, 3}), 0), {0, 0, 0});
  expect_invalid([] { max(zeros({0})); }, {"max"});
  expect_invalid([] { mean(zeros({3, 0}), 1); }, {"mean"});
}

TEST(Reduce, OfStridedViews) {
  const Array t = transpose(cube());  // [4, 3, 2]
  const std::vector<double> x = doubles(t);
  std::vector<double> rows(4, 0);
  for (int i = 0; i < 24; ++i) rows[i / 6] += x[i];
  expect_near(sum(t, {1, 2}), rows);
}

TEST(Reduce, RefusesBadAxes) {
  expect_invalid([] { sum(cube(), 3); }, {"sum"});
  expect_invalid([] { mean(cube(), -4); }, {"mean"});
  expect_invalid([] { max(cube(), {0, -3}); }, {"max", "twice"});
  expect_invalid([] { prod(Array(1), 0); }, {"prod"});
}

std::vector<double> softmax_of(const std::vector<double>& x) {
  double most = -INFINITY, total = 0;
  for (const double v : x) most = std::max(most, v);
  std::vector<double> y;
  for (const double v : x) y.push_back(std::exp(v - most));
  for (const double v : y) total += v;
  for (double& v : y) v /= total;
  return y;
}

TEST(Softmax, AlongAnyAxis) {
  expect_near(softmax(Array({1.0f, 2.0f, 3.0f}), -1), softmax_of({1, 2, 3}));
  expect_near(softmax(Array({1, 2, 3}), -1), softmax_of({1, 2, 3}));
  expect_near(softmax(Array({1000.0f, 1001.0f}), -1), softmax_of({0, 1}));
  expect_near(softmax(Array({-INFINITY, 0.0f}), -1), {0, 1});
  expect_near(softmax(Array({-INFINITY, -INFINITY}), -1), {0, 0});
  const Array x = reshape(Array({1.0f, 5.0f, 2.0f, 3.0f}), {2, 2});
  const std::vector<double> left = softmax_of({1, 2}), right = softmax_of({5, 3});
  expect_near(softmax(x, 0), {left[0], right[0], left[1], right[1]});
  EXPECT_EQ(softmax(zeros({2, 3}, DType::f16), 0).dtype(), DType::f16);
  expect_invalid([] { softmax(Array(1.0f), -1); }, {"softmax"});
  expect_invalid([] { softmax(zeros({2}), 1); }, {"softmax"});
}

// ---- Products

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int m,
                            int k, int n) {
  std::vector<double> c(static_cast<std::size_t>(m) * n, 0);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

TEST(Matmul, MatricesVectorsAndBatches) {
  const Array a = sin(reshape(arange(15.0), {3, 5})), b = cos(reshape(arange(20.0), {5, 4}));
  const std::vector<double> expected = product(doubles(a), doubles(b), 3, 5, 4);
  expect_near(matmul(a, b), expected, 1e-5);
  expect_near(matmul(transpose(transpose(a)), transpose(contiguous(transpose(b)))), expected, 1e-5);
  EXPECT_EQ(matmul(slice(a, {0, 0}, {1, 5}), b).shape(), Shape({1, 4}));
  const Array row = reshape(slice(a, {1, 0}, {2, 5}), {5});
  expect_near(matmul(row, b), {expected.begin() + 4, expected.begin() + 8}, 1e-5);
  EXPECT_EQ(matmul(a, row).shape(), Shape({3}));
  EXPECT_EQ(matmul(row, row).shape(), Shape({}));
  double dot = 0;
  for (const double v : doubles(row)) dot += v * v;
  expect_near(matmul(row, row), {dot}, 1e-5);
  const Array batch = stack({a, a * 2.0f});
  const Array c = matmul(batch, b);
  EXPECT_EQ(c.shape(), Shape({2, 3, 4}));
  EXPECT_NEAR(doubles(c)[12], 2 * expected[0], 1e-5);
  EXPECT_EQ(matmul(row, stack({b, b})).shape(), Shape({2, 4}));
  EXPECT_EQ(matmul(zeros({2, 0}), zeros({0, 3})).shape(), Shape({2, 3}));
  expect_near(matmul(zeros({2, 0}), zeros({0, 3})), {0, 0, 0, 0, 0, 0});
}

TEST(Matmul, TypesAndRefusals) {
  const Array a = ones({2, 3}, DType::f16), b = ones({3, 2}, DType::f16);
  EXPECT_EQ(matmul(a, b).dtype(), DType::f16);
  expect_near(matmul(a, b), {3, 3, 3, 3});
  EXPECT_EQ(matmul(a, astype(b, DType::bf16)).dtype(), DType::f32);
  expect_near(matmul(ones({2, 3}, DType::f64), ones({3, 1}, DType::f64)), {3, 3});
  expect_invalid([] { matmul(zeros({2, 3}), zeros({2, 3})); }, {"matmul", "f32[2, 3]"});
  expect_invalid([] { matmul(Array(1.0f), zeros({2, 3})); }, {"matmul", "f32[]"});
  expect_invalid([] { matmul(Array({1, 2}), Array({1, 2})); }, {"matmul", "i32"});
  expect_invalid([] { matmul(zeros({2, 2, 3}), zeros({3, 3, 2})); }, {"matmul"});
}

TEST(Linear, SharesOneInputAmongWeights) {
  const Array x = sin(reshape(arange(64.0), {2, 32}));
  const Array w = cos(reshape(arange(96.0), {3, 32}));
  const std::vector<double> expected = product(doubles(x), doubles(transpose(w)), 2, 32, 3);
  expect_near(linear(x, w), expected, 1e-5);
  const std::vector<Array> both = linear(x, std::vector<Array>{w, astype(w, DType::f16)});
  expect_near(both[0], expected, 1e-5);
  expect_near(both[1], expected, 2e-2);
  EXPECT_EQ(both[1].dtype(), DType::f32);
  EXPECT_EQ(linear(astype(x, DType::f16), w).dtype(), DType::f32);
  expect_near(linear(reshape(slice(x, {0, 0}, {1, 32}), {32}), w),
              {expected.begin(), expected.begin() + 3}, 1e-5);
  expect_invalid([&] { linear(x, zeros({3, 31})); }, {"linear", "f32[3, 31]"});
  expect_invalid([&] { linear(Array({1, 2}), zeros({3, 2})); }, {"linear", "i32[2]"});
  expect_invalid([&] { linear(x, std::vector<Array>{}); }, {"linear"});
}

}  // namespace
}  // namespace heddle::test
