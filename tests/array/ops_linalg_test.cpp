// Linear algebra: values worked out by hand, and what must hold of factors.
#include <complex>
#include <limits>

#include "array_test_support.h"
#include "heddle/linalg.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Array matrix(const std::vector<float>& values, std::int64_t rows) {
  return Array(values, {rows, static_cast<std::int64_t>(values.size()) / rows});
}

Array complex_row(const std::vector<std::complex<float>>& values) {
  return Array(values, {static_cast<std::int64_t>(values.size())});
}

/// Numbers that no axis is alike in.
Array some(const Shape& shape, DType dtype = DType::f32) {
  const Array x = arange(static_cast<double>(elements(shape)));
  return astype(reshape(sin(x * 1.7f + square(x) * 0.01f) * 2.0f, shape), dtype);
}

/// Symmetric and positive definite.
Array definite(const Shape& shape, DType dtype = DType::f32) {
  const Array a = some(shape, dtype);
  const auto n = static_cast<double>(shape.back());
  const Array i = expand_dims(arange(n), 1), j = arange(n);
  return matmul(a, swapaxes(a, -1, -2)) + astype(equal(i, j), dtype);
}

void expect_close(const Array& actual, const Array& expected, double tolerance = 1e-4) {
  ASSERT_EQ(to_string(actual.spec()), to_string(expected.spec()));
  if (actual.dtype() == DType::complex64) {
    return expect_near(view(reshape(actual, {actual.size()}), DType::f32),
                       doubles(view(reshape(expected, {expected.size()}), DType::f32)), tolerance);
  }
  expect_near(actual, doubles(expected), tolerance);
}

Array rows_of(const Array& a, const Array& indices) {
  return take_along_axis(a, expand_dims(indices, -1), -2);
}

Array first_columns(const Array& a, std::int64_t count) {
  Dims stop = a.shape();
  stop[stop.size() - 1] = count;
  return slice(a, Dims(a.ndim(), 0), stop);
}

// ---- Factors

TEST(Linalg, FactorsMultiplyToTheMatrix) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{4, 4}, Shape{2, 3, 5, 3}, Shape{3, 6}, Shape{1, 1}}) {
      const Array a = some(shape, dtype);
      const auto [q, r] = linalg::qr(a);
      expect_close(matmul(q, r), a);
      const std::vector<Array> plu = linalg::lu(a);
      expect_close(rows_of(matmul(plu[1], plu[2]), plu[0]), a);
      const std::vector<Array> usv = linalg::svd(a);
      const std::int64_t k = usv[1].shape(-1);
      const Array us = first_columns(usv[0], k) * expand_dims(usv[1], -2);
      const Array vt = swapaxes(first_columns(swapaxes(usv[2], -1, -2), k), -1, -2);
      expect_close(matmul(us, vt), a);
      expect_close(linalg::svd(a, false).at(0), usv[1]);
    }
    const Array a = definite({2, 5, 5}, dtype);
    const Array l = linalg::cholesky(a), u = linalg::cholesky(a, true);
    expect_close(matmul(l, swapaxes(l, -1, -2)), a);
    expect_close(matmul(swapaxes(u, -1, -2), u), a);
    expect_close(swapaxes(u, -1, -2), l);
    const Array identity = astype(equal(expand_dims(arange(5.0), 1), arange(5.0)), dtype);
    expect_close(matmul(linalg::inv(a), a), broadcast_to(identity, {2, 5, 5}), 1e-3);
    expect_close(matmul(linalg::tri_inv(l), l), broadcast_to(identity, {2, 5, 5}));
    expect_close(matmul(linalg::tri_inv(u, true), u), broadcast_to(identity, {2, 5, 5}));
    expect_close(linalg::cholesky_inv(l), linalg::inv(a));
    expect_close(linalg::cholesky_inv(u, true), linalg::inv(a));
    const auto [w, v] = linalg::eigh(a);
    expect_close(matmul(a, v), v * expand_dims(w, -2));
    expect_close(linalg::eigvalsh(a), w);
    expect_close(linalg::eigvalsh(a, "U"), w);
    expect_close(linalg::eigh(a, "U").first, w);
  }
}

