// Creation, shape, reductions and scans against NumPy.
#include <gtest/gtest.h>

#include "numpy_oracle.h"

namespace heddle::test {
namespace {

// clang-format off
const std::vector<NumpyCase> kCreation = {
    NUMPY("", "np.arange(7)", arange(7)),
    NUMPY("", "np.arange(2, 17, 4)", arange(2, 17, 4)),
    NUMPY("", "np.arange(1.0, 2.0, 0.3)", arange(1.0, 2.0, 0.3)),
    NUMPY("", "np.arange(7, 1, -2)", arange(7, 1, -2, DType::u8)),
    NUMPY("", "np.arange(0, 3, 0.5)", arange(0.0, 3.0, 0.5, DType::f16)),
    NUMPY("", "np.linspace(1, 4)", linspace(1, 4)),
    NUMPY("", "np.linspace(-1, 0.3, 7)", linspace(-1, 0.3, 7)),
    NUMPY("", "np.linspace(5, 2, 4).astype(int)", linspace(5, 2, 4, DType::i32)),
    NUMPY("", "np.linspace(1, 4, 1)", linspace(1, 4, 1, DType::f64)),
    NUMPY("", "np.linspace(1, 4, 0)", linspace(1, 4, 0)),
    NUMPY("f32[3]", "np.full((2, 3), a)", full({2, 3}, a)),
    NUMPY("i8[2, 3]", "np.full_like(a, 7)", full_like(a, 7.5f)),
    NUMPY("i8[2, 3]", "np.full_like(a, 7.5, dtype=float)", full_like(a, 7.5f, DType::f32)),
    NUMPY("i8[2, 3]", "np.zeros_like(a)", zeros_like(a)),
    NUMPY("complex64[2, 3]", "np.ones_like(a)", ones_like(a)),
    NUMPY("", "np.zeros((0, 3))", zeros({0, 3})),
    NUMPY("", "np.ones((2, 3), dtype=bool)", ones({2, 3}, DType::bool_)),
    NUMPY("", "np.eye(3)", eye(3)),
    NUMPY("", "np.eye(3, 5, 1)", eye(3, 5, 1)),
    NUMPY("", "np.eye(4, 2, -2, dtype=int)", eye(4, 2, -2, DType::i64)),
    NUMPY("", "np.eye(4, 2, 9, dtype=int)", eye(4, 2, 9, DType::i64)),
    NUMPY("", "np.identity(3, dtype=complex)", identity(3, DType::complex64)),
    NUMPY("", "np.tri(3, 5, 1)", tri(3, 5, 1)),
    NUMPY("", "np.tri(4, 2, -1, dtype=bool)", tri(4, 2, -1, DType::bool_)),
    NUMPY("f32[2, 4, 5]", "np.tril(a)", tril(a)),
    NUMPY("i16[5, 4]", "np.tril(a, -1)", tril(a, -1)),
    NUMPY("complex64[4, 5]", "np.triu(a, 2)", triu(a, 2)),
    NUMPY("i8[4, 5, 3]", "4 * 3", number_of_elements(a, {0, -1}, false)),
    NUMPY("i8[4, 5, 3]", "1 / 12", number_of_elements(a, {0, -1}, true, DType::f32)),
};

const std::vector<NumpyCase> kShape = {
    NUMPY("f32[2, 6]", "a.reshape(3, -1)", reshape(a, {3, -1})),
    NUMPY("f32[2, 3, 4, 5]", "a.reshape(2, 12, 5)", flatten(a, 1, 2)),
    NUMPY("f32[2, 12, 5]", "a.reshape(2, 3, 4, 5)", unflatten(a, -2, {3, -1})),
    NUMPY("f32[2, 3, 4]", "a.transpose(2, 0, 1)", transpose(a, {2, 0, 1})),
    NUMPY("f32[2, 3, 4]", "a.T", transpose(a)),
    NUMPY("f32[2, 3, 4]", "np.swapaxes(a, 0, -1)", swapaxes(a, 0, -1)),
    NUMPY("f32[2, 3, 4, 5]", "np.moveaxis(a, 0, 2)", moveaxis(a, 0, 2)),
    NUMPY("f32[2, 3, 4, 5]", "np.moveaxis(a, [0, -1], [2, 0])", moveaxis(a, {0, -1}, {2, 0})),
    NUMPY("f32[1, 3, 1]", "np.squeeze(a)", squeeze(a)),
    NUMPY("f32[1, 3, 1]", "np.squeeze(a, -1)", squeeze(a, -1)),
    NUMPY("f32[3, 2]", "np.expand_dims(a, (0, -1))", expand_dims(a, {0, -1})),
    NUMPY("f32[]", "np.atleast_1d(a), np.atleast_2d(a), np.atleast_3d(a)", std::vector<Array>{atleast_1d(a), atleast_2d(a), atleast_3d(a)}),
    NUMPY("f32[5]", "np.atleast_1d(a), np.atleast_2d(a), np.atleast_3d(a)", std::vector<Array>{atleast_1d(a), atleast_2d(a), atleast_3d(a)}),
    NUMPY("f32[5, 2], i8[3]", "np.atleast_3d(a, b)", atleast_3d({a, b})),
    NUMPY("f32[5, 2], i8[3]", "np.atleast_2d(a, b)", atleast_2d({a, b})),
    NUMPY("f32[5, 1], i8[3]", "np.broadcast_arrays(a, b)", broadcast_arrays({a, b})),
    NUMPY("f32[5, 1]", "np.broadcast_to(a, (2, 5, 3))", broadcast_to(a, {2, 5, 3})),
    NUMPY("f32[5], i8[3], u8[2]", "np.meshgrid(a, b, c)", meshgrid({a, b, c})),
    NUMPY("f32[5], i8[3]", "np.meshgrid(a, b, sparse=True)", meshgrid({a, b}, true)),
    NUMPY("f32[5], i8[3], u8[2]", "np.meshgrid(a, b, c, indexing='ij')", meshgrid({a, b, c}, false, "ij")),
    NUMPY("f32[5]", "np.meshgrid(a)", meshgrid({a})),
    NUMPY("f32[9, 8]", "a[1:-1:2, ::-3]", slice(a, {1, 7}, {-1, -9}, {2, -3})),
    NUMPY("f32[6, 4]", "np.split(a, 3)", split(a, 3)),
    NUMPY("f32[6, 4]", "np.split(a, [1, 3], 1)", split(a, std::vector<std::int64_t>{1, 3}, 1)),
    NUMPY("f32[3, 4]", "list(a.T)", unstack(a, -1)),
    NUMPY("f32[4, 5]", "np.diagonal(a)", diagonal(a)),
    NUMPY("f32[4, 5, 6]", "np.diagonal(a, -1, 2, 0)", diagonal(a, -1, 2, 0)),
    NUMPY("f32[4, 5, 6]", "np.diagonal(a, 9, 0, 2)", diagonal(a, 9, 0, 2)),
    NUMPY("f32[4, 5]", "np.diagonal(a.T, 2)", diagonal(transpose(a), 2)),
    NUMPY("i16[4]", "np.diag(a)", diag(a)),
    NUMPY("f32[4]", "np.diag(a, 2)", diag(a, 2)),
    NUMPY("complex64[4]", "np.diag(a, -1)", diag(a, -1)),
    NUMPY("f32[4, 5]", "np.diag(a, 1)", diag(a, 1)),
    NUMPY("f32[4, 5]", "np.trace(a)", trace(a)),
    NUMPY("i8[4, 5, 3]", "np.trace(a, 1, 1, 2)", trace(a, 1, 1, 2)),
    NUMPY("i8[4, 5]", "np.trace(a, -1, 0, 1, float)", trace(a, -1, 0, 1, DType::f32)),
    NUMPY("f32[2, 3], i8[2, 1]", "np.concatenate([a, b], 1)", concatenate({a, b}, 1)),
    NUMPY("f32[2, 3], i8[2, 3]", "np.stack([a, b], -1)", stack({a, b}, -1)),
    NUMPY("f32[2, 3]", "np.repeat(a, 3)", repeat(a, 3)),
    NUMPY("f32[2, 3]", "np.repeat(a, 3, 1)", repeat(a, 3, 1)),
    NUMPY("f32[2, 3]", "np.tile(a, 2)", tile(a, {2})),
    NUMPY("i8[2, 3]", "np.tile(a, (2, 1, 3))", tile(a, {2, 1, 3})),
    NUMPY("f32[2, 3]", "np.tile(a, (0, 2))", tile(a, {0, 2})),
    NUMPY("f32[3, 4]", "np.roll(a, 5)", roll(a, 5)),
    NUMPY("f32[3, 4]", "np.roll(a, -1, 0)", roll(a, -1, 0)),
    NUMPY("f32[3, 4]", "np.roll(a, (1, -6), (0, 1))", roll(a, {1, -6}, {0, 1})),
    NUMPY("f32[3, 4]", "np.roll(a, 2, (0, 1))", roll(a, 2, {0, 1})),
    NUMPY("f32[3, 4]", "np.roll(a, 3, 1)", roll(a, {1, 2}, 1)),
    NUMPY("f32[0, 4]", "np.roll(a, 3, 0)", roll(a, 3, 0)),
    NUMPY("f32[3, 4]", "np.pad(a, ((0, 1), (2, 0)), constant_values=5)", pad(a, {{0, 1}, {2, 0}}, 5)),
    NUMPY("f32[3, 4]", "np.pad(a, 2, mode='edge')", pad(a, 2, 0, "edge")),
    NUMPY("f32[3, 4]", "np.flip(a), np.flip(a, 1)", std::vector<Array>{flip(a), flip(a, 1)}),
    NUMPY("f32[3, 4]", "a.astype(np.int8)", astype(a, DType::i8)),
    NUMPY("i32[3, 4]", "a.view(np.uint16)", view(a, DType::u16)),
};

const std::vector<NumpyCase> kReductions = {
    NUMPY("f32[3, 4, 5]", "np.sum(a)", sum(a)),
    NUMPY("i8[3, 400] in -128..127", "np.sum(a, 1, keepdims=True)", sum(a, 1, true)),
    NUMPY("complex64[3, 4, 5]", "np.sum(a, (0, 2))", sum(a, {0, 2})),
    NUMPY("f16[300]", "np.sum(a)", sum(a)).loose(2),
    NUMPY("f64[3, 4, 5]", "np.prod(a, -1)", prod(a, -1)),
    NUMPY("complex64[3, 4]", "np.prod(a, -1)", prod(a, -1)).loose(30),
    NUMPY("bool[3, 4]", "np.sum(a, 0)", sum(a, 0)),
    NUMPY("f32[3, 4, 5]", "np.mean(a, (0, 1))", mean(a, {0, 1})),
    NUMPY("i16[3, 4]", "np.mean(a, 0)", mean(a, 0)),
    NUMPY("complex64[3, 4]", "np.mean(a)", mean(a)),
    NUMPY("f32[3, 4, 5]", "np.max(a, 1)", max(a, 1)),
    NUMPY("u8[3, 4, 5]", "np.min(a)", min(a)),
    NUMPY("i32[3, 40] in -20..1", "np.all(a, 0)", all(a, 0)),
    NUMPY("f32[3, 0]", "np.all(a, 1), np.any(a, 1)", std::vector<Array>{all(a, 1), any(a, 1)}),
    NUMPY("bool[5, 3]", "np.all(a, 1, keepdims=True)", all(a, 1, true)),
    NUMPY("i8[5, 3] in 0..1", "np.any(a, 1)", any(a, 1)),
    NUMPY("f16[50]", "np.any(a), np.all(a)", std::vector<Array>{any(a), all(a)}),
    NUMPY("complex64[5, 3]", "np.any(a)", any(a)),
    NUMPY("f32[3, 4, 5]", "np.var(a)", var(a)),
    NUMPY("f32[3, 4, 5] in 1000..1001", "np.var(a, (0, 2), ddof=1, keepdims=True)", var(a, {0, 2}, true, 1)).loose(100),
    NUMPY("i32[30]", "np.var(a)", var(a)),
    NUMPY("complex64[30]", "np.var(a)", var(a)),
    NUMPY("bf16[3, 40]", "np.var(a, -1)", var(a, -1)),
    NUMPY("f32[3, 40]", "np.std(a, -1)", std(a, -1)),
    NUMPY("f64[3, 40]", "np.std(a, ddof=1)", std(a, false, 1)),
    NUMPY("f32[1]", "np.std(a, ddof=1)", std(a, false, 1)),
    NUMPY("f32[3, 7]", "np.median(a, 1)", median(a, 1)),
    NUMPY("f32[3, 8]", "np.median(a, 1, keepdims=True)", median(a, 1, true)),
    NUMPY("f32[3, 4, 5]", "np.median(a)", median(a)),
    NUMPY("f32[3, 4, 5]", "np.median(a, (0, 2))", median(a, {0, 2})),
    NUMPY("f32[3, 40] in -1..20", "np.median(np.log(a), 1)", median(log(a), 1)),
    NUMPY("i32[10]", "np.median(a)", median(a)),
    NUMPY("f32[3, 40] in -200..200", "np.logaddexp.reduce(a, -1)", logsumexp(a, -1)),
    NUMPY("f32[3, 4, 5]", "np.log(np.sum(np.exp(a), (0, 2), keepdims=True))", logsumexp(a, {0, 2}, true)),
    NUMPY("f16[9]", "np.log(np.sum(np.exp(a)))", logsumexp(a)),
    NUMPY("f32[3]", "np.log(np.sum(np.exp(a / 0)))", logsumexp(a / 0)),
    NUMPY("f32[0]", "-np.inf", logsumexp(a)),
    NUMPY("i32[3, 4] in 0..2", "np.count_nonzero(a)", count_nonzero(a)),
    NUMPY("complex64[3, 4]", "np.count_nonzero(a, 1)", count_nonzero(a, 1)),
    NUMPY("bool[3, 4]", "np.count_nonzero(a, 0, keepdims=True)", count_nonzero(a, Dims{0}, true)),
    NUMPY("f32[3, 6]", "np.diff(a)", diff(a)),
    NUMPY("i32[6, 3]", "np.diff(a, 2, 0)", diff(a, 2, 0)),
    NUMPY("bool[9]", "np.diff(a)", diff(a)),
    NUMPY("f32[3]", "np.diff(a, 5)", diff(a, 5)),
    NUMPY("f32[3], f32[2]", "np.diff(a, prepend=1, append=b)", diff(a, 1, -1, Array(1.0f), b)),
    NUMPY("f32[3, 6]", "np.exp(a) / np.sum(np.exp(a), -1, keepdims=True)", softmax(a, -1)),
    NUMPY("f32[3, 6]", "np.exp(a) / np.sum(np.exp(a), 0, keepdims=True)", softmax(a, 0, true)),
    NUMPY("f32[3, 6]", "np.exp(a) / np.sum(np.exp(a))", softmax(a)),
    NUMPY("f16[2, 3, 4, 5]", "np.exp(a) / np.sum(np.exp(a), (0, 2), keepdims=True)", softmax(a, {0, 2})),
    NUMPY("f64[3, 6]", "np.exp(a) / np.sum(np.exp(a), 1, keepdims=True)", softmax(a, 1)),
};

const std::vector<NumpyCase> kScans = {
    NUMPY("f32[3, 4]", "np.cumsum(a)", cumsum(a)),
    NUMPY("f32[3, 4000]", "np.cumsum(a, 1)", cumsum(a, 1)).loose(10),
    NUMPY("i32[9, 3]", "np.cumsum(a[::-1], 0)[::-1]", cumsum(a, 0, true)),
    NUMPY("i64[9]", "np.cumsum(a) - a", cumsum(a, 0, false, false)),
    NUMPY("complex64[9]", "np.cumsum(a)", cumsum(a)),
    NUMPY("f64[9]", "np.cumprod(a)", cumprod(a)),
    NUMPY("f32[9, 30]", "np.maximum.accumulate(a, 1)", cummax(a, 1)),
    NUMPY("i8[9, 30]", "np.minimum.accumulate(a, 0)", cummin(a, 0)),
    NUMPY("f32[9, 300] in -90..90", "np.logaddexp.accumulate(a, 1)", logcumsumexp(a, 1)),
    NUMPY("f64[300, 2] in -90..90", "np.logaddexp.accumulate(a, 0)", logcumsumexp(a, 0)),
};
// clang-format on

TEST(NumpyOracle, Creation) {
  expect_numpy_agrees(kCreation);
}

TEST(NumpyOracle, Shape) {
  expect_numpy_agrees(kShape);
}

TEST(NumpyOracle, Reductions) {
  expect_numpy_agrees(kReductions);
}

TEST(NumpyOracle, Scans) {
  expect_numpy_agrees(kScans);
}

}  // namespace
}  // namespace heddle::test
