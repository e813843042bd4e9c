// Linear algebra, Fourier transforms, products and einsum against NumPy.
#include <gtest/gtest.h>

#include <limits>

#include "heddle/einsum.h"
#include "heddle/fft.h"
#include "heddle/linalg.h"
#include "numpy_oracle.h"

namespace heddle::test {
namespace {

using fft::FFTNorm;
using linalg::norm;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// a a^T + 1 on the diagonal.
Array definite(const Array& a) {
  const auto n = static_cast<double>(a.shape(-1));
  return matmul(a, swapaxes(a, -1, -2)) +
         astype(equal(expand_dims(arange(n), 1), arange(n)), a.dtype());
}

// clang-format off
const std::vector<NumpyCase> kLinalg = {
    NUMPY("f32[4, 4]", "np.linalg.inv(a)", linalg::inv(a)).loose(1000),
    NUMPY("f64[2, 3, 5, 5]", "np.linalg.inv(a)", linalg::inv(a)).loose(1000),
    NUMPY("f32[4, 4], f32[4]", "np.linalg.solve(a, b)", linalg::solve(a, b)).loose(1000),
    NUMPY("f64[3, 4, 4], f64[3, 4, 2]", "np.linalg.solve(a, b)", linalg::solve(a, b)).loose(1000),
    NUMPY("f64[4, 4], f64[4, 2]", "np.linalg.solve(np.tril(a), b)", linalg::solve_triangular(a, b)).loose(1e6),
    NUMPY("f64[4, 4], f64[4]", "np.linalg.solve(np.triu(a), b)", linalg::solve_triangular(a, b, true)).loose(1e6),
    NUMPY("f64[4, 4]", "np.linalg.inv(np.tril(a))", linalg::tri_inv(a)).loose(1e6),
    NUMPY("f32[4, 4]", "np.linalg.cholesky(a @ a.T + np.eye(4))", linalg::cholesky(definite(a))).loose(100),
    NUMPY("f64[2, 5, 5]", "np.linalg.cholesky(a @ a.swapaxes(1, 2) + np.eye(5)).swapaxes(1, 2)", linalg::cholesky(definite(a), true)).loose(100),
    NUMPY("f64[4, 4]", "np.linalg.inv(a @ a.T + np.eye(4))", linalg::cholesky_inv(linalg::cholesky(definite(a)))).loose(1000),
    NUMPY("f32[4, 4]", "np.linalg.det(a)", linalg::det(a)).loose(100),
    NUMPY("f64[3, 6, 6]", "np.linalg.det(a)", linalg::det(a)).loose(1000),
    NUMPY("f32[2, 3, 3]", "np.linalg.slogdet(a)", linalg::slogdet(a)).loose(100),
    NUMPY("f32[5, 3]", "np.linalg.qr(a)", linalg::qr(a)).loose(100),
    NUMPY("f64[3, 5]", "np.linalg.qr(a)", linalg::qr(a)).loose(100),
    NUMPY("f32[5, 3]", "np.linalg.svd(a, compute_uv=False)", linalg::svd(a, false)).loose(10),
    NUMPY("complex64[2, 3, 4]", "np.linalg.svd(a, compute_uv=False)", linalg::svd(a, false)).loose(10),
    NUMPY("f64[5, 3]", "np.linalg.pinv(a)", linalg::pinv(a)).loose(1000),
    NUMPY("f32[2, 3, 5]", "np.linalg.pinv(a)", linalg::pinv(a)).loose(100),
    NUMPY("f32[4, 4]", "np.linalg.eigvalsh(a)", linalg::eigvalsh(a)).loose(10),
    NUMPY("f64[4, 4]", "np.linalg.eigvalsh(a, 'U')", linalg::eigvalsh(a, "U")).loose(10),
    NUMPY("complex64[3, 3]", "np.linalg.eigvalsh(a)", linalg::eigvalsh(a)).loose(10),
    NUMPY("f64[4, 4]", "np.sort_complex(np.linalg.eigvals(a)).sum()", sum(linalg::eigvals(a))).loose(100),
    NUMPY("complex64[4, 4]", "np.linalg.eigvals(a).sum()", sum(linalg::eigvals(a))).loose(100),
    NUMPY("f32[3], f32[3]", "np.cross(a, b)", linalg::cross(a, b)).loose(10),
    NUMPY("f32[4, 3], i32[3]", "np.cross(a, b)", linalg::cross(a, b)).loose(10),
    NUMPY("f32[3, 5], f32[2, 5]", "np.cross(a, b, axis=0)", linalg::cross(a, b, 0)).loose(10),
    NUMPY("f32[7]", "np.linalg.norm(a)", norm(a)),
    NUMPY("f32[3, 4, 5]", "np.linalg.norm(a.ravel())", norm(a)),
    NUMPY("f32[7]", "np.linalg.norm(a, 3)", norm(a, 3.0)).loose(10),
    NUMPY("f32[7]", "np.linalg.norm(a, -2.5)", norm(a, -2.5)).loose(10),
    NUMPY("i32[7]", "float(np.linalg.norm(a, 0))", norm(a, 0.0)),
    NUMPY("complex64[7]", "np.linalg.norm(a, 1)", norm(a, 1.0)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, axis=1, keepdims=True)", norm(a, 1, true)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, np.inf, axis=0)", norm(a, kInf, 0)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, 1)", norm(a, 1.0)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, -1)", norm(a, -1.0)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, np.inf)", norm(a, kInf)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, -np.inf)", norm(a, -kInf)),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, 2)", norm(a, 2.0)).loose(10),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, -2)", norm(a, -2.0)).loose(10),
    NUMPY("f32[3, 4]", "np.linalg.norm(a, 'nuc')", norm(a, "nuc")).loose(10),
    NUMPY("complex64[3, 4]", "np.linalg.norm(a, 'fro')", norm(a, "fro")),
    NUMPY("complex64[3, 4]", "np.linalg.norm(a, 2)", norm(a, 2.0)).loose(10),
    NUMPY("f32[3, 4, 5]", "np.linalg.norm(a, 1, axis=(2, 0))", norm(a, 1.0, Dims{2, 0})),
    NUMPY("f32[3, 4, 5]", "np.linalg.norm(a, 2, axis=(0, 2), keepdims=True)", norm(a, 2.0, Dims{0, 2}, true)).loose(10),
    NUMPY("f32[3, 4, 5]", "np.linalg.norm(a, axis=(0, 2))", norm(a, Dims{0, 2})),
};

