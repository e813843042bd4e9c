// Losses and their gradients against NumPy and PyTorch.
#include "heddle/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "array/numpy_oracle.h"
#include "heddle/compile.h"
#include "heddle/random.h"

namespace heddle::test {
namespace {

using namespace nn::losses;

constexpr auto kNone = Reduction::none;
constexpr auto kMean = Reduction::mean;
constexpr auto kSum = Reduction::sum;

template <class Loss>
Array gradient(const Loss& loss, const Array& at) {
  return grad(ArrayFunction(loss))(at);
}

TEST(Losses, AgreeWithNumpy) {
  // clang-format off
  expect_numpy_agrees({
      NUMPY("f32[6, 5], i32[6] in 0..4", "np.log(np.exp(a).sum(-1)) - a[np.arange(6), b]", cross_entropy(a, b)),
      NUMPY("f32[6, 5], u8[6] in 0..4, f32[6]", "((np.log(np.exp(a).sum(-1)) - a[np.arange(6), b]) * c).sum()",
            cross_entropy(a, b, c, -1, 0, kSum)),
      NUMPY("f32[5, 6], i64[6] in 0..4", "(np.log(np.exp(a).sum(0)) - a[b, np.arange(6)]).mean()",
            cross_entropy(a, b, std::nullopt, 0, 0, kMean)),
      NUMPY("f64[2, 3, 5], i32[2, 3] in 0..4",
            "np.log(np.exp(a).sum(-1)) - 0.75 * np.take_along_axis(a, b[..., None], -1)[..., 0] - 0.25 * a.mean(-1)",
            cross_entropy(a, b, std::nullopt, -1, 0.25f)),
      NUMPY("f32[6, 5], f32[6, 5] in 0..1", "np.log(np.exp(a).sum(-1)) - (a * b / b.sum(-1, keepdims=True)).sum(-1)",
            cross_entropy(a, b / sum(b, -1, true))),
      NUMPY("bf16[4, 5], i32[4] in 0..4", "np.log(np.exp(a).sum(-1)) - a[np.arange(4), b]", cross_entropy(a, b)).loose(2),
      NUMPY("f32[5], i32[] in 0..4", "np.log(np.exp(a).sum()) - a[b]", cross_entropy(a, b)),
      NUMPY("f32[7], f32[7] in 0..1", "np.log(1 + np.exp(a)) - a * b", binary_cross_entropy(a, b, std::nullopt, true, kNone)),
      NUMPY("f32[7] in 100..1000, bool[7]", "(a - a * b).mean()", binary_cross_entropy(a, b)),
      NUMPY("f32[7] in 0.01..0.99, f32[7] in 0..1, f32[7]", "(-(b * np.log(a) + (1 - b) * np.log(1 - a)) * c).sum()",
            binary_cross_entropy(a, b, c, false, kSum)),
      NUMPY("bool[8]", "np.full(8, 100.0)", binary_cross_entropy(astype(logical_not(a), DType::f32), a, std::nullopt, false, kNone)),
      NUMPY("f32[3, 4], f32[3, 4]", "np.abs(a - b).mean()", l1_loss(a, b)),
      NUMPY("f32[3, 4], f32[3, 4]", "((a - b) ** 2).mean()", mse_loss(a, b)),
      NUMPY("f32[3, 4], i32[3, 4]", "(a - b) ** 2", mse_loss(a, b, kNone)),
      NUMPY("f32[30], f32[30]", "[d := np.abs(a - b), np.where(d < 2, d * d / 4, d - 1).sum()][-1]", smooth_l1_loss(a, b, 2, kSum)),
      NUMPY("f32[30], f32[30]", "[d := np.abs(a - b), np.where(d < 2, d * d / 2, 2 * (d - 1))][-1]", huber_loss(a, b, 2)),
      NUMPY("f32[30], f32[30]", "np.log(np.cosh(a - b))", log_cosh_loss(a, b)),
      NUMPY("f32[4] in 500..1000, f32[4] in -9..9", "np.abs(a - b) - math.log(2)", log_cosh_loss(a, b)),
      NUMPY("f32[4, 3], i32[4] in 0..2", "-a[np.arange(4), b]", nll_loss(a, b)),
      NUMPY("f32[3, 4], i32[4] in 0..2", "-a[b, np.arange(4)].mean()", nll_loss(a, b, 0, kMean)),
      NUMPY("f32[9], f32[9], f32[9] in 0.1..2", "((np.log(c) + (a - b) ** 2 / c) / 2).mean()", gaussian_nll_loss(a, b, c)),
      NUMPY("f32[9], f32[9], f32[9] in 0..0.1", "(np.log(0.1) + (a - b) ** 2 / 0.1 + np.log(2 * np.pi)) / 2",
            gaussian_nll_loss(a, b, c, true, 0.1f, kNone)).loose(4),
      NUMPY("f32[4, 3], f32[4, 3]", "(np.exp(b) * (b - a)).sum(-1)", kl_div_loss(a, b)),
      NUMPY("f32[4, 3], f32[4, 3]", "(np.exp(b) * (b - a)).sum(0).sum()", kl_div_loss(a, b, 0, kSum)),
      NUMPY("f32[9], bool[9]", "np.maximum(0, 1 - a * np.where(b, 1, -1))", hinge_loss(a, where(b, 1, -1))),
      NUMPY("f32[9], f32[9], bool[9]", "np.maximum(0, 0.5 - np.where(c, 1, -1) * (a - b)).mean()",
            margin_ranking_loss(a, b, where(c, 1, -1), 0.5f, kMean)),
      NUMPY("f32[4, 3], f32[4, 3], f32[4, 3]",
            "[n := lambda x: np.sqrt((x ** 2).sum(-1) + 1e-6), np.maximum(0, n(a - b) - n(a - c) + 1)][-1]",
            triplet_loss(a, b, c)),
      NUMPY("f32[4, 3], f32[4, 3], f32[4, 3]",
            "[n := lambda x: ((np.abs(x) ** 3).sum(0) + 1e-6) ** (1 / 3), np.maximum(0, n(a - b) - n(a - c) + 2).sum()][-1]",
            triplet_loss(a, b, c, 0, 3, 2, 1e-6f, kSum)).loose(4),
      NUMPY("f32[4, 3], f32[4, 3]", "(a * b).sum(1) / np.sqrt((a ** 2).sum(1) * (b ** 2).sum(1))", cosine_similarity_loss(a, b)),
      NUMPY("f32[4, 3], f32[4, 3]", "np.zeros(3)", cosine_similarity_loss(a, b * 0, 0)),
  });
  // clang-format on
}

TEST(Losses, AgreeWithPyTorchInGradientsToo) {
  const std::string begin = "[F := torch.nn.functional, t := T(a).requires_grad_(), y := ";
  const std::string end = ", y.backward(), (y.detach(), t.grad)][-1]";
#define LOSS(OPERANDS, TORCH, ...)                                                         \
  NUMPY(OPERANDS, begin + TORCH + end, [&]() -> std::vector<Array> {                       \
    const auto of = [&]([[maybe_unused]] const Array& t) -> Array { return __VA_ARGS__; }; \
    return {of(a), gradient(of, a)};                                                       \
  }())
  // clang-format off
  expect_torch_agrees({
      LOSS("f32[6, 5], i32[6] in 0..4", "F.cross_entropy(t, T(b.astype(np.int64)))", cross_entropy(t, b, std::nullopt, -1, 0, kMean)),
      LOSS("f32[6, 5], i32[6] in 0..4", "F.cross_entropy(t, T(b.astype(np.int64)), label_smoothing=0.3)",
           cross_entropy(t, b, std::nullopt, -1, 0.3f, kMean)),
      LOSS("f32[6, 5, 2], i32[6, 2] in 0..4", "F.cross_entropy(t, T(b.astype(np.int64)), reduction='sum')",
           cross_entropy(t, b, std::nullopt, 1, 0, kSum)),
      LOSS("f32[6, 5], f32[6, 5] in 0..1", "F.cross_entropy(t, T(b / b.sum(-1, keepdims=True)), label_smoothing=0.1)",
           cross_entropy(t, b / sum(b, -1, true), std::nullopt, -1, 0.1f, kMean)),
      LOSS("f32[9], f32[9] in 0..1", "F.binary_cross_entropy_with_logits(t, T(b))", binary_cross_entropy(t, b)),
      LOSS("f32[9] in 0.1..0.9, f32[9] in 0..1", "F.binary_cross_entropy(t, T(b))", binary_cross_entropy(t, b, std::nullopt, false)),
      LOSS("f32[9], f32[9]", "F.l1_loss(t, T(b))", l1_loss(t, b)),
      LOSS("f32[9], f32[9]", "F.mse_loss(t, T(b))", mse_loss(t, b)),
      LOSS("f32[30], f32[30]", "F.smooth_l1_loss(t, T(b), beta=0.7)", smooth_l1_loss(t, b, 0.7f)),
      LOSS("f32[30], f32[30]", "F.huber_loss(t, T(b), delta=0.7)", huber_loss(t, b, 0.7f, kMean)),
      LOSS("f32[9, 4], i32[9] in 0..3", "F.nll_loss(t, T(b.astype(np.int64)))", nll_loss(t, b, -1, kMean)),
      LOSS("f32[9], f32[9], f32[9] in 0.1..2", "F.gaussian_nll_loss(t, T(b), T(c), full=True)", gaussian_nll_loss(t, b, c, true)),
      LOSS("f32[4, 3], f32[4, 3]", "F.kl_div(t, T(b), log_target=True, reduction='sum')", kl_div_loss(t, b, -1, kSum)),
      LOSS("f32[9], f32[9], bool[9]", "F.margin_ranking_loss(t, T(b), T(np.where(c, 1, -1)), margin=0.5)",
           margin_ranking_loss(t, b, where(c, 1, -1), 0.5f, kMean)),
      LOSS("f32[4, 3], f32[4, 3]", "F.cosine_similarity(t, T(b)).sum()", cosine_similarity_loss(t, b, 1, 1e-8f, kSum)),
  });
  // clang-format on
#undef LOSS
}

TEST(Losses, StayFiniteForLargeLogits) {
  const Array logits({1000.0f, -1000.0f, 0.0f});
  EXPECT_EQ(cross_entropy(logits, Array(1)).item<float>(), 2000.0f);
  const Array slopes = gradient([](const Array& t) { return cross_entropy(t, Array(1)); }, logits);
  EXPECT_EQ(slopes.to_vector<float>(), (std::vector<float>{1, -1, 0}));
}

TEST(Losses, GiveTheSameCompiledAndMapped) {
  const Array logits = random::normal({4, 6, 5}, random::key(1));
  const Array targets = random::randint(0, 5, {4, 6}, DType::i32, random::key(2));
  const ArraysFunction loss = [](const std::vector<Array>& in) {
    return std::vector<Array>{cross_entropy(in[0], in[1], std::nullopt, -1, 0.1f, kMean)};
  };
  const Array expected = mean(cross_entropy(logits, targets, std::nullopt, -1, 0.1f), 1);
  EXPECT_LT(max(abs(vmap(loss)({logits, targets})[0] - expected)).item<float>(), 1e-6f);
  EXPECT_LT(max(abs(compile(vmap(loss))({logits, targets})[0] - expected)).item<float>(), 1e-6f);
}

TEST(Losses, RefuseIndicesOutsideWhenEvaluated) {
  EXPECT_THROW(cross_entropy(zeros({2, 3}), Array({0, 3})).eval(), Error);
  EXPECT_THROW(nll_loss(zeros({2, 3}), Array({0, -4})).eval(), Error);
}

}  // namespace
}  // namespace heddle::test
