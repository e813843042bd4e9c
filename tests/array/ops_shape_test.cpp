// Creation, shape and data movement.
#include <cstring>

#include "array_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

Array grid() {
  return reshape(arange(24, DType::i32), {2, 3, 4});
}

TEST(Creation, Arange) {
  EXPECT_THAT(values<float>(arange(4.0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values<float>(arange(1.0, 2.0, 0.25)), ElementsAre(1, 1.25, 1.5, 1.75));
  EXPECT_THAT(values<int>(arange(5, 0, -2, DType::i32)), ElementsAre(5, 3, 1));
  EXPECT_EQ(arange(3, 3).size(), 0);
  EXPECT_EQ(arange(3, 1).size(), 0);
  EXPECT_THAT(values<int>(arange(0, 2, 0.5, DType::i32)), ElementsAre(0, 0, 0, 0));  // as NumPy
  EXPECT_THAT(doubles(arange(0, 3, 1, DType::f16)), ElementsAre(0, 1, 2));
  EXPECT_EQ(arange(300, DType::i64).to_vector<std::int64_t>()[299], 299);
  expect_invalid([] { arange(0, 1, 0); }, {"arange"});
  expect_invalid([] { arange(0, std::nan(""), 1); }, {"arange"});
  expect_invalid([] { arange(0, 1e300, 1); }, {"arange"});
  expect_invalid([] { arange(3, DType::bool_); }, {"arange", "bool"});
}

TEST(Creation, FullZerosOnes) {
  EXPECT_THAT(values<int>(full({2, 2}, Array({1, 2}))), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(full({2}, Array(3), DType::f16).dtype(), DType::f16);
  expect_near(full({2}, Array(3), DType::f16), {3, 3});
  EXPECT_THAT(values<float>(zeros({3})), ElementsAre(0, 0, 0));
  EXPECT_THAT(values<bool>(ones({2}, DType::bool_)), ElementsAre(true, true));
  const Array a = reshape(arange(6, DType::i64), {2, 3});
  EXPECT_EQ(zeros_like(a).spec(), a.spec());
  EXPECT_EQ(ones_like(a).to_vector<std::int64_t>()[5], 1);
  EXPECT_EQ(zeros({}).item<float>(), 0);
  EXPECT_EQ(zeros({0, 2}).size(), 0);
  expect_invalid([] { full({2}, Array({1, 2, 3})); }, {"full", "i32[3]", "[2]"});
  expect_invalid([] { zeros({2}, DType::q4_0); }, {"zeros", "q4_0"});
}

TEST(Shape, ReshapeAndFlatten) {
  EXPECT_EQ(reshape(grid(), {6, -1}).shape(), Shape({6, 4}));
  EXPECT_EQ(reshape(grid(), {-1}).shape(), Shape({24}));
  EXPECT_EQ(reshape(Array(1), {1, 1}).shape(), Shape({1, 1}));
  const Array a = grid();
  EXPECT_EQ(reshape(a, {2, 3, 4}).node(), a.node());
  EXPECT_EQ(flatten(grid()).shape(), Shape({24}));
  EXPECT_EQ(flatten(grid(), 1).shape(), Shape({2, 12}));
  EXPECT_EQ(flatten(grid(), 0, -2).shape(), Shape({6, 4}));
  EXPECT_EQ(flatten(Array(1)).shape(), Shape({1}));
  // A transposed tensor must be copied to be flat.
  EXPECT_THAT(values<int>(flatten(transpose(reshape(arange(6, DType::i32), {2, 3})))),
              ElementsAre(0, 3, 1, 4, 2, 5));
  expect_invalid([] { reshape(grid(), {5, -1}); }, {"reshape", "24", "[5, -1]"});
  expect_invalid([] { reshape(grid(), {-1, -1}); }, {"reshape", "[-1, -1]"});
  expect_invalid([] { reshape(grid(), {7}); }, {"reshape", "24", "7"});
  expect_invalid([] { reshape(grid(), {-2, -12}); }, {"reshape"});
  expect_invalid([] { reshape(zeros({0}), {0, -1}); }, {"reshape"});
  expect_invalid([] { flatten(grid(), 2, 1); }, {"flatten"});
  expect_invalid([] { flatten(grid(), 0, 3); }, {"flatten"});
}

TEST(Shape, TransposeAndItsKin) {
  EXPECT_EQ(transpose(grid()).shape(), Shape({4, 3, 2}));
  EXPECT_EQ(transpose(grid(), {1, 0, -1}).shape(), Shape({3, 2, 4}));
  EXPECT_EQ(values<int>(transpose(grid(), {1, 0, 2}))[4], 12);
  EXPECT_EQ(swapaxes(grid(), 0, -1).shape(), Shape({4, 3, 2}));
  EXPECT_EQ(moveaxis(grid(), 0, -1).shape(), Shape({3, 4, 2}));
  EXPECT_EQ(moveaxis(grid(), -1, 0).shape(), Shape({4, 2, 3}));
  EXPECT_THAT(values<int>(slice(moveaxis(grid(), 2, 0), {1, 1, 0}, {2, 2, 3})),
              ElementsAre(13, 17, 21));
  expect_invalid([] { transpose(grid(), {0, 1}); }, {"transpose", "[0, 1]"});
  expect_invalid([] { transpose(grid(), {0, 0, 1}); }, {"transpose"});
  expect_invalid([] { transpose(grid(), {0, 1, 3}); }, {"transpose"});
  expect_invalid([] { swapaxes(grid(), 0, 3); }, {"swapaxes"});
  expect_invalid([] { moveaxis(grid(), -4, 0); }, {"moveaxis"});
}

TEST(Shape, SqueezeAndExpand) {
  const Array a = reshape(arange(3.0), {1, 3, 1});
  EXPECT_EQ(squeeze(a).shape(), Shape({3}));
  EXPECT_EQ(squeeze(a, {-1}).shape(), Shape({1, 3}));
  EXPECT_EQ(expand_dims(arange(3.0), 0).shape(), Shape({1, 3}));
  EXPECT_EQ(expand_dims(arange(3.0), -1).shape(), Shape({3, 1}));
  EXPECT_EQ(expand_dims(arange(3.0), {0, -1}).shape(), Shape({1, 3, 1}));
  EXPECT_EQ(expand_dims(Array(1), {0, 1}).shape(), Shape({1, 1}));
  expect_invalid([&] { squeeze(a, {1}); }, {"squeeze", "axis 1"});
  expect_invalid([&] { squeeze(a, {0, -3}); }, {"squeeze", "twice"});
  expect_invalid([&] { expand_dims(a, 4); }, {"expand_dims"});
  expect_invalid([&] { expand_dims(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0); }, {"8"});
}

TEST(Shape, Broadcast) {
  EXPECT_THAT(values<int>(broadcast_to(Array({1, 2}), {2, 2})), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(values<int>(broadcast_to(reshape(Array({1, 2}), {2, 1}), {2, 2})),
              ElementsAre(1, 1, 2, 2));
  expect_invalid([] { broadcast_to(Array({1, 2}), {3}); }, {"broadcast_to", "i32[2]", "[3]"});
  expect_invalid([] { broadcast_to(grid(), {3}); }, {"broadcast_to"});
}

TEST(Movement, ConcatenateStackSplitRepeat) {
  const Array a = reshape(arange(4, DType::i32), {2, 2});
  const Array b = reshape(Array({4, 5}), {1, 2});
  EXPECT_THAT(values<int>(concatenate({a, b})), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<int>(concatenate({a, transpose(b)}, -1)), ElementsAre(0, 1, 4, 2, 3, 5));
  EXPECT_EQ(concatenate({a, astype(b, DType::f16)}).dtype(), DType::f16);
  EXPECT_THAT(values<int>(stack({Array({1, 2}), Array({3, 4})}, 1)), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(stack({Array(1), Array(2)}).shape(), Shape({2}));
  const std::vector<Array> thirds = split(grid(), 3, 1);
  EXPECT_EQ(thirds.size(), 3u);
  EXPECT_THAT(values<int>(thirds[2]), ElementsAre(8, 9, 10, 11, 20, 21, 22, 23));
  const std::vector<Array> parts = split(arange(10, DType::i32), {3, 7, 9, 20});
  EXPECT_THAT(values<int>(parts[1]), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(values<int>(parts[3]), ElementsAre(9));
  EXPECT_EQ(parts[4].size(), 0);
  EXPECT_THAT(values<int>(repeat(a, 2, 1)), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(values<int>(repeat(a, 2, 0)), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_EQ(repeat(a, 0, 0).shape(), Shape({0, 2}));
  const Array eight = reshape(a, {1, 1, 1, 2, 1, 1, 2, 1});  // as many dimensions as there may be
  EXPECT_EQ(repeat(eight, 2, 3).shape(), Shape({1, 1, 1, 4, 1, 1, 2, 1}));
  EXPECT_THAT(values<int>(repeat(eight, 2, 3)), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(values<int>(repeat(eight, 2, -1)), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  expect_invalid([] { concatenate({}); }, {"concatenate"});
  expect_invalid([&] { concatenate({a, grid()}); }, {"concatenate", "i32[2, 3, 4]"});
  expect_invalid([&] { concatenate({a, transpose(b)}); }, {"concatenate"});
  expect_invalid([&] { concatenate({a, a}, 2); }, {"concatenate"});
  expect_invalid([&] { stack({a, b}); }, {"stack", "i32[1, 2]"});
  expect_invalid([] { stack({}); }, {"stack"});
  expect_invalid([] { split(grid(), 5, 2); }, {"split", "i32[2, 3, 4]"});
  expect_invalid([] { split(grid(), 0, 2); }, {"split"});
  expect_invalid([&] { repeat(a, -1, 0); }, {"repeat"});
}

TEST(Movement, Take) {
  EXPECT_THAT(values<int>(take(arange(5, DType::i32), Array({4, 0, 4}))), ElementsAre(4, 0, 4));
  EXPECT_EQ(take(grid(), Array(1), 0).shape(), Shape({3, 4}));
  EXPECT_THAT(values<int>(take(grid(), Array({2, 0}), 1)),
              ElementsAre(8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15));
  const Array indices = reshape(Array({0, 1, 3, 2}), {2, 2});
  EXPECT_EQ(take(grid(), indices, 1).shape(), Shape({2, 2, 2, 4}));
  EXPECT_THAT(values<int>(slice(take(grid(), indices, -1), {1, 2, 0, 0}, {2, 3, 2, 2})),
              ElementsAre(20, 21, 23, 22));
  EXPECT_THAT(values<float>(take(arange(3.0), astype(Array({2, 1}), DType::u8))),
              ElementsAre(2, 1));
  expect_invalid([] { take(grid(), Array({0.5f}), 0); }, {"take", "f32[1]"});
  expect_invalid([] { take(Array(1), Array(0), 0); }, {"take"});
  expect_invalid([] { take(grid(), Array(0), 3); }, {"take"});
  for (const int row : {-3, 2}) {
    const Array a = take(grid(), Array({row}), 0);
    expect_invalid([&] { a.eval(); }, {std::to_string(row)});
  }
}

TEST(Movement, QuantizedTables) {
  std::vector<std::byte> blocks(2 * row_bytes(DType::q8_0, 32));
  const std::uint16_t two = f32_to_f16_bits(2.0f);
  std::memcpy(&blocks[34], &two, 2);
  blocks[36] = std::byte{5};
  const Array a = Array::from_bytes({DType::q8_0, {2, 32}}, blocks);
  EXPECT_FLOAT_EQ(dequantize(a).to_vector<float>()[32], 10);
  const Array row = take(a, Array({1}), 0);
  EXPECT_EQ(row.spec(), (TensorSpec{DType::f32, {1, 32}}));
  EXPECT_FLOAT_EQ(row.to_vector<float>()[0], 10);
  expect_invalid([] { dequantize(Array(1.0f)); }, {"dequantize", "f32[]"});
  expect_invalid([&] { a + a; }, {"add", "q8_0"});
  expect_invalid([&] { transpose(a); }, {"transpose", "q8_0"});
}

TEST(Movement, Contiguous) {
  const Array a = transpose(reshape(arange(6.0), {2, 3}));
  const Array b = contiguous(a);
  b.eval();
  EXPECT_TRUE(is_contiguous(b.view().operand));
  EXPECT_EQ(values<float>(b), values<float>(a));
  EXPECT_EQ(contiguous(b).view().host(), b.view().host());  // nothing to copy
  EXPECT_EQ(values<float>(copy(a)), values<float>(a));
}

TEST(Types, Astype) {
  EXPECT_THAT(values<int>(astype(Array({1.9f, -1.9f, 0.0f}), DType::i32)), ElementsAre(1, -1, 0));
  EXPECT_THAT(values<bool>(astype(Array({0.5f, 0.0f}), DType::bool_)), ElementsAre(true, false));
  EXPECT_FLOAT_EQ(float(astype(Array(1.0f / 3), DType::bf16).item<bf16>()), 0.33398438f);
  const Array a = arange(3.0);
  EXPECT_EQ(astype(a, DType::f32).node(), a.node());
  expect_invalid([&] { astype(a, DType::q4_K); }, {"astype", "q4_K"});
}

}  // namespace
}  // namespace heddle::test