TEST(Linalg, LuIsTriangularWithOnes) {
  const Array a = some({3, 5});
  const std::vector<Array> plu = linalg::lu(a);
  EXPECT_EQ(plu[0].dtype(), DType::u32);
  EXPECT_EQ(plu[1].shape(), (Shape{3, 3}));
  EXPECT_EQ(plu[2].shape(), (Shape{3, 5}));
  const std::vector<double> l = doubles(plu[1]), u = doubles(plu[2]);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(l[i * 3 + i], 1);
    for (std::size_t j = i + 1; j < 3; ++j) EXPECT_EQ(l[i * 3 + j], 0);
    for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(u[i * 5 + j], 0);
  }
  const auto [both, pivots] = linalg::lu_factor(matrix({1, 2, 3, 4}, 2));
  expect_near(both, {3, 4, 1.0 / 3, 2.0 / 3});
  EXPECT_THAT(values<std::uint32_t>(pivots), ElementsAre(1u, 1u));
  EXPECT_THAT(values<std::uint32_t>(linalg::lu(matrix({1, 2, 3, 4}, 2))[0]), ElementsAre(1u, 0u));
}

TEST(Linalg, ComplexFactors) {
  const Array re = some({2, 4, 4}), im = some({2, 4, 4}, DType::f64) * 0.5f;
  const Array i = complex_row({{0, 1}});
  const Array a = astype(re, DType::complex64) + astype(im, DType::complex64) * i;
  const std::vector<Array> usv = linalg::svd(a);
  EXPECT_EQ(usv[1].dtype(), DType::f32);
  expect_close(matmul(usv[0] * astype(expand_dims(usv[1], -2), DType::complex64), usv[2]), a);
  const auto [w, v] = linalg::eig(a);
  expect_close(matmul(a, v), v * expand_dims(w, -2));
  EXPECT_EQ(linalg::eigvals(a).shape(), (Shape{2, 4}));
}

TEST(Linalg, EigenvaluesOfARotationAreComplex) {
  const Array a = matrix({0, -1, 1, 0}, 2);
  const auto [w, v] = linalg::eig(a);
  EXPECT_EQ(w.dtype(), DType::complex64);
  expect_near(view(w, DType::f32), {0, 1, 0, -1});
  expect_close(matmul(astype(a, DType::complex64), v), v * expand_dims(w, -2));
}

TEST(Linalg, PinvOfTallWideAndSingular) {
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 4}}) {
    const Array a = some(shape);
    const Array p = linalg::pinv(a);
    expect_close(matmul(matmul(a, p), a), a);
    expect_close(matmul(matmul(p, a), p), p);
  }
  expect_near(linalg::pinv(matrix({1, 2, 2, 4}, 2)), {0.04, 0.08, 0.08, 0.16});
  EXPECT_EQ(linalg::pinv(zeros({2, 0, 3})).shape(), (Shape{2, 3, 0}));
}

TEST(Linalg, OfOtherLayouts) {
  const Array a = definite({6, 6});
  const Array padded = zeros({12, 13});
  const Array strided =
      slice(slice_update(padded, a, {0, 1}, {12, 13}, {2, 2}), {0, 1}, {12, 13}, {2, 2});
  for (const Array& view : {transpose(a), strided, flip(flip(a))}) {
    expect_close(linalg::inv(view), linalg::inv(contiguous(view)));
    expect_close(linalg::cholesky(view), linalg::cholesky(contiguous(view)));
    expect_close(linalg::det(view), linalg::det(contiguous(view)), 1e-3);
  }
  const Array turned = flip(some({3, 3}), 0);
  expect_close(linalg::solve(turned, flip(some({3, 2}))),
               linalg::solve(contiguous(turned), contiguous(flip(some({3, 2})))));
}

// ---- Equations