const std::vector<NumpyCase> kFft = {
    NUMPY("complex64[12]", "np.fft.fft(a)", fft::fft(a)).loose(10),
    NUMPY("f32[12]", "np.fft.fft(a)", fft::fft(a)).loose(10),
    NUMPY("complex64[3, 7]", "np.fft.fft(a, axis=0)", fft::fft(a, 0)).loose(10),
    NUMPY("complex64[3, 7]", "np.fft.fft(a, 10, 1)", fft::fft(a, 10, 1)).loose(10),
    NUMPY("complex64[3, 7]", "np.fft.ifft(a, 5, 1)", fft::ifft(a, 5, 1)).loose(10),
    NUMPY("complex64[3, 7]", "np.fft.fft(a, norm='ortho')", fft::fft(a, -1, FFTNorm::ortho)).loose(10),
    NUMPY("complex64[3, 7]", "np.fft.ifft(a, norm='forward')", fft::ifft(a, -1, FFTNorm::forward)).loose(10),
    NUMPY("f32[4, 9]", "np.fft.rfft(a)", fft::rfft(a)).loose(10),
    NUMPY("f32[4, 8]", "np.fft.rfft(a, 7, 1)", fft::rfft(a, 7, 1)).loose(10),
    NUMPY("f32[61, 2]", "np.fft.rfft(a, axis=0, norm='forward')", fft::rfft(a, 0, FFTNorm::forward)).loose(10),
    NUMPY("complex64[4, 5]", "np.fft.irfft(a)", fft::irfft(a)).loose(10),
    NUMPY("complex64[4, 5]", "np.fft.irfft(a, 9)", fft::irfft(a, 9, -1)).loose(10),
    NUMPY("complex64[4, 5]", "np.fft.irfft(a, 12)", fft::irfft(a, 12, -1)).loose(10),
    NUMPY("complex64[4, 5]", "np.fft.irfft(a, axis=0, norm='ortho')", fft::irfft(a, 0, FFTNorm::ortho)).loose(10),
    NUMPY("complex64[3, 4, 5]", "np.fft.fft2(a)", fft::fft2(a)).loose(20),
    NUMPY("complex64[3, 4, 5]", "np.fft.ifft2(a, axes=(0, 1))", fft::ifft2(a, Dims{0, 1})).loose(10),
    NUMPY("f32[3, 4, 5]", "np.fft.rfft2(a)", fft::rfft2(a)).loose(20),
    NUMPY("complex64[3, 4, 5]", "np.fft.irfft2(a)", fft::irfft2(a)).loose(10),
    NUMPY("complex64[3, 4, 5]", "np.fft.fftn(a)", fft::fftn(a)).loose(40),
    NUMPY("complex64[3, 4, 5]", "np.fft.fftn(a, (2, 7), (0, 2))", fft::fftn(a, {2, 7}, Dims{0, 2})).loose(20),
    NUMPY("complex64[3, 4, 5]", "np.fft.ifftn(a, norm='ortho')", fft::ifftn(a, FFTNorm::ortho)).loose(20),
    NUMPY("f32[3, 4, 5]", "np.fft.rfftn(a)", fft::rfftn(a)).loose(40),
    NUMPY("f32[3, 4, 5]", "np.fft.rfftn(a, axes=(2, 0))", fft::rfftn(a, Dims{2, 0})).loose(20),
    NUMPY("complex64[3, 4, 5]", "np.fft.irfftn(a)", fft::irfftn(a)).loose(10),
    NUMPY("complex64[3, 4, 5]", "np.fft.irfftn(a, (3, 4, 9), (0, 1, 2))", fft::irfftn(a, {3, 4, 9}, Dims{0, 1, 2})).loose(10),
    NUMPY("f32[5, 6]", "np.fft.fftshift(a)", fft::fftshift(a)),
    NUMPY("f32[5, 6]", "np.fft.fftshift(a, 0)", fft::fftshift(a, Dims{0})),
    NUMPY("f32[5, 6]", "np.fft.ifftshift(a)", fft::ifftshift(a)),
    NUMPY("", "np.fft.fftfreq(9, 0.5)", fft::fftfreq(9, 0.5)),
    NUMPY("", "np.fft.fftfreq(8)", fft::fftfreq(8)),
    NUMPY("", "np.fft.rfftfreq(9, 0.5)", fft::rfftfreq(9, 0.5)),
    NUMPY("", "np.fft.rfftfreq(8)", fft::rfftfreq(8)),
};

