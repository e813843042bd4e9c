#include <gtest/gtest.h>

#include <limits>

#include "heddle/tensor.h"
#include "tensor/expect_invalid.h"

namespace heddle {
namespace {

using test::expect_invalid;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

OperandSpec strided(DType dtype, const Shape& shape, const Dims& strides) {
  return {{dtype, shape}, {LayoutKind::strided, strides}};
}

TEST(Layout, SpansFromTheLowestToTheHighestElement) {
  EXPECT_EQ(span_bytes(strided(DType::f32, {}, {})), 4u);
  EXPECT_EQ(span_bytes(strided(DType::f32, {3, 4}, {4, 1})), 48u);
  EXPECT_EQ(span_bytes(strided(DType::f32, {3, 4}, {-4, 1})), 48u);
  EXPECT_EQ(span_bytes(strided(DType::f32, {3, 4}, {-4, -1})), 48u);
  EXPECT_EQ(span_bytes(strided(DType::u8, {3, 4}, {10, -2})), 27u);
  EXPECT_EQ(span_bytes(strided(DType::u8, {3, 4}, {0, -1})), 4u);
  EXPECT_EQ(span_bytes(strided(DType::u8, {1, 4}, {kLeast, 1})), 4u);
  EXPECT_EQ(span_bytes(strided(DType::u8, {9, 0}, {-7, -7})), 0u);
  EXPECT_EQ(span_bytes(strided(DType::q8_0, {3, 64}, {-64, 1})), 3u * 2 * 34);
}

TEST(Layout, SpansThatOverflowAreRefused) {
  for (const std::int64_t stride : {kMost, kLeast, kLeast + 1}) {
    expect_invalid([&] { span_bytes(strided(DType::f32, {2}, {stride})); }, "overflow");
    expect_invalid([&] { span_bytes(strided(DType::f32, {3}, {stride})); }, "overflow");
    expect_invalid([&] { span_bytes(strided(DType::f32, {2, 2}, {1, stride})); }, "overflow");
  }
}

TEST(Layout, TheFirstElementIsTheFarEndOfAxesWalkedBackwards) {
  EXPECT_EQ(first_element(strided(DType::f32, {3, 4}, {4, 1})), 0);
  EXPECT_EQ(first_element(strided(DType::f32, {3, 4}, {-4, 1})), 8);
  EXPECT_EQ(first_element(strided(DType::f32, {3, 4}, {4, -1})), 3);
  EXPECT_EQ(first_element(strided(DType::f32, {3, 4}, {-4, -1})), 11);
  EXPECT_EQ(first_element(strided(DType::f32, {1, 4}, {kLeast, -2})), 6);
  EXPECT_EQ(first_element(strided(DType::f32, {3, 0}, {-4, -1})), 0);
  EXPECT_EQ(first_element(strided(DType::f32, {}, {})), 0);
}

TEST(Layout, WalksBackwardsOnlyWhereThereAreSteps) {
  EXPECT_TRUE(walks_backwards(strided(DType::f32, {3, 4}, {4, -1})));
  EXPECT_FALSE(walks_backwards(strided(DType::f32, {3, 4}, {0, 1})));
  EXPECT_FALSE(walks_backwards(strided(DType::f32, {1, 4}, {-4, 1})));
  EXPECT_FALSE(walks_backwards(strided(DType::f32, {3, 0}, {-4, -1})));
  EXPECT_FALSE(walks_backwards({{DType::f32, {32, 8}}, Layout::packed(LayoutKind::panel16)}));
}

TEST(Layout, WhatIsWalkedBackwardsIsNotContiguous) {
  EXPECT_FALSE(is_contiguous(strided(DType::f32, {3, 4}, {-4, 1})));
  EXPECT_TRUE(is_contiguous(strided(DType::f32, {1, 4}, {-4, 1})));
  EXPECT_EQ(to_string(strided(DType::f32, {3}, {-1})), "f32[3] strides [-1]");
}

}  // namespace
}  // namespace heddle