TEST(Linalg, SolveFindsX) {
  const Array a = matrix({2, 1, 1, 3}, 2);
  expect_near(linalg::solve(a, Array({3.0f, 5.0f})), {0.8, 1.4});
  const Array b = some({2, 3});
  expect_close(matmul(a, linalg::solve(a, b)), b);
  expect_near(linalg::solve_triangular(a, Array({2.0f, 7.0f})), {1, 2});
  expect_near(linalg::solve_triangular(a, Array({3.0f, 3.0f}), true), {1, 1});
  // Leading axes broadcast.
  const Array many = definite({4, 1, 3, 3}), sides = some({5, 3, 2});
  const Array x = linalg::solve(many, sides);
  EXPECT_EQ(x.shape(), (Shape{4, 5, 3, 2}));
  expect_close(matmul(many, x), broadcast_to(sides, {4, 5, 3, 2}), 1e-3);
  EXPECT_EQ(linalg::solve(many, some({3})).shape(), (Shape{4, 1, 3}));
  EXPECT_EQ(linalg::solve(astype(a, DType::f64), b).dtype(), DType::f64);
  EXPECT_EQ(linalg::solve(zeros({0, 0}), zeros({0})).shape(), Shape{0});
}

TEST(Linalg, FailuresStickAndTravel) {
  const Array singular = matrix({1, 2, 2, 4}, 2);
  const Array inverse = linalg::inv(singular);
  const Array after = inverse + 1.0f;
  for (int i = 0; i < 2; ++i) {
    expect_invalid([&] { after.eval(); }, {"the matrix is singular"});
    expect_invalid([&] { inverse.eval(); }, {"the matrix is singular"});
  }
  const Array batch = stack({matrix({2, 1, 1, 2}, 2), matrix({1, 2, 2, 1}, 2)});
  expect_invalid([&] { linalg::cholesky(batch).eval(); },
                 {"matrix [1] is not positive definite", "order 2"});
  expect_invalid([&] { linalg::svd(matrix({1, NAN, 0, 1}, 2)).at(0).eval(); }, {"NaN"});
  expect_near(linalg::cholesky(slice(batch, {0, 0, 0}, {1, 2, 2})),
              {std::sqrt(2.0), 0, std::sqrt(0.5), std::sqrt(1.5)});
}

// ---- Determinants

TEST(Linalg, Determinants) {
  expect_near(linalg::det(matrix({1, 2, 3, 4}, 2)), {-2});
  expect_near(linalg::det(matrix({0, 1, 0, 0, 0, 1, 1, 0, 0}, 3)), {1});
  expect_near(linalg::det(matrix({1, 2, 2, 4}, 2)), {0});
  expect_near(linalg::det(zeros({2, 0, 0})), {1, 1});
  expect_near(linalg::det(Array(std::vector<std::int32_t>{2, 0, 0, 3}, {2, 2})), {6});
  EXPECT_EQ(linalg::det(ones({1, 1}, DType::f16)).dtype(), DType::f16);
  const auto [sign, logarithm] = linalg::slogdet(
      stack({matrix({0, 1, 1, 0}, 2), matrix({3, 0, 0, 3}, 2), matrix({1, 2, 2, 4}, 2)}));
  expect_near(sign, {-1, 1, 0});
  expect_near(logarithm, {0, 2 * std::log(3.0), -kInf});
  // The product of some is beyond f32, that of all is not.
  std::vector<float> values(16);
  const float diagonal[] = {1e30f, 1e30f, 1e-30f, 1e-30f};
  for (std::size_t i = 0; i < 4; ++i) values[i * 5] = diagonal[i];
  expect_near(linalg::det(Array(values, {4, 4})), {1});
}

// ---- Norms

TEST(Linalg, NormsOfVectors) {
  const Array x = Array({3.0f, -4.0f, 0.0f});
  expect_near(linalg::norm(x), {5});
  expect_near(linalg::norm(x, 1.0), {7});
  expect_near(linalg::norm(x, 0.0), {2});
  expect_near(linalg::norm(x, 3.0), {std::cbrt(91.0)});
  expect_near(linalg::norm(x, kInf), {4});
  expect_near(linalg::norm(x, -kInf), {0});
  expect_near(linalg::norm(complex_row({{3, 4}, {0, 12}})), {13});
  EXPECT_EQ(linalg::norm(complex_row({{3, 4}})).dtype(), DType::f32);
  EXPECT_EQ(linalg::norm(ones({3}, DType::i8)).dtype(), DType::f32);
  EXPECT_EQ(linalg::norm(ones({3}, DType::bf16)).dtype(), DType::bf16);
  expect_near(linalg::norm(full({100}, Array(400.0f), DType::f16)), {4000});  // squares are beyond
  const Array m = matrix({3, 4, 5, 12}, 2);
  expect_near(linalg::norm(m, 1), {5, 13});
  expect_near(linalg::norm(m, -2, true), {std::sqrt(34.0), std::sqrt(160.0)});
  EXPECT_EQ(linalg::norm(m, 0, true).shape(), (Shape{1, 2}));
  expect_near(linalg::norm(m, 1.0, 1), {7, 17});
  expect_near(linalg::norm(zeros({0})), {0});
}

