// Products of all kinds and windows: values worked out by hand, and against plain loops.
#include <complex>

#include "array_test_support.h"
#include "heddle/einsum.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array some(const Shape& shape, DType dtype = DType::f32) {
  const Array x = arange(static_cast<double>(elements(shape)));
  return astype(reshape(round(sin(x * 1.7f + 0.3f) * 5.0f), shape), dtype);
}

Array imaginary_unit() {
  return Array(std::vector<std::complex<float>>{{0, 1}}, {});
}

void expect_same(const Array& actual, const Array& expected, double tolerance = 1e-5) {
  ASSERT_EQ(to_string(actual.spec()), to_string(expected.spec()));
  if (actual.dtype() == DType::complex64) {
    return expect_near(view(reshape(actual, {actual.size()}), DType::f32),
                       doubles(view(reshape(expected, {expected.size()}), DType::f32)), tolerance);
  }
  expect_near(actual, doubles(expected), tolerance);
}

// ---- Matmul

TEST(Matmul, OfVectorsAndBatches) {
  const Array a = some({2, 3}), b = some({3, 4});
  EXPECT_EQ(matmul(some({3}), some({3})).shape(), Shape{});
  EXPECT_EQ(matmul(some({3}), b).shape(), Shape{4});
  EXPECT_EQ(matmul(a, some({3})).shape(), Shape{2});
  EXPECT_EQ(matmul(some({3}), some({5, 3, 4})).shape(), (Shape{5, 4}));
  EXPECT_EQ(matmul(some({5, 2, 3}), some({3})).shape(), (Shape{5, 2}));
  EXPECT_EQ(matmul(some({5, 1, 2, 3}), some({6, 3, 4})).shape(), (Shape{5, 6, 2, 4}));
  EXPECT_EQ(matmul(some({2, 3}, DType::f16), b).dtype(), DType::f32);
  EXPECT_EQ(matmul(some({2, 3}, DType::i32), b).dtype(), DType::f32);
  EXPECT_EQ(matmul(a, some({3, 4}, DType::complex64)).dtype(), DType::complex64);
  expect_near(matmul(zeros({2, 0}), zeros({0, 2})), {0, 0, 0, 0});
}

TEST(Matmul, OfComplexNumbers) {
  const Array i = imaginary_unit();
  const Array ar = some({3, 5}, DType::complex64), ai = some({5, 3}, DType::complex64);
  const Array a = ar + transpose(ai) * i, b = ai - transpose(ar) * i;
  // (p + q i)(r - s i) with p = ar, q = ai^T, r = ai, s = ar^T.
  const Array real =
      matmul(some({3, 5}), some({5, 3})) + matmul(transpose(some({5, 3})), transpose(some({3, 5})));
  const Array imaginary =
      matmul(transpose(some({5, 3})), some({5, 3})) - matmul(some({3, 5}), transpose(some({3, 5})));
  expect_same(matmul(a, b),
              astype(real, DType::complex64) + astype(imaginary, DType::complex64) * i);
}

TEST(Addmm, ScalesBoth) {
  const Array a = some({2, 3}), b = some({3, 4}), c = some({4});
  expect_same(addmm(c, a, b), matmul(a, b) + c);
  expect_same(addmm(c, a, b, 2.0f, -0.5f), matmul(a, b) * 2.0f + c * -0.5f);
  expect_same(addmm(c, a, b, 0.0f, 1.0f), broadcast_to(c, {2, 4}));
  expect_same(addmm(c * INFINITY, a, b, 1.0f, 0.0f), matmul(a, b));
  EXPECT_EQ(addmm(astype(c, DType::f16), astype(a, DType::f16), astype(b, DType::f16)).dtype(),
            DType::f16);
  EXPECT_EQ(addmm(astype(c, DType::i32), a, b).dtype(), DType::f32);
  expect_same(addmm(c, some({3}), b), matmul(some({3}), b) + c);
}

