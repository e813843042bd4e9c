// Convolution, windows, pooling and resizing as array functions.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

Array signal(const std::vector<float>& values) {  // [1, n, 1]
  return Array(values, {1, static_cast<std::int64_t>(values.size()), 1});
}

TEST(Conv, OneAxisByHand) {
  const Array x = signal({1, 2, 3, 4}), w = signal({1, 0, -1});
  expect_near(conv1d(x, w), {-2, -2});
  expect_near(conv1d(x, w, 1, 1), {-2, -2, -2, 3});
  expect_near(conv1d(x, w, 2, 1), {-2, -2});
  expect_near(conv1d(x, signal({1, -1}), 1, 0, 2), {-2, -2});
  expect_near(conv_general(x, w, {}, {1}, {0}), {-2, -2, -2});
  expect_near(conv_general(x, w, {}, {-1}, {0}), {-2});  // crops
  expect_near(conv_general(x, w, {1}, {1}, {1}, {1}, {1}, 1, true), {2, 2, 2, -3});
  expect_near(conv_general(x, w, {1}, {1}, {1}, {1}, 1), {-2, -2, -2, 3});
}

TEST(Conv, TransposedIsTheTranspose) {
  // Each input adds its multiple of the weights at its place.
  const Array x = signal({1, 2}), w = signal({1, 10, 100});
  expect_near(conv_transpose1d(x, w), {1, 12, 120, 200});
  expect_near(conv_transpose1d(x, w, 2), {1, 10, 102, 20, 200});
  expect_near(conv_transpose1d(x, w, 2, 1), {10, 102, 20});
  expect_near(conv_transpose1d(x, w, 2, 1, 1, 1), {10, 102, 20, 200});
  expect_near(conv_transpose1d(x, signal({1, 10}), 1, 0, 2), {1, 2, 10, 20});
}

TEST(Conv, MoreAxesAndGroups) {
  const Array x = reshape(arange(16.0), {1, 4, 4, 1});
  const Array w = ones({1, 2, 2, 1});
  expect_near(conv2d(x, w, {2, 2}), {10, 18, 42, 50});
  expect_near(conv2d(x, w, {2, 2}, {1, 0}), {1, 5, 26, 34, 25, 29});
  const Array volume = ones({1, 2, 2, 2, 1});
  expect_near(conv3d(volume, ones({1, 2, 2, 2, 1})), {8});
  expect_near(conv_transpose2d(ones({1, 1, 1, 1}), w), {1, 1, 1, 1});
  EXPECT_EQ(conv_transpose2d(x, w, {2, 2}, {0, 0}, {1, 1}, {1, 0}).shape(), (Shape{1, 9, 8, 1}));
  EXPECT_EQ(conv_transpose3d(volume, ones({3, 2, 1, 2, 1})).shape(), (Shape{1, 3, 2, 3, 3}));
  // Two groups are two convolutions side by side.
  const Array channels = reshape(sin(arange(40.0)), {1, 10, 4});
  const Array weights = reshape(cos(arange(36.0)), {6, 3, 2});
  const Array apart = concatenate(
      {conv1d(slice(channels, {0, 0, 0}, {1, 10, 2}), slice(weights, {0, 0, 0}, {3, 3, 2})),
       conv1d(slice(channels, {0, 0, 2}, {1, 10, 4}), slice(weights, {3, 0, 0}, {6, 3, 2}))},
      2);
  expect_near(conv1d(channels, weights, 1, 0, 1, 2), doubles(apart));
}

TEST(Conv, PromotesLikeMlx) {
  const Array half = zeros({1, 4, 1}, DType::f16);
  EXPECT_EQ(conv1d(half, zeros({1, 2, 1}, DType::f16)).dtype(), DType::f16);
  EXPECT_EQ(conv1d(half, zeros({1, 2, 1}, DType::bf16)).dtype(), DType::f32);
  EXPECT_EQ(conv1d(half, zeros({1, 2, 1}, DType::i32)).dtype(), DType::f16);
}

TEST(Im2col, TimesWeightsIsConvolution) {
  const Array x = reshape(sin(arange(60.0)), {1, 5, 4, 3});
  const Array w = reshape(cos(arange(36.0)), {2, 2, 3, 3});
  const Array columns = im2col(x, {2, 3}, {2, 1}, {1, 0});
  EXPECT_EQ(columns.shape(), (Shape{1, 3, 2, 18}));
  expect_near(matmul(columns, transpose(reshape(w, {2, 18}))),
              doubles(conv2d(x, w, {2, 1}, {1, 0})), 1e-5);
  EXPECT_EQ(im2col(x, {2}).shape(), (Shape{1, 4, 3, 12}));  // two on each axis
}

TEST(Pool, MaxAndMean) {
  const Array x = signal({1, 5, 3, 4, 2});
  expect_near(max_pool(x, {2}), {5, 4});
  expect_near(max_pool(x, {3}, {1}, {1}), {5, 5, 5, 4, 4});
  expect_near(mean_pool(x, {2}), {3, 3.5});
  expect_near(mean_pool(x, {3}, {2}, {1}), {2, 4, 2});
  expect_near(mean_pool(x, {3}, {2}, {1}, false), {3, 4, 3});
  EXPECT_EQ(max_pool(ones({1, 4, 1}, DType::i32), {2}).dtype(), DType::i32);
  EXPECT_EQ(mean_pool(ones({1, 4, 1}, DType::i32), {2}).dtype(), DType::f32);
  EXPECT_EQ(max_pool(zeros({2, 6, 7, 3}), {2}).shape(), (Shape{2, 3, 3, 3}));
}

TEST(Resize, NearestAndLinear) {
  const Array x = signal({1, 2});
  expect_near(resize(x, {4}), {1, 1, 2, 2});
  expect_near(resize(x, {4}, ResizeKind::linear), {1, 1.25, 1.75, 2});
  expect_near(resize(x, {3}, ResizeKind::linear, true), {1, 1.5, 2});
  EXPECT_EQ(resize(ones({1, 2, 1}, DType::u8), {3}).dtype(), DType::u8);
  EXPECT_EQ(resize(ones({1, 2, 1}, DType::u8), {3}, ResizeKind::linear).dtype(), DType::f32);
  EXPECT_EQ(resize(zeros({1, 2, 3, 4, 5}), {7}).shape(), (Shape{1, 7, 7, 7, 5}));
}

}  // namespace
}  // namespace heddle::test
