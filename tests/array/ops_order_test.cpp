// Where the largest are, sorting and searching: values worked out by hand.
#include <cmath>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

Array row(const std::vector<float>& values) {
  return Array(values, {static_cast<std::int64_t>(values.size())});
}

TEST(ArgReductions, AlongAnAxisOrOverAll) {
  const Array x = Array(std::vector<float>{3, 1, 2, 0, 5, 5}, {2, 3});
  EXPECT_EQ(argmax(x).item<std::uint32_t>(), 4u);
  EXPECT_EQ(argmin(x).item<std::uint32_t>(), 3u);
  EXPECT_EQ(argmax(x, true).shape(), (Shape{1, 1}));
  EXPECT_THAT(values<std::uint32_t>(argmax(x, 1)), ElementsAre(0, 1));
  EXPECT_THAT(values<std::uint32_t>(argmin(x, 0)), ElementsAre(1, 0, 0));
  EXPECT_EQ(argmin(x, -1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(argmax(row({1, NAN, 9})).item<std::uint32_t>(), 1u);
  EXPECT_EQ(argmin(row({1, NAN, 0})).item<std::uint32_t>(), 1u);
  EXPECT_EQ(argmax(Array(7)).item<std::uint32_t>(), 0u);
}

TEST(TopK, OfAllAndAlongAnAxis) {
  const Array x = Array(std::vector<float>{3, 1, 2, 0, 5, 5}, {2, 3});
  expect_near(topk(x, 4), {5, 5, 3, 2});
  expect_near(topk(x, 2, 1), {3, 2, 5, 5});
  expect_near(topk(x, 1, 0), {3, 5, 5});
  EXPECT_EQ(topk(x, 0, 0).shape(), (Shape{0, 3}));
  const auto [values_along, indices] = topk_with_indices(x, 2);
  expect_near(values_along, {3, 2, 5, 5});
  EXPECT_THAT(values<std::uint32_t>(indices), ElementsAre(0, 2, 1, 2));
  const auto [columns, rows] = topk_with_indices(x, 2, 0);
  expect_near(columns, {3, 5, 5, 0, 1, 2});
  EXPECT_THAT(values<std::uint32_t>(rows), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(Sorting, OfAllAndAlongAnAxis) {
  const Array x = Array(std::vector<float>{3, 1, 2, 0, 5, 4}, {2, 3});
  expect_near(sort(x), {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(sort(x).shape(), (Shape{6}));
  expect_near(sort(x, 1), {1, 2, 3, 0, 4, 5});
  expect_near(sort(x, -2), {0, 1, 2, 3, 5, 4});
  EXPECT_THAT(values<std::uint32_t>(argsort(x)), ElementsAre(3, 1, 2, 0, 5, 4));
  EXPECT_THAT(values<std::uint32_t>(argsort(x, 1)), ElementsAre(1, 2, 0, 0, 2, 1));
  EXPECT_THAT(values<std::uint32_t>(argsort(x, 0)), ElementsAre(1, 0, 0, 0, 1, 1));
  expect_near(sort(Array(7.0f)), {7});
  expect_near(sort(transpose(x), 0), {1, 0, 2, 4, 3, 5});
  expect_near(sort(flip(x), 1), {0, 4, 5, 1, 2, 3});
  const Array odd = row({NAN, 2, -INFINITY, 0, NAN, INFINITY});
  expect_near(sort(odd), {-INFINITY, 0, 2, INFINITY, NAN, NAN});
  EXPECT_THAT(values<std::uint32_t>(argsort(odd)), ElementsAre(2, 3, 1, 5, 0, 4));
  expect_near(take_along_axis(x, argsort(x, 1), 1), {1, 2, 3, 0, 4, 5});
}

TEST(Sorting, Partitions) {
  const Array x = Array(std::vector<std::int32_t>{5, 3, 9, 1, 7, 2}, {6});
  for (const int kth : {0, 2, 5, -1, -6}) {
    const std::vector<int> parted = values<int>(partition(x, kth));
    const auto at = static_cast<std::size_t>(kth < 0 ? kth + 6 : kth);
    EXPECT_EQ(parted[at], values<int>(sort(x))[at]);
    for (std::size_t i = 0; i < parted.size(); ++i) {
      EXPECT_TRUE(i < at ? parted[i] <= parted[at] : parted[i] >= parted[at]);
    }
    EXPECT_EQ(values<int>(take(x, argpartition(x, kth))), parted);
  }
  const Array two = reshape(x, {2, 3});
  EXPECT_THAT(values<int>(partition(two, 0, 0)), ElementsAre(1, 3, 2, 5, 7, 9));
  EXPECT_EQ(argpartition(two, 1, 1).shape(), (Shape{2, 3}));
  expect_invalid([&] { partition(x, 6); }, {"partition", "6", "[-6, 6)", "i32[6]"});
  expect_invalid([&] { argpartition(two, -4, 1); }, {"argpartition", "-4", "[-3, 3)"});
}

// ---- Search

TEST(Searching, LeftAndRight) {
  const Array a = Array({1, 2, 2, 4});
  EXPECT_THAT(values<std::uint32_t>(searchsorted(a, Array({0, 2, 3, 5}))), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(values<std::uint32_t>(searchsorted(a, Array({0, 2, 3, 5}), "right")),
              ElementsAre(0, 3, 3, 4));
  EXPECT_EQ(searchsorted(a, Array(2)).item<std::uint32_t>(), 1u);
  EXPECT_EQ(searchsorted(a, zeros({2, 0})).shape(), (Shape{2, 0}));
  // In the dtype that both promote to: 1.5 lies between, and is not cut to 1.
  EXPECT_EQ(searchsorted(a, Array(1.5f), "right").item<std::uint32_t>(), 1u);
  EXPECT_EQ(searchsorted(row({1, NAN, NAN}), Array(NAN)).item<std::uint32_t>(), 1u);
  EXPECT_EQ(searchsorted(row({1, NAN, NAN}), Array(NAN), "right").item<std::uint32_t>(), 3u);
  expect_invalid([&] { searchsorted(a, a, "middle"); },
                 {"searchsorted", "middle", "left or right"});
}

TEST(Searching, SortedOffsets) {
  EXPECT_THAT(values<std::uint32_t>(sorted_offsets(Array({0, 0, 2, 2, 2, 5}), 6)),
              ElementsAre(0, 2, 2, 5, 5, 5, 6));
  // What is before the first group, or behind the last, is nobody's.
  EXPECT_THAT(values<std::uint32_t>(sorted_offsets(Array({-1, -1, 0, 1, 7}), 2)),
              ElementsAre(2, 3, 4));
  EXPECT_THAT(values<std::uint32_t>(sorted_offsets(zeros({0}, DType::i64), 2)),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(values<std::uint32_t>(sorted_offsets(Array(std::vector<std::uint8_t>{3}, {1}), 300)),
              testing::SizeIs(301));
  EXPECT_THAT(values<std::uint32_t>(sorted_offsets(Array({1}), 0)), ElementsAre(0));
  expect_invalid([] { sorted_offsets(Array({1}), -1); }, {"sorted_offsets", "-1 groups"});
}

}  // namespace
}  // namespace heddle::test
