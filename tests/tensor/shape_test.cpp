#include "heddle/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "tensor/expect_invalid.h"

namespace heddle {
namespace {

using test::expect_invalid;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(Dims, HoldsUpToEight) {
  const Dims eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(eight.size(), 8u);
  EXPECT_EQ(eight.back(), 8);
  expect_invalid([] { Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; }, "9 dimensions");
  expect_invalid([] { Dims(9, 1); }, "9 dimensions");
  expect_invalid([] { Dims(std::size_t{1} << 60, 1); }, "dimensions");
  expect_invalid([&] { Dims(eight).push_back(9); }, "9 dimensions");
  expect_invalid([&] { Dims(eight).insert(0, 9); }, "9 dimensions");
  const std::vector<std::int64_t> many(300, 1);
  expect_invalid([&] { Dims{std::span<const std::int64_t>(many)}; }, "300 dimensions");
}

TEST(Dims, InsertsAndErases) {
  Dims dims;
  EXPECT_TRUE(dims.empty());
  dims.push_back(5);
  dims.insert(0, 3);
  dims.insert(2, 7);
  dims.insert(1, 4);
  EXPECT_EQ(dims, (Dims{3, 4, 5, 7}));
  dims.erase(1);
  dims.erase(2);
  EXPECT_EQ(dims, (Dims{3, 5}));
  dims.erase(0);
  dims.erase(0);
  EXPECT_EQ(dims, Dims{});
  expect_invalid([&] { dims.insert(1, 0); }, "insertion at 1");
}

TEST(Dims, AreTheirEntriesAtEveryLengthAndWhoeverHoldsThem) {
  std::mt19937 random(7);
  std::vector<std::int64_t> want;
  Dims dims;
  for (int i = 0; i < 2000; ++i) {
    const bool grows = want.empty() || (want.size() < kMaxRank && random() % 2 == 0);
    const std::size_t at = random() % (want.size() + (grows ? 1 : 0));
    const auto place = want.begin() + static_cast<std::ptrdiff_t>(at);
    if (grows) {
      want.insert(place, i);
      dims.insert(at, i);
    } else {
      want.erase(place);
      dims.erase(at);
    }
    ASSERT_TRUE(std::ranges::equal(dims, want)) << to_string(dims);
    Dims copy(dims), moved(std::move(dims));
    EXPECT_EQ(copy, moved);
    dims = i % 3 == 0 ? Dims(std::size_t(i) % (kMaxRank + 1), 1) : Dims();
    dims = copy;
    for (std::int64_t& entry : copy) entry = -1;  // the copy's own
    EXPECT_EQ(dims, moved);
    copy = std::move(moved);
    EXPECT_EQ(dims, copy);
    const Dims& same = dims;
    dims = same;
    EXPECT_EQ(dims, copy);
  }
}

TEST(Dims, ComparesLengthAndValues) {
  EXPECT_EQ(Dims(3, 2), (Dims{2, 2, 2}));
  EXPECT_NE((Dims{2, 3}), (Dims{2, 3, 1}));
  EXPECT_NE((Dims{2, 3}), (Dims{3, 2}));
  Dims shortened{4, 5};
  shortened.erase(1);
  EXPECT_EQ(shortened, Dims{4});
}

TEST(Dims, PrintsAsAList) {
  EXPECT_EQ(to_string(Dims{}), "[]");
  EXPECT_EQ(to_string(Dims{7}), "[7]");
  EXPECT_EQ(to_string(Dims{2, -3, 0}), "[2, -3, 0]");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(elements(Shape{}), 1);
  EXPECT_EQ(elements(Shape{0}), 0);
  EXPECT_EQ(elements(Shape{2, 3, 4}), 24);
  EXPECT_EQ(elements(Shape{5, 0, 7}), 0);
  EXPECT_EQ(elements(Shape{kMax}), kMax);
  EXPECT_EQ(elements(Shape{kMax, 1, 1}), kMax);
  EXPECT_EQ(elements(Shape{std::int64_t{1} << 31, std::int64_t{1} << 31}), std::int64_t{1} << 62);
}

TEST(Shape, RefusesNegativeExtentsAndOverflow) {
  expect_invalid([] { elements(Shape{2, -1}); }, "[2, -1]");
  expect_invalid([] { elements(Shape{0, -1}); }, "negative");
  expect_invalid([] { elements(Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}); }, "overflow");
  expect_invalid([] { elements(Shape{kMax, 2}); }, "overflow");
  expect_invalid([] { elements(Shape(8, 1 << 30)); }, "overflow");
  // Empty, but its strides would overflow.
  expect_invalid([] { elements(Shape{kMax, kMax, 0}); }, "overflow");
}

TEST(Shape, NormalizesAxes) {
  EXPECT_EQ(normalize_axis(0, 3, "sum"), 0u);
  EXPECT_EQ(normalize_axis(2, 3, "sum"), 2u);
  EXPECT_EQ(normalize_axis(-1, 3, "sum"), 2u);
  EXPECT_EQ(normalize_axis(-3, 3, "sum"), 0u);
  expect_invalid([] { normalize_axis(3, 3, "sum"); }, "sum: axis 3");
  expect_invalid([] { normalize_axis(-4, 3, "softmax"); }, "softmax: axis -4");
  expect_invalid([] { normalize_axis(0, 0, "sum"); }, "axis 0");
  expect_invalid([] { normalize_axis(std::numeric_limits<std::int64_t>::min(), 3, "sum"); }, "sum");
}

TEST(Shape, BroadcastsAsNumPyDoes) {
  EXPECT_EQ(broadcast_shapes({}, {}), Shape{});
  EXPECT_EQ(broadcast_shapes({2, 3}, {}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({3}, {2, 1}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({8, 1, 6, 1}, {7, 1, 5}), (Shape{8, 7, 6, 5}));
  EXPECT_EQ(broadcast_shapes({1}, {0}), Shape{0});
  EXPECT_EQ(broadcast_shapes({4, 0}, {1, 1}), (Shape{4, 0}));
}

TEST(Shape, RefusesToBroadcastUnequalExtents) {
  expect_invalid([] { broadcast_shapes({2, 3}, {2}); }, "[2, 3] and [2]");
  expect_invalid([] { broadcast_shapes({2}, {2, 3}); }, "extents 2 and 3");
  expect_invalid([] { broadcast_shapes({0}, {2}); }, "[0] and [2]");
}

TEST(Shape, StridesAreRowMajor) {
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_EQ(contiguous_strides({5}), Dims{1});
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 1, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  expect_invalid([] { contiguous_strides({2, kMax, 2}); }, "overflow");
}

}  // namespace
}  // namespace heddle