TEST(Products, InnerOuterKronAndVecdot) {
  const Array a = some({2, 3}), b = some({4, 3});
  expect_same(inner(a, b), matmul(a, transpose(b)));
  EXPECT_EQ(inner(some({2, 5, 3}), some({4, 6, 3})).shape(), (Shape{2, 5, 4, 6}));
  expect_same(inner(Array(2.0f), a), a * 2.0f);
  expect_near(inner(Array({1.0f, 2.0f}), Array({3.0f, 4.0f})), {11});
  expect_near(outer(Array({1.0f, 2.0f}), Array({3.0f, 4.0f, 5.0f})), {3, 4, 5, 6, 8, 10});
  EXPECT_EQ(outer(a, b).shape(), (Shape{6, 12}));
  EXPECT_EQ(outer(some({2}, DType::i32), some({2}, DType::i32)).dtype(), DType::i32);
  expect_near(kron(Array({1.0f, 2.0f}), Array({1.0f, 10.0f})), {1, 10, 2, 20});
  const Array x = reshape(Array({1.0f, 2.0f, 3.0f, 4.0f}), {2, 2});
  expect_near(kron(x, Array({1.0f, -1.0f})), {1, -1, 2, -2, 3, -3, 4, -4});
  EXPECT_EQ(kron(some({2, 3, 4}), some({5, 6})).shape(), (Shape{2, 15, 24}));
  EXPECT_EQ(kron(some({1, 1, 1, 1, 1, 1, 2, 1}), some({3, 1, 1, 1, 1, 1, 5, 1})).shape(),
            (Shape{3, 1, 1, 1, 1, 1, 10, 1}));
  expect_same(kron(Array(2.0f), a), a * 2.0f);
  expect_same(vecdot(a, a * 2.0f), sum(square(a) * 2.0f, 1));
  expect_same(vecdot(a, a, 0), sum(square(a), 0));
  EXPECT_EQ(vecdot(some({4, 1, 3}), some({5, 3})).shape(), (Shape{4, 5}));
  EXPECT_EQ(vecdot(some({2, 3}, DType::i32), some({3}, DType::i32)).dtype(), DType::i32);
}

TEST(Products, Tensordot) {
  const Array a = some({2, 3, 4}), b = some({3, 4, 5});
  expect_same(tensordot(a, b), matmul(reshape(a, {2, 12}), reshape(b, {12, 5})));
  EXPECT_EQ(tensordot(a, b, 0).shape(), (Shape{2, 3, 4, 3, 4, 5}));
  EXPECT_EQ(tensordot(a, some({4, 7}), 1).shape(), (Shape{2, 3, 7}));
  expect_same(tensordot(a, b, Dims{-1, 1}, Dims{1, 0}), tensordot(a, b));
  expect_same(
      tensordot(a, b, Dims{1}, Dims{0}),
      reshape(matmul(reshape(transpose(a, {0, 2, 1}), {8, 3}), reshape(b, {3, 20})), {2, 4, 4, 5}));
  EXPECT_EQ(tensordot(Array(2.0f), a, 0).shape(), a.shape());
  expect_near(tensordot(zeros({0}), zeros({0}), 1), {0});
}