const std::vector<NumpyCase> kProducts = {
    NUMPY("f32[3, 4], f32[4, 5]", "a @ b", matmul(a, b)).loose(10),
    NUMPY("f32[4], f32[2, 4, 5]", "a @ b", matmul(a, b)).loose(10),
    NUMPY("f32[2, 3, 4], f32[4]", "a @ b", matmul(a, b)).loose(10),
    NUMPY("complex64[6, 1, 3, 4], complex64[2, 4, 5]", "a @ b", matmul(a, b)).loose(10),
    NUMPY("f32[3, 4], complex64[4, 5]", "a @ b", matmul(a, b)).loose(10),
    NUMPY("f32[5], f32[3, 4], f32[4, 5]", "0.5 * a + 2 * (b @ c)", addmm(a, b, c, 2.0f, 0.5f)).loose(10),
    NUMPY("f32[2, 3, 4], f32[5, 4]", "np.inner(a, b)", inner(a, b)).loose(10),
    NUMPY("f32[2, 3], i8[4]", "np.outer(a, b)", outer(a, b)),
    NUMPY("i32[2, 3], i32[4]", "np.outer(a, b)", outer(a, b)),
    NUMPY("f32[2, 3], f32[4, 5]", "np.kron(a, b)", kron(a, b)),
    NUMPY("i32[3], i32[2, 1, 4]", "np.kron(a, b)", kron(a, b)),
    NUMPY("f32[3, 4, 5], f32[4, 5, 2]", "np.tensordot(a, b)", tensordot(a, b)).loose(30),
    NUMPY("f32[3, 4], f32[4, 5, 2]", "np.tensordot(a, b, 1)", tensordot(a, b, 1)).loose(10),
    NUMPY("f32[3, 4], f32[2]", "np.tensordot(a, b, 0)", tensordot(a, b, 0)),
    NUMPY("f32[3, 4, 5], f32[5, 2, 3]", "np.tensordot(a, b, ([0, 2], [2, 0]))", tensordot(a, b, Dims{0, -1}, Dims{2, 0})).loose(30),
    NUMPY("f32[2, 1, 4], f32[3, 4]", "(a * b).sum(-1)", vecdot(a, b)).loose(10),
    NUMPY("f32[4, 2], f32[4, 2]", "(a * b).sum(0)", vecdot(a, b, 0)).loose(10),
    NUMPY("i32[5], i32[5]", "(a * b).sum()", vecdot(a, b)),
    NUMPY("complex64[3, 5], complex64[3, 5]", "(a.conj() * b).sum(-1)", vecdot(a, b)).loose(10),
    NUMPY("", "np.bartlett(9)", bartlett(9)),
    NUMPY("", "np.blackman(9)", blackman(9)),
    NUMPY("", "np.hamming(9)", hamming(9)),
    NUMPY("", "np.hanning(9)", hanning(9)),
    NUMPY("", "np.hanning(1)", hanning(1)),
    NUMPY("", "np.hamming(0)", hamming(0)),
};

