// Products of chosen matrices, quantised groups and what attention is made of, against NumPy.
#include <gtest/gtest.h>

#include "numpy_oracle.h"

namespace heddle::test {
namespace {

// clang-format off
const std::vector<NumpyCase> kChosen = {
    NUMPY("f32[3, 2, 4], f32[5, 4, 6], u32[7] in 0..2, u8[7] in 0..4", "a[c] @ b[d]", gather_mm(a, b, c, d)),
    NUMPY("f64[3, 40, 4], f64[5, 4, 6], i32[2, 3] in 0..2, u32[3] in 0..4", "a[c] @ b[d]", gather_mm(a, b, c, d)),
    NUMPY("f16[2, 3, 4], f16[5, 4, 6], i64[2] in 0..4", "a @ b[c]", gather_mm(a, b, std::nullopt, c)),
    NUMPY("bf16[4], f32[5, 4, 6], u32[3] in 0..4", "a @ b[c]", gather_mm(a, b, Array(0u), c)),
    NUMPY("f32[3, 9], f32[9, 5]", "np.stack([a[:, i:j] @ b[i:j] for i, j in [(0, 4), (4, 9), (2, 2)]])",
          segmented_mm(a, b, Array(std::vector<int>{0, 4, 4, 9, 2, 2}, {3, 2}))),
    NUMPY("f32[70, 40], f32[40, 33], f32[3, 2], bool[2, 2]",
          "(a * np.kron(c, np.ones((32, 32)))[:70, :40]) @ np.where(np.kron(d, np.ones((32, 32)))[:40, :33], b, 0)",
          block_masked_mm(a, b, 32, std::nullopt, c, d)).loose(8),
    NUMPY("f32[70, 40], f32[40, 33], bool[3, 2]",
          "np.where(np.kron(c, np.ones((32, 32)))[:70, :33], a @ b, 0)",
          block_masked_mm(a, b, 32, c)).loose(8),
};

// The bits of each word, from the lowest on, are the codes of a row one after another.
const std::vector<NumpyCase> kGroups = {
    NUMPY("u32[5, 6] in 0..4294967295, f32[5, 2], f32[5, 2]",
          "(lambda bits: (bits.reshape(5, 2, 32, 3) @ [1, 2, 4]) * b[..., None] + c[..., None])"
          "(a[..., None] >> np.arange(32, dtype=np.uint32) & 1).reshape(5, 64)",
          dequantize(a, b, c, 32, 3)).loose(8),
    NUMPY("u32[5, 8] in 0..4294967295, f32[5, 1], f32[5, 1], f32[3, 64]",
          "d @ ((a[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).reshape(5, 64) * b + c).T",
          quantized_matmul(d, a, b, c)).loose(200),
    NUMPY("u32[5, 16] in 0..4294967295, f16[5, 1], f16[5, 1], f32[3, 5]",
          "d @ ((a[..., None] >> np.arange(0, 32, 8, dtype=np.uint32) & 255).reshape(5, 64) * b + c)",
          quantized_matmul(d, a, b, c, false, 64, 8)).loose(1000),
    NUMPY("u8[256] in 0..127",
          "np.where(a >> 3 == 0, (a & 7) / 512, (8 + (a & 7)) * 2.0 ** ((a >> 3) - 10.0))",
          from_fp8(a, DType::f32)),
};

const std::vector<NumpyCase> kAttention = {
    NUMPY("f32[2, 3, 5]",
          "(lambda e: e / e.sum(-1, keepdims=True))(np.exp(a) * np.tri(3, 5, 2))", causal_softmax(a)),
    NUMPY("f64[4, 2]",
          "(lambda e: np.divide(e, e.sum(-1, keepdims=True), out=np.zeros_like(e), where=e > 0))"
          "(np.exp(a) * np.tri(4, 2, -2))", causal_softmax(a)),
    NUMPY("f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 8], f32[4]",
          "(lambda e: (e / (e.sum(-1, keepdims=True) + np.exp(d)[:, None, None])) @ np.repeat(c, 2, 1))"
          "(np.exp(a @ np.repeat(b, 2, 1).swapaxes(-1, -2) / 8 ** .5) * np.tri(3, 5, 2))",
          fast::scaled_dot_product_attention(a, b, c, std::nullopt, "causal", std::nullopt, d)).loose(4),
    NUMPY("f32[2, 3, 4, 6], i32[2] in 0..50",
          "(lambda t: np.concatenate([a[..., :2] * np.cos(t) - a[..., 2:4] * np.sin(t),"
          " a[..., 2:4] * np.cos(t) + a[..., :2] * np.sin(t), a[..., 4:]], -1))"
          "((b[:, None, None, None] + np.arange(4)[:, None]) * 100.0 ** -np.array([0, .5]))",
          fast::rope(a, 4, false, 100.0f, 1.0f, b)).loose(8),
    NUMPY("f32[3, 2, 6], f32[6], i32[3] in 0..50",
          "(lambda x, t: np.stack([x[..., ::2] * np.cos(t) - x[..., 1::2] * np.sin(t),"
          " x[..., 1::2] * np.cos(t) + x[..., ::2] * np.sin(t)], -1).reshape(3, 2, 6))"
          "(a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-3) * b,"
          " c[:, None, None] * 100.0 ** -(np.arange(3) / 3))",
          norm_rope(a, b, 1e-3f, c, {RopeStyle::interleaved, 6, 100.0f})).loose(8),
};
// clang-format on

TEST(NumpyQuantized, ChosenMatrices) {
  expect_numpy_agrees(kChosen);
}
TEST(NumpyQuantized, Groups) {
  expect_numpy_agrees(kGroups);
}
TEST(NumpyQuantized, Attention) {
  expect_numpy_agrees(kAttention);
}

}  // namespace
}  // namespace heddle::test
