// Choice and replacement by indices: values worked out by hand.
#include <numeric>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

/// 0, 1, 2, ... as i32.
Array counted(const Shape& shape) {
  return reshape(arange(0, static_cast<double>(elements(shape)), 1, DType::i32), shape);
}

// ---- Take

TEST(Taking, OfAllElementsOrAlongAnAxis) {
  const Array x = counted({2, 3});
  EXPECT_THAT(values<int>(take(x, Array({5, 0, -1, -6}))), ElementsAre(5, 0, 5, 0));
  EXPECT_EQ(take(x, zeros({2, 2}, DType::i32)).shape(), (Shape{2, 2}));
  EXPECT_THAT(values<int>(take(x, Array({-1, 0}), 1)), ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(values<int>(take(x, Array({-1}), 0)), ElementsAre(3, 4, 5));
  EXPECT_THAT(values<int>(take(transpose(x), Array({-1}), 1)), ElementsAre(3, 4, 5));
  EXPECT_EQ(take(Array(7), Array({0})).shape(), (Shape{1}));
  // Unsigned ones do not count from the end.
  const Array beyond = take(x, Array(std::vector<std::uint8_t>{255}, {1}), 0);
  expect_invalid([&] { beyond.eval(); }, {"255", "[0, 2)"});
  const Array below = take(x, Array({-3}), 0);
  expect_invalid([&] { below.eval(); }, {"-3", "[-2, 2)"});
  expect_invalid([] { take(zeros({0, 3}), Array({0}), 0); }, {"take", "f32[0, 3]"});
  EXPECT_EQ(take(zeros({0, 3}), zeros({0}, DType::i32), 0).shape(), (Shape{0, 3}));
}

TEST(Taking, OneIndexDropsTheAxis) {
  const Array x = counted({2, 3});
  EXPECT_THAT(values<int>(take(x, 1, 0)), ElementsAre(3, 4, 5));
  EXPECT_THAT(values<int>(take(x, -1, -1)), ElementsAre(2, 5));
  EXPECT_EQ(take(x, 4).item<int>(), 4);
  EXPECT_EQ(take(transpose(x), -2).item<int>(), 2);
  EXPECT_EQ(take(Array(7), 0).item<int>(), 7);
  expect_invalid([&] { take(x, 2, 0); }, {"take", "2", "[-2, 2)", "i32[2, 3]"});
  expect_invalid([&] { take(x, -7); }, {"take", "-7", "[-6, 6)"});
  expect_invalid([&] { take(x, 0, 2); }, {"take", "2"});
}

// ---- Along an axis

TEST(TakeAlongAxis, ChoosesAndBroadcasts) {
  const Array x = reshape(arange(6.0), {2, 3});
  const Array index = Array(std::vector<std::int32_t>{2, 0, 1, 1}, {2, 2});
  expect_near(take_along_axis(x, index, 1), {2, 0, 4, 4});
  expect_near(take_along_axis(x, Array(std::vector<std::uint8_t>{1}, {1, 1}), 0), {3, 4, 5});
  const Array one = Array(std::vector<float>{7, 8}, {1, 2});
  const Array either = Array(std::vector<std::int32_t>{1, 0, 1, 1}, {2, 2});
  expect_near(take_along_axis(one, either, 1), {8, 7, 8, 8});
  EXPECT_EQ(take_along_axis(x, zeros({2, 0}, DType::i32), 1).shape(), (Shape{2, 0}));
  expect_near(take_along_axis(x, Array(std::vector<std::int32_t>{-1, -3, 1, -2}, {2, 2}), 1),
              {2, 0, 4, 4});
  // argmax and the largest are one.
  expect_near(take_along_axis(x, argmax(x, 1, true), 1), {2, 5});
}

TEST(PutAlongAxis, ReplacesAndAdds) {
  const Array x = zeros({2, 3});
  const Array index = Array(std::vector<std::int32_t>{2, 0, 1, 1}, {2, 2});
  const Array given = Array(std::vector<float>{1, 2, 3, 4}, {2, 2});
  expect_near(put_along_axis(x, index, given, 1), {2, 0, 1, 0, 4, 0});
  expect_near(scatter_add_axis(x, index, given, 1), {2, 0, 1, 0, 7, 0});
  expect_near(scatter_axis(x + 2.0f, index, given, 1, ScatterKind::prod), {4, 2, 2, 2, 24, 2});
  expect_near(scatter_axis(x + 2.0f, index, given, 1, ScatterKind::max), {2, 2, 2, 2, 4, 2});
  expect_near(scatter_axis(x + 2.0f, index, given, 1, ScatterKind::min), {2, 2, 1, 2, 2, 2});
  expect_near(put_along_axis(x, index, 9, 1), {9, 0, 9, 0, 9, 0});
  // Cast to x's dtype; indices broadcast along the other axes.
  const Array whole = put_along_axis(zeros({2, 3}, DType::i32),
                                     Array(std::vector<std::int32_t>{1}, {1, 1}), 2.9f, 0);
  EXPECT_EQ(whole.dtype(), DType::i32);
  EXPECT_THAT(values<std::int32_t>(whole), ElementsAre(0, 0, 0, 2, 2, 2));
  expect_near(x, {0, 0, 0, 0, 0, 0});  // as it was
}

TEST(PutAlongAxis, TakesTheMemoryOfTheOnlyHandle) {
  Array x = contiguous(arange(1000.0));
  x.eval();
  const void* memory = x.view().host();
  Array y = put_along_axis(x, Array(std::vector<std::int32_t>{3}, {1}), 7, 0);
  x = Array(0);
  y.eval();
  EXPECT_EQ(y.view().host(), memory);
  EXPECT_EQ(slice(y, {3}, {4}).item<float>(), 7);
}

// ---- Slices at indices

TEST(Gathering, SlicesOfAnySize) {
  const Array x = counted({3, 4});
  EXPECT_THAT(values<int>(gather(x, Array({2, 0}), 0, {1, 4})),
              ElementsAre(8, 9, 10, 11, 0, 1, 2, 3));
  EXPECT_EQ(gather(x, Array({2, 0}), 0, {1, 4}).shape(), (Shape{2, 1, 4}));
  EXPECT_THAT(values<int>(gather(x, Array({-3, 1}), -1, {2, 2})),
              ElementsAre(1, 2, 5, 6, 1, 2, 5, 6));
  // Indices broadcast against each other, whatever their dtypes.
  const Array rows = Array(std::vector<std::int64_t>{0, 2}, {2, 1});
  const Array columns = Array(std::vector<std::uint8_t>{1, 3}, {2});
  const Array points = gather(x, {rows, columns}, {0, 1}, {1, 1});
  EXPECT_EQ(points.shape(), (Shape{2, 2, 1, 1}));
  EXPECT_THAT(values<int>(points), ElementsAre(1, 3, 9, 11));
  EXPECT_THAT(values<int>(gather(x, {columns, rows}, {1, 0}, {1, 1})), ElementsAre(1, 3, 9, 11));
  EXPECT_THAT(values<int>(gather(transpose(x), Array(1), 1, {4, 1})), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(values<int>(gather(x, std::vector<Array>{}, {}, {1, 2})), ElementsAre(0, 1));
  const Array beyond = gather(x, Array({2}), 0, {2, 4});
  expect_invalid([&] { beyond.eval(); }, {"slice of 2 from index 2", "[0, 3)"});
}

TEST(Scattering, EveryKind) {
  const Array x = counted({2, 3}) + Array(1);  // 1 .. 6
  const Array index = Array({1, -2, 1});
  const Array updates = Array(std::vector<int>{10, 20, 30}, {3, 1, 1});
  EXPECT_THAT(values<int>(scatter(x, index, updates, 0)), ElementsAre(20, 2, 3, 30, 5, 6));
  EXPECT_THAT(values<int>(scatter_add(x, index, updates, 0)), ElementsAre(21, 2, 3, 44, 5, 6));
  EXPECT_THAT(values<int>(scatter_prod(x, index, updates, 1)), ElementsAre(1, 12000, 3, 4, 5, 6));
  EXPECT_THAT(values<int>(scatter_max(x, index, updates, 1)), ElementsAre(1, 30, 3, 4, 5, 6));
  EXPECT_THAT(values<int>(scatter_min(x, index, updates - 12, 1)), ElementsAre(1, -2, 3, 4, 5, 6));
  const Array columns = Array({0, 2, -1});
  EXPECT_THAT(values<int>(scatter_add(x, {index, columns}, updates, {0, 1})),
              ElementsAre(1, 2, 23, 14, 5, 36));
  // Cast to x's dtype; slices of several elements.
  const Array wide = Array(std::vector<float>{7.9f, 8.9f, 9.9f}, {1, 3});
  EXPECT_THAT(values<int>(scatter(x, Array(-1), wide, 0)), ElementsAre(1, 2, 3, 7, 8, 9));
  EXPECT_THAT(values<int>(scatter(x, std::vector<Array>{}, Array(std::vector<int>{9}, {1, 1}), {})),
              ElementsAre(9, 2, 3, 4, 5, 6));
  EXPECT_THAT(values<int>(x), ElementsAre(1, 2, 3, 4, 5, 6));  // as it was
}

const void* memory_of(const Array& a) {
  a.eval();
  return a.view().host();
}

TEST(Scattering, TakesTheMemoryOfTheOnlyHandle) {
  Array x = contiguous(counted({1000}));
  const void* memory = memory_of(x);
  Array y = scatter_add(x, Array({3, 3}), Array(std::vector<int>{1, 2}, {2, 1}), 0);
  x = Array(0);
  EXPECT_EQ(memory_of(y), memory);
  Array z = slice_update_add(y, Array(10), {3}, {4});
  y = Array(0);
  EXPECT_EQ(memory_of(z), memory);
  Array w = slice_update(z, Array({1, 2}), Array({-2}), {0});
  z = Array(0);
  EXPECT_EQ(memory_of(w), memory);
  EXPECT_EQ(take(w, 3).item<int>(), 16);
  EXPECT_EQ(take(w, -1).item<int>(), 2);
}

// ---- By a mask

TEST(MaskedScatter, ElementsInOrder) {
  const Array x = counted({2, 3});
  const Array mask = x % 2 == Array(1);
  const Array source = Array({-1, -2, -3, -4});
  EXPECT_THAT(values<int>(masked_scatter(x, mask, source)), ElementsAre(0, -1, 2, -2, 4, -3));
  EXPECT_THAT(values<int>(masked_scatter(x, mask, Array(9))), ElementsAre(0, 9, 2, 9, 4, 9));
  EXPECT_THAT(values<int>(masked_scatter(x, mask, Array({7}))), ElementsAre(0, 7, 2, 7, 4, 7));
  EXPECT_THAT(values<int>(masked_scatter(x, mask, reshape(arange(6.0), {2, 3}))),
              ElementsAre(0, 0, 2, 1, 4, 2));
  EXPECT_EQ(masked_scatter(x, mask, 1.5f).dtype(), DType::i32);
  const Array few = masked_scatter(x, mask, Array({1, 2}));
  expect_invalid([&] { few.eval(); }, {"outside [-2, 2)"});
  const Array none = masked_scatter(x, mask, zeros({0}));
  expect_invalid([&] { none.eval(); }, {"outside"});
  EXPECT_THAT(values<int>(masked_scatter(x, zeros({2, 3}, DType::bool_), zeros({0}))),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(MaskedScatter, RowsWhereTheMaskHasFewerAxes) {
  const Array x = counted({3, 2});
  const Array mask = Array({true, false, true});
  EXPECT_THAT(values<int>(masked_scatter(x, mask, Array(std::vector<int>{7, 8, 9, 10}, {2, 2}))),
              ElementsAre(7, 8, 2, 3, 9, 10));
  EXPECT_THAT(values<int>(masked_scatter(x, mask, Array(std::vector<int>{7, 9}, {2, 1}))),
              ElementsAre(7, 7, 2, 3, 9, 9));
  EXPECT_THAT(values<int>(masked_scatter(x, mask, Array({7, 8}))), ElementsAre(7, 8, 2, 3, 7, 8));
  EXPECT_THAT(values<int>(masked_scatter(x, Array(true), Array(4))), ElementsAre(4, 4, 4, 4, 4, 4));
  expect_invalid(
      [&] {
        masked_scatter(x, Array({true, false}), 1);
      },
      {"masked_scatter", "bool[2]", "i32[3, 2]"});
  expect_invalid([&] { masked_scatter(x, Array({1, 0, 1}), 1); }, {"masked_scatter", "i32[3]"});
}

// ---- One slice

TEST(SlicesThatBeginAtAnArray, AreReadAndReplaced) {
  const Array x = counted({3, 4});
  EXPECT_THAT(values<int>(slice(x, Array({1, 2}), {0, 1}, {2, 2})), ElementsAre(6, 7, 10, 11));
  EXPECT_THAT(values<int>(slice(x, Array(-1), {0}, {1, 3})), ElementsAre(8, 9, 10));
  EXPECT_THAT(values<int>(slice(x, Array({1}), {-1}, {2, 2})), ElementsAre(1, 2, 5, 6));
  const Array ones = Array(std::vector<int>{-1, -2}, {1, 2});
  EXPECT_THAT(values<int>(slice_update(x, ones, Array({2, 1}), {0, 1})),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, 11));
  // An update of fewer axes is all of the first ones, or one index of those that are named.
  EXPECT_THAT(values<int>(slice_update(x, Array({-1, -2}), Array({1}), {1})),
              ElementsAre(0, -1, -2, 3, 4, -1, -2, 7, 8, -1, -2, 11));
  EXPECT_THAT(values<int>(slice_update(x, Array({-1, -2}), Array({1}), {0})),
              ElementsAre(0, 1, 2, 3, -1, -2, 6, 7, 8, 9, 10, 11));
  const Array beyond = slice(x, Array({2}), {0}, {2, 4});
  expect_invalid([&] { beyond.eval(); }, {"reaches outside [0, 3)"});
  expect_invalid([&] { slice(x, Array({1, 2}), {0}, {2, 2}); }, {"slice", "i32[2]", "[0]"});
  expect_invalid([&] { slice(x, Array({1, 2}), {0, 0}, {2, 2}); }, {"slice", "twice"});
  expect_invalid([&] { slice(x, Array({1}), {0}, {4, 2}); }, {"slice", "[4, 2]", "i32[3, 4]"});
  expect_invalid(
      [&] {
        slice_update(x, zeros({4, 1}), Array({1}), {0});
      },
      {"slice_update", "i32[4, 1]", "i32[3, 4]"});
}

TEST(SliceUpdates, ThatCombine) {
  const Array x = counted({2, 3});
  EXPECT_THAT(values<int>(slice_update_add(x, Array(10), {0, 1}, {2, 3})),
              ElementsAre(0, 11, 12, 3, 14, 15));
  EXPECT_THAT(values<int>(slice_update_prod(x, Array({2, 3}), {1, 0}, {2, 3}, {1, 2})),
              ElementsAre(0, 1, 2, 6, 4, 15));
  EXPECT_THAT(values<int>(slice_update_max(x, Array(2), {0, 0}, {2, 3})),
              ElementsAre(2, 2, 2, 3, 4, 5));
  EXPECT_THAT(values<int>(slice_update_min(x, 2.9f, {-1, -9}, {9, 9})),
              ElementsAre(0, 1, 2, 2, 2, 2));
  const Array flags = Array({true, false, true});
  EXPECT_EQ(slice_update_add(flags, true, {1}, {2}).to_vector<bool>(),
            (std::vector<bool>{true, true, true}));
  EXPECT_EQ(slice_update_prod(flags, false, {0}, {1}).to_vector<bool>(),
            (std::vector<bool>{false, false, true}));
  expect_invalid(
      [&] {
        slice_update_add(x, Array({1, 2}), {0, 0}, {2, 3});
      },
      {"slice_update_add", "[2]"});
  expect_invalid([&] { slice_update_max(x, 1, {0}, {2}); }, {"slice_update_max", "i32[2, 3]"});
}

}  // namespace
}  // namespace heddle::test