TEST(Linalg, NormsOfMatrices) {
  const Array m = matrix({1, -2, 3, 4}, 2);
  expect_near(linalg::norm(m), {std::sqrt(30.0)});
  expect_near(linalg::norm(m, "fro"), {std::sqrt(30.0)});
  expect_near(linalg::norm(m, 1.0), {6});
  expect_near(linalg::norm(m, -1.0), {4});
  expect_near(linalg::norm(m, kInf), {7});
  expect_near(linalg::norm(m, -kInf), {3});
  // Singular values of [1, -2; 3, 4]: their squares add to 30, their product is 10.
  const double sum = std::sqrt(30.0 + 2 * 10), difference = std::sqrt(30.0 - 2 * 10);
  expect_near(linalg::norm(m, "nuc"), {sum}, 1e-5);
  expect_near(linalg::norm(m, 2.0), {(sum + difference) / 2}, 1e-5);
  expect_near(linalg::norm(m, -2.0), {(sum - difference) / 2}, 1e-5);
  const Array many = stack({m, m * 2.0f, m * 3.0f}, 1);  // [2, 3, 2]: matrices over axes 0 and 2
  expect_near(linalg::norm(many, 1.0, Dims{0, 2}), {6, 12, 18});
  expect_near(linalg::norm(many, kInf, Dims{2, 0}), {6, 12, 18});
  expect_near(linalg::norm(many, 2.0, Dims{0, 2}),
              {(sum + difference) / 2, sum + difference, (sum + difference) * 1.5}, 1e-5);
  for (const double ord : {1.0, -1.0, 2.0, -2.0, kInf, -kInf}) {
    EXPECT_EQ(linalg::norm(many, ord, Dims{0, 2}, true).shape(), (Shape{1, 3, 1}));
    EXPECT_EQ(linalg::norm(many, ord, Dims{2, 0}, true).shape(), (Shape{1, 3, 1}));
    EXPECT_EQ(linalg::norm(many, ord, Dims{2, 1}).shape(), Shape{2});
  }
  EXPECT_EQ(linalg::norm(many, "nuc", Dims{0, -1}, true).shape(), (Shape{1, 3, 1}));
  expect_near(linalg::norm(many, Dims{0, 2}),
              {std::sqrt(30.0), 2 * std::sqrt(30.0), 3 * std::sqrt(30.0)});
}

// ---- Cross products

TEST(Linalg, CrossProducts) {
  const Array x = Array({1.0f, 0.0f, 0.0f}), y = Array({0.0f, 1.0f, 0.0f});
  expect_near(linalg::cross(x, y), {0, 0, 1});
  expect_near(linalg::cross(y, x), {0, 0, -1});
  expect_near(linalg::cross(Array({1.0f, 2.0f}), Array({3.0f, 4.0f})), {0, 0, -2});
  expect_near(linalg::cross(Array({1.0f, 2.0f, 3.0f}), Array({4.0f, 5.0f})), {-15, 12, -3});
  expect_near(linalg::cross(Array({4.0f, 5.0f}), Array({1.0f, 2.0f, 3.0f})), {15, -12, 3});
  const Array columns = reshape(arange(6.0), {3, 2});
  expect_near(linalg::cross(columns, columns + Array({1.0f, 0.0f}), 0), {-2, 0, 4, 0, -2, 0});
  EXPECT_EQ(linalg::cross(ones({4, 1, 3}), ones({5, 3}, DType::f64)).spec(),
            (TensorSpec{DType::f64, {4, 5, 3}}));
  EXPECT_EQ(linalg::cross(ones({3}, DType::i32), ones({3}, DType::i32)).dtype(), DType::i32);
}

}  // namespace
}  // namespace heddle::test