const std::vector<NumpyCase> kEinsum = {
    NUMPY("f32[3, 4], f32[4, 5]", "np.einsum('ij,jk', a, b)", einsum("ij,jk", {a, b})).loose(10),
    NUMPY("f32[3, 4], f32[4, 5]", "np.einsum('ij,jk->ki', a, b)", einsum("ij,jk->ki", {a, b})).loose(10),
    NUMPY("f32[3, 4], f32[4, 5]", "np.einsum('bA,Ac', a, b)", einsum("bA,Ac", {a, b})).loose(10),
    NUMPY("f32[3, 4], f32[3, 5]", "np.einsum('ij,ik->', a, b)", einsum("ij,ik->", {a, b})).loose(30),
    NUMPY("f32[4, 4]", "np.einsum('ii', a)", einsum("ii", {a})),
    NUMPY("f32[4, 4]", "np.einsum('ii->i', a)", einsum("ii->i", {a})),
    NUMPY("i32[2, 3, 4]", "np.einsum('kji', a)", einsum("kji", {a})),
    NUMPY("i32[2, 3, 4], i32[4, 3]", "np.einsum('abc,cb->a', a, b)", einsum("abc,cb->a", {a, b})),
    NUMPY("f32[2, 3, 4], f32[5, 2, 4]", "np.einsum('abc,dac->bda', a, b)", einsum("abc,dac->bda", {a, b})).loose(10),
    NUMPY("f32[2, 3, 4], f32[4]", "np.einsum('...i,i', a, b)", einsum("...i,i", {a, b})).loose(10),
    NUMPY("f32[2, 1, 3, 4], f32[5, 4, 6]", "np.einsum('...ij,...jk->...ki', a, b)", einsum("...ij,...jk->...ki", {a, b})).loose(10),
    NUMPY("f32[2, 3, 4]", "np.einsum('...j->j...', a)", einsum("...j->j...", {a})),
    NUMPY("complex64[3, 4], f32[4, 5]", "np.einsum('ij,jk->ik', a, b)", einsum("ij,jk->ik", {a, b})).loose(10),
    NUMPY("f32[3, 4], f32[4, 5], f32[5, 6], f32[6]", "np.einsum('ij,jk,kl,l->i', a, b, c, d)", einsum("ij,jk,kl,l->i", {a, b, c, d})).loose(300),
    NUMPY("f32[3, 3, 2], f32[2, 4], f32[4, 4]", "np.einsum('iij,jk,kk->ik', a, b, c)", einsum("iij,jk,kk->ik", {a, b, c})).loose(30),
    NUMPY("f32[2, 3], f32[4], f32[5]", "np.einsum('ij,k,l->lkji', a, b, c)", einsum("ij,k,l->lkji", {a, b, c})).loose(10),
    NUMPY("f32[0, 3], f32[3, 2]", "np.einsum('ij,jk', a, b)", einsum("ij,jk", {a, b})),
    NUMPY("f32[3, 0], f32[0, 2]", "np.einsum('ij,jk', a, b)", einsum("ij,jk", {a, b})),
};
// clang-format on

TEST(Numpy, LinearAlgebra) {
  expect_numpy_agrees(kLinalg);
}
TEST(Numpy, FourierTransforms) {
  expect_numpy_agrees(kFft);
}
TEST(Numpy, ProductsAndWindows) {
  expect_numpy_agrees(kProducts);
}
TEST(Numpy, Einsum) {
  expect_numpy_agrees(kEinsum);
}

}  // namespace
}  // namespace heddle::test
