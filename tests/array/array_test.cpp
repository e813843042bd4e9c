// Making arrays and reading them.
#include "heddle/array.h"

#include <sstream>

#include "array_test_support.h"
#include "heddle/device.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

TEST(Array, ScalarsTakeTheirTypeFromCpp) {
  EXPECT_EQ(Array(2.0f).dtype(), DType::f32);
  EXPECT_EQ(Array(2.0).dtype(), DType::f32);  // as in MLX
  EXPECT_EQ(Array(2).dtype(), DType::i32);
  EXPECT_EQ(Array(std::int64_t{2}).dtype(), DType::i64);
  EXPECT_EQ(Array(std::uint8_t{2}).dtype(), DType::u8);
  EXPECT_EQ(Array(true).dtype(), DType::bool_);
  EXPECT_EQ(Array(7).item<int>(), 7);
  EXPECT_EQ(Array(true).item<bool>(), true);
  EXPECT_EQ(Array(3).ndim(), 0u);
  EXPECT_EQ(Array(3).size(), 1);
}

TEST(Array, RowsAndSpans) {
  const Array row({1, 2, 3});
  EXPECT_EQ(row.shape(), Shape({3}));
  EXPECT_THAT(values<int>(row), ElementsAre(1, 2, 3));
  EXPECT_EQ(Array({0.5, 0.25}).dtype(), DType::f32);
  EXPECT_THAT(values<bool>(Array({true, false})), ElementsAre(true, false));
  const std::vector<double> source = {1.5, 2.5, 3.5, 4.5};
  const Array matrix(source, {2, 2});
  EXPECT_EQ(matrix.dtype(), DType::f64);
  EXPECT_EQ(matrix.shape(-1), 2);
  EXPECT_EQ(matrix.nbytes(), 32u);
  EXPECT_EQ(values<double>(matrix), source);
  const std::vector<f16> halves = {f16(1.0f), f16(0.5f)};
  EXPECT_FLOAT_EQ(float(values<f16>(Array(halves, {2}))[1]), 0.5f);
}

TEST(Array, EmptyArraysHaveNoValues) {
  const Array empty(std::vector<float>{}, {0, 3});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE(values<float>(empty).empty());
  EXPECT_TRUE(values<float>(exp(empty) + 1.0f).empty());
  EXPECT_EQ((exp(empty) + 1.0f).shape(), Shape({0, 3}));
}

TEST(Array, CopiesShareTheValue) {
  Array a = exp(Array(0.0f));
  const Array b = a;
  a = Array(5.0f);
  EXPECT_FLOAT_EQ(b.item<float>(), 1);
  EXPECT_FLOAT_EQ(a.item<float>(), 5);
}

TEST(Array, KnowsWhetherItIsAvailable) {
  const Array a = exp(Array(0.0f));
  EXPECT_FALSE(a.is_available());
  a.eval();
  EXPECT_TRUE(a.is_available());
  EXPECT_TRUE(Array(1).is_available());
}

TEST(Array, StridedViewsReadInRowMajorOrder) {
  const Array a = transpose(reshape(arange(6.0), {2, 3}));
  a.eval();
  EXPECT_FALSE(is_contiguous(a.view().operand));
  EXPECT_THAT(values<float>(a), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FLOAT_EQ(slice(a, {2, 1}, {3, 2}).item<float>(), 5);
}

TEST(Array, FromViewSharesTheMemory) {
  std::vector<std::int32_t> memory = {1, 2, 3, 4, 5, 6};
  const Ref<Buffer> buffer =
      cpu_device().import_host(std::as_writable_bytes(std::span(memory)), nullptr);
  const OperandSpec columns{{DType::i32, {2, 2}}, {LayoutKind::strided, {3, 1}}};
  const Array a = Array::from_view({buffer, 4, columns});
  EXPECT_THAT(values<int>(a), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(values<int>(a + a), ElementsAre(4, 6, 10, 12));
  expect_invalid([&] { Array::from_view({buffer, 8, columns}); }, {"from_view", "offset 8"});
  expect_invalid([&] { Array::from_view({nullptr, 0, columns}); }, {"from_view"});
}

TEST(Array, ReadingWithTheWrongTypeOrSizeIsAnError) {
  const Array a({1.0f, 2.0f});
  expect_invalid([&] { a.to_vector<int>(); }, {"f32[2]", "i32", "astype"});
  expect_invalid([&] { a.item<float>(); }, {"item", "f32[2]"});
  expect_invalid([&] { Array(1).item<float>(); }, {"i32"});
  std::vector<std::byte> small(7);
  expect_invalid([&] { a.copy_to(small); }, {"copy_to", "8", "7"});
  expect_invalid([] { Array(std::vector<float>{1, 2, 3}, {2, 2}); }, {"f32[2, 2]", "16", "12"});
  expect_invalid([&] { a.shape(1); }, {"shape"});
  expect_invalid([] { Array(std::vector<float>{}, {-1}); }, {"-1"});
}

TEST(Array, ApplyChecksArity) {
  EXPECT_THROW(heddle::apply(Binary{BinaryKind::add}, {Array(1)}), Error);
  const Array x({1.0f, 2.0f});
  const Array w = reshape(x, {1, 2});
  expect_invalid([&] { heddle::apply(Linear{}, {x, w, w}); }, {"linear", "2 outputs"});
  EXPECT_EQ(heddle::apply_multi(Linear{}, {x, w, w}).size(), 2u);
}

TEST(Array, EvalTakesAnyNumber) {
  const Array a = exp(Array(0.0f)), b = a + 1.0f, c = b + 1.0f;
  eval(a, b);
  eval({c});
  eval(std::vector<Array>{});
  EXPECT_TRUE(a.is_available() && b.is_available() && c.is_available());
}

TEST(Array, BlockQuantizedBytesAreKept) {
  std::vector<std::byte> blocks(2 * row_bytes(DType::q8_0, 32));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i);
  const Array a = Array::from_bytes({DType::q8_0, {2, 32}}, blocks);
  EXPECT_EQ(a.to_bytes(), blocks);
  EXPECT_EQ(slice(a, {1, 0}, {2, 32}).to_bytes().front(), blocks[34]);
}

}  // namespace
}  // namespace heddle::test