TEST(Products, HadamardTransform) {
  expect_near(hadamard_transform(Array({1.0f, 2.0f, 3.0f, 4.0f}), 1.0f), {10, -2, -4, 0});
  expect_near(hadamard_transform(Array({1.0f, 2.0f, 3.0f, 4.0f})), {5, -1, -2, 0});
  expect_near(hadamard_transform(Array(3.0f), 2.0f), {6});
  EXPECT_EQ(hadamard_transform(some({2, 8}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(hadamard_transform(some({2, 8}, DType::bf16)).dtype(), DType::bf16);
  for (const std::int64_t n : {64, 12, 40, 56}) {
    const Array x = some({3, n});
    if (n == 64) expect_same(hadamard_transform(hadamard_transform(x)), x);
    expect_same(sum(square(hadamard_transform(x)), 1), sum(square(x), 1), 1e-4);
  }
}

// ---- Einsum

TEST(Einsum, Products) {
  const Array a = some({2, 3}), b = some({3, 4}), v = some({3});
  expect_same(einsum("ij,jk->ik", {a, b}), matmul(a, b));
  expect_same(einsum("ij,jk", {a, b}), matmul(a, b));
  expect_same(einsum(" ij , jk -> ki ", {a, b}), transpose(matmul(a, b)));
  expect_same(einsum("ij,j->i", {a, v}), matmul(a, v));
  expect_same(einsum("i,i->", {v, v}), sum(square(v)));
  expect_same(einsum("i,j->ij", {v, v}), outer(v, v));
  expect_same(einsum("ij,ij->ij", {a, a}), square(a));
  expect_same(einsum("bij,bjk->bik", {some({5, 2, 3}), some({5, 3, 4})}),
              matmul(some({5, 2, 3}), some({5, 3, 4})));
  expect_same(einsum("ij,kj->", {a, some({4, 3})}), sum(matmul(a, transpose(some({4, 3})))));
  expect_same(einsum(",ij->ij", {Array(2.0f), a}), a * 2.0f);
  expect_same(einsum("i,->i", {v, Array(3.0f)}), v * 3.0f);
}

TEST(Einsum, OfOneOperand) {
  const Array a = some({2, 3}), square = some({3, 3});
  expect_same(einsum("ij->ji", {a}), transpose(a));
  expect_same(einsum("ji", {a}), transpose(a));
  expect_same(einsum("ij->i", {a}), sum(a, 1));
  expect_same(einsum("ij->", {a}), sum(a));
  expect_near(einsum("ii->i", {square}),
              {doubles(square)[0], doubles(square)[4], doubles(square)[8]});
  expect_near(einsum("ii", {square}),
              {doubles(square)[0] + doubles(square)[4] + doubles(square)[8]});
  expect_same(einsum("ijij->ij", {reshape(arange(36.0), {2, 3, 2, 3})}),
              reshape(arange(0.0, 36.0, 7.0), {2, 3}));
  expect_same(einsum("...->...", {a}), a);
  EXPECT_EQ(einsum("ii->i", {zeros({0, 0})}).shape(), Shape{0});
  expect_same(einsum("iij->ji", {transpose(some({4, 3, 3}), {2, 1, 0})}),
              transpose(einsum("iij->ij", {contiguous(transpose(some({4, 3, 3}), {2, 1, 0}))})));
}

TEST(Einsum, EllipsesBroadcast) {
  const Array a = some({5, 1, 2, 3}), b = some({6, 3, 4});
  expect_same(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b));
  expect_same(einsum("...ij,...jk", {a, b}), matmul(a, b));
  expect_same(einsum("i...->...i", {some({2, 3, 4})}), transpose(some({2, 3, 4}), {1, 2, 0}));
  expect_same(einsum("...i,i->...", {some({4, 5, 3}), some({3})}),
              matmul(some({4, 5, 3}), some({3})));
  expect_same(einsum("ij,jk->ik", {some({2, 1}), some({3, 4})}),
              matmul(broadcast_to(some({2, 1}), {2, 3}), some({3, 4})));
  expect_same(einsum("bi,bi->b", {some({1, 3}), some({5, 3})}),
              sum(some({1, 3}) * some({5, 3}), 1));
}

TEST(Einsum, ManyOperandsByPairs) {
  const Array a = some({8, 2}), b = some({2, 30}), c = some({30, 4}), d = some({4, 3});
  expect_same(einsum("ij,jk,kl,lm->im", {a, b, c, d}), matmul(matmul(matmul(a, b), c), d));
  expect_same(einsum("ij,jk,ki->", {a, b, some({30, 8})}),
              sum(matmul(a, b) * transpose(some({30, 8}))));
  expect_same(einsum("i,j,k->ijk", {some({2}), some({3}), some({4})}),
              reshape(outer(outer(some({2}), some({3})), some({4})), {2, 3, 4}));
  expect_same(einsum("ii,ij,jk->k", {some({3, 3}), some({3, 5}), some({5, 2})}),
              matmul(matmul(einsum("ii->i", {some({3, 3})}), some({3, 5})), some({5, 2})));
}

TEST(Einsum, Types) {
  EXPECT_EQ(einsum("ij,jk", {some({2, 3}, DType::f16), some({3, 2}, DType::f16)}).dtype(),
            DType::f16);
  EXPECT_EQ(einsum("ij,jk", {some({2, 3}, DType::i32), some({3, 2}, DType::i32)}).dtype(),
            DType::i32);
  expect_same(einsum("ij,jk", {some({2, 3}, DType::i32), some({3, 2}, DType::i32)}),
              astype(matmul(some({2, 3}), some({3, 2})), DType::i32));
  EXPECT_EQ(einsum("ij,jk", {some({2, 3}), some({3, 2}, DType::complex64)}).dtype(),
            DType::complex64);
}

TEST(Einsum, PathsTakeTheCheapPairFirst) {
  const auto [path, text] = einsum_path("ij,jk,kl->il", {ones({2, 2}), ones({2, 5}), ones({5, 2})});
  EXPECT_THAT(path, ElementsAre(ElementsAre(1, 2), ElementsAre(0, 1)));
  EXPECT_THAT(text, HasSubstr("Complete contraction:  ij,jk,kl->il"));
  EXPECT_THAT(text, HasSubstr("Naive scaling:  4"));
  EXPECT_THAT(text, HasSubstr("Optimized scaling:  3"));
  EXPECT_THAT(einsum_path("ij,jk", {ones({2, 2}), ones({2, 2})}).first,
              ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(einsum_path("ij", {ones({2, 2})}).first, ElementsAre(ElementsAre(0)));
}

// ---- Windows

TEST(Windows, AreSymmetricAndEndWhereTheyShould) {
  expect_near(hanning(5), {0, 0.5, 1, 0.5, 0});
  expect_near(hamming(5), {0.08, 0.54, 1, 0.54, 0.08});
  expect_near(bartlett(5), {0, 0.5, 1, 0.5, 0});
  expect_near(bartlett(4), {0, 2.0 / 3, 2.0 / 3, 0});
  expect_near(blackman(5), {0, 0.34, 1, 0.34, 0});
  for (const auto window : {bartlett, blackman, hamming, hanning}) {
    const auto where = std::source_location::current();
    EXPECT_EQ(window(0, where).spec(), (TensorSpec{DType::f32, {0}}));
    EXPECT_EQ(window(-3, where).shape(), Shape{0});
    expect_near(window(1, where), {1});
    EXPECT_EQ(window(7, where).spec(), (TensorSpec{DType::f32, {7}}));
  }
}

}  // namespace
}  // namespace heddle::test
