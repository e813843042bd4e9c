// Expected texts are what NumPy's repr prints for the same values, its dtype names aside.
#include <sstream>

#include "array_test_support.h"

namespace heddle::test {
namespace {

TEST(Print, Scalars) {
  EXPECT_EQ(to_string(Array(3.5f)), "array(3.5, dtype=f32)");
  EXPECT_EQ(to_string(Array(3.0f)), "array(3., dtype=f32)");
  EXPECT_EQ(to_string(Array(-7)), "array(-7, dtype=i32)");
  EXPECT_EQ(to_string(Array(true)), "array(True, dtype=bool)");
}

TEST(Print, RowsAreAligned) {
  EXPECT_EQ(to_string(Array({1, 2})), "array([1, 2], dtype=i32)");
  EXPECT_EQ(to_string(Array({1, -20, 300})), "array([  1, -20, 300], dtype=i32)");
  EXPECT_EQ(to_string(Array({1.0f, 2.5f, -3.25f})), "array([ 1.  ,  2.5 , -3.25], dtype=f32)");
  EXPECT_EQ(to_string(Array({true, false})), "array([ True, False], dtype=bool)");
  EXPECT_EQ(to_string(astype(Array({200}), DType::u8)), "array([200], dtype=u8)");
}

TEST(Print, FloatsUseTheirOwnShortestDigits) {
  EXPECT_EQ(to_string(Array({0.1f, 0.2f})), "array([0.1, 0.2], dtype=f32)");
  EXPECT_EQ(to_string(astype(Array({0.1f, 0.5f}), DType::f16)), "array([0.1, 0.5], dtype=f16)");
  EXPECT_EQ(to_string(astype(Array({0.1f}), DType::bf16)), "array([0.1], dtype=bf16)");
  const std::vector<double> third = {1.0 / 3};
  EXPECT_EQ(to_string(Array(third, {1})), "array([0.33333333], dtype=f64)");
  EXPECT_EQ(to_string(Array({1e8f})), "array([1.e+08], dtype=f32)");
  EXPECT_EQ(to_string(Array({1e-5f, 1.0f})), "array([1.e-05, 1.e+00], dtype=f32)");
  EXPECT_EQ(to_string(Array({1.5f, 2000.0f})), "array([1.5e+00, 2.0e+03], dtype=f32)");
  EXPECT_EQ(to_string(Array({0.0f, -0.0f})), "array([ 0., -0.], dtype=f32)");
}

TEST(Print, WhatIsNotFinite) {
  EXPECT_EQ(to_string(Array({1.0f, std::nanf("")})), "array([ 1., nan], dtype=f32)");
  EXPECT_EQ(to_string(Array({1.5f, INFINITY, -INFINITY})), "array([ 1.5,  inf, -inf], dtype=f32)");
}

TEST(Print, Complex) {
  const std::vector<std::complex<float>> z = {{1, 2}, {-0.5f, -3}};
  EXPECT_EQ(to_string(Array(z, {2})), "array([ 1. +2.j, -0.5-3.j], dtype=complex64)");
}

TEST(Print, NestsAndIndents) {
  EXPECT_EQ(to_string(reshape(arange(6, DType::i32), {2, 3})),
            "array([[0, 1, 2],\n"
            "       [3, 4, 5]], dtype=i32)");
  EXPECT_EQ(to_string(reshape(arange(8, DType::i32), {2, 2, 2})),
            "array([[[0, 1],\n"
            "        [2, 3]],\n"
            "\n"
            "       [[4, 5],\n"
            "        [6, 7]]], dtype=i32)");
  EXPECT_EQ(to_string(transpose(reshape(arange(6, DType::i32), {2, 3}))),
            "array([[0, 3],\n"
            "       [1, 4],\n"
            "       [2, 5]], dtype=i32)");
}

TEST(Print, WrapsLongRows) {
  EXPECT_EQ(to_string(arange(25, DType::i32)),
            "array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,\n"
            "       17, 18, 19, 20, 21, 22, 23, 24], dtype=i32)");
}

TEST(Print, SummarisesBeyondAThousandElements) {
  EXPECT_EQ(to_string(arange(1001, DType::i32)),
            "array([   0,    1,    2, ...,  998,  999, 1000], dtype=i32)");
  EXPECT_EQ(to_string(reshape(arange(1200, DType::i32), {300, 4})),
            "array([[   0,    1,    2,    3],\n"
            "       [   4,    5,    6,    7],\n"
            "       [   8,    9,   10,   11],\n"
            "       ...,\n"
            "       [1188, 1189, 1190, 1191],\n"
            "       [1192, 1193, 1194, 1195],\n"
            "       [1196, 1197, 1198, 1199]], dtype=i32)");
  EXPECT_EQ(to_string(arange(1000, DType::i32)).find("..."), std::string::npos);
  const Array huge = broadcast_to(Array(1.0f), {1 << 20, 1 << 20});
  EXPECT_LT(to_string(huge).size(), 400u);  // nothing that big was made
}

TEST(Print, Empty) {
  EXPECT_EQ(to_string(zeros({0})), "array([], dtype=f32)");
  EXPECT_EQ(to_string(zeros({0, 3})), "array([], shape=[0, 3], dtype=f32)");
}

TEST(Print, QuantizedArraysShowTheirValues) {
  const Array a =
      Array::from_bytes({DType::q8_0, {32}}, std::vector<std::byte>(row_bytes(DType::q8_0, 32)));
  EXPECT_THAT(to_string(a), testing::StartsWith("array([0., 0., 0.,"));
  EXPECT_THAT(to_string(a), testing::EndsWith("dtype=q8_0)"));
}

TEST(Print, Streams) {
  std::ostringstream out;
  out << Array({1, 2}) + 1;
  EXPECT_EQ(out.str(), "array([2, 3], dtype=i32)");
}

}  // namespace
}  // namespace heddle::test
