// Modules against NumPy and PyTorch, and what they are made with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "array/numpy_oracle.h"
#include "heddle/compile.h"
#include "heddle/nn.h"

namespace heddle::test {
namespace {

template <class Module>
Module with(Module module, const Array& weight, const Array& bias) {
  module.weight = weight;
  module.bias = bias;
  return module;
}

nn::RMSNorm rms_norm_with(const Array& weight) {
  nn::RMSNorm norm(static_cast<int>(weight.size()), 1e-3f);
  norm.weight = weight;
  return norm;
}

/// Two query heads of four features that share one of keys and values.
nn::MultiHeadAttention attention_with(const Array& wide, const Array& narrow, const Array& biases,
                                      bool turns) {
  nn::AttentionOptions options{.kv_heads = 1, .head_dims = 4};
  if (turns) options.rope_base = 100.0f;
  nn::MultiHeadAttention attention(8, 2, random::key(0), options);
  attention.q_proj = nn::Linear(take(wide, 0, 0), slice(biases, {0}, {8}));
  attention.k_proj = nn::Linear(take(narrow, 0, 0), slice(biases, {8}, {12}));
  attention.v_proj = nn::Linear(take(narrow, 1, 0), slice(biases, {12}, {16}));
  attention.o_proj = nn::Linear(take(wide, 1, 0));
  return attention;
}

/// The same in NumPy, of x [2, 5, 8]; `mask` is added to scores.
std::string attention_in_numpy(bool turns, const std::string& mask) {
  const std::string turned = turns ? "turn(" : "(";
  return "[angle := np.arange(5)[:, None] * 100.0 ** (-np.arange(2) / 2),"
         " cos := np.cos(angle), sin := np.sin(angle),"
         " turn := lambda x: np.concatenate([x[..., :2] * cos - x[..., 2:] * sin,"
         "                                   x[..., :2] * sin + x[..., 2:] * cos], -1),"
         " heads := lambda x, h: x.reshape(2, 5, h, 4).transpose(0, 2, 1, 3),"
         " q := " +
         turned +
         "heads(a @ b[0].T + d[:8], 2)),"
         " k := " +
         turned +
         "heads(a @ c[0].T + d[8:12], 1)),"
         " v := heads(a @ c[1].T + d[12:], 1),"
         " s := np.exp(q @ k.swapaxes(2, 3) / 2 + " +
         mask +
         "),"
         " (s / s.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 8) @ b[1].T][-1]";
}
const std::string kAttentionOperands =
    "f32[2, 5, 8], f32[2, 8, 8] in -1..1, f32[2, 4, 8] in -1..1, f32[16]";
const std::string kCausal = "np.triu(np.full((5, 5), -np.inf), 1)";

nn::MLP mlp_with(const Array& up, const Array& down, UnaryKind activation) {
  nn::MLP mlp(5, 7, random::key(0), activation, false);
  mlp.up_proj = nn::Linear(up);
  mlp.down_proj = nn::Linear(down);
  return mlp;
}

nn::GatedMLP gated_mlp_with(const Array& gate_and_up, const Array& down) {
  nn::GatedMLP mlp(5, 7, random::key(0));
  mlp.gate_proj = nn::Linear(take(gate_and_up, 0, 0));
  mlp.up_proj = nn::Linear(take(gate_and_up, 1, 0));
  mlp.down_proj = nn::Linear(down);
  return mlp;
}

const Array kKey = random::key(1);

TEST(Modules, AgreeWithNumpy) {
  // clang-format off
  expect_numpy_agrees({
      NUMPY("f32[2, 5], f32[3, 5], f32[3]", "a @ b.T + c", nn::Linear(b, c)(a)),
      NUMPY("f32[2, 4, 5], f32[3, 5]", "a @ b.T", nn::Linear(b)(a)),
      NUMPY("f32[5], f32[3, 5], f32[3]", "a @ b.T + c", nn::Linear(b, c)(a)),
      NUMPY("f64[2, 5], f64[3, 5], f64[3]", "a @ b.T + c", nn::Linear(b, c)(a)),
      NUMPY("f16[2, 5] in -1..1, f16[3, 5] in -1..1", "a @ b.T", nn::Linear(b)(a)).loose(2),
      NUMPY("bf16[2, 5], f32[3, 5], f32[3]", "a @ b.T + c", nn::Linear(b, c)(a)),
      NUMPY("f32[0, 5], f32[3, 5], f32[3]", "a @ b.T + c", nn::Linear(b, c)(a)),
      NUMPY("i32[2, 3] in 0..6, f32[7, 4]", "b[a]", nn::Embedding(b)(a)),
      NUMPY("u32[] in 0..6, f16[7, 4]", "b[a]", nn::Embedding(b)(a)),
      NUMPY("f32[2, 3, 4], f32[7, 4]", "a @ b.T", nn::Embedding(b).as_linear(a)),
      NUMPY("f32[3, 6], f32[6]", "a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-3) * b", rms_norm_with(b)(a)),
      NUMPY("f32[3, 6], f32[6], f32[6]",
            "(a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * b + c",
            with(nn::LayerNorm(6), b, c)(a)),
      NUMPY("f32[3, 6]", "(a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 0.5)",
            nn::LayerNorm(6, 0.5f, false)(a)),
      NUMPY("f32[2, 3, 4, 6], f32[6], f32[6]",
            "[g := a.reshape(2, 12, 3, 2), (((g - g.mean((1, 3), keepdims=True)) / "
            "np.sqrt(g.var((1, 3), keepdims=True) + 1e-5)).reshape(a.shape)) * b + c][-1]",
            with(nn::GroupNorm(3, 6), b, c)(a)).loose(4),
      NUMPY("f32[2, 7, 6]", "(a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)",
            nn::InstanceNorm(6)(a)).loose(4),
      NUMPY(kAttentionOperands, attention_in_numpy(false, "0"), attention_with(b, c, d, false)(a)).loose(20),
      NUMPY(kAttentionOperands, attention_in_numpy(true, "0"), attention_with(b, c, d, true)(a)).loose(20),
      NUMPY(kAttentionOperands, attention_in_numpy(true, kCausal), attention_with(b, c, d, true)(a, "causal")).loose(20),
      NUMPY(kAttentionOperands, attention_in_numpy(true, kCausal),
            attention_with(b, c, d, true)(a, "array", tri(5, DType::bool_))).loose(20),
      NUMPY(kAttentionOperands, "(" + attention_in_numpy(true, kCausal) + ")[1]",
            attention_with(b, c, d, true)(take(a, 1, 0), "causal")).loose(20),
      NUMPY("f32[3, 5], f32[7, 5] in -1..1, f32[5, 7] in -1..1",
            "[x := a @ b.T, (x * (1 + erf(x / math.sqrt(2))) / 2) @ c.T][-1]",
            mlp_with(b, c, UnaryKind::gelu)(a)).loose(10),
      NUMPY("f32[3, 5], f32[7, 5] in -1..1, f32[5, 7] in -1..1", "np.maximum(a @ b.T, 0) @ c.T",
            mlp_with(b, c, UnaryKind::relu)(a)).loose(10),
      NUMPY("f32[3, 5], f32[2, 7, 5] in -1..1, f32[5, 7] in -1..1",
            "[g := a @ b[0].T, (g / (1 + np.exp(-g)) * (a @ b[1].T)) @ c.T][-1]", gated_mlp_with(b, c)(a)).loose(20),
  });
  // clang-format on
}

TEST(Modules, AgreeWithPyTorch) {
  // clang-format off
  expect_torch_agrees({
      NUMPY("f32[2, 9, 4], f32[6, 3, 2] in -1..1, f32[6]",
            "torch.nn.functional.conv1d(T(a).mT, T(b).mT, T(c), stride=2, padding=1, dilation=2, groups=2).mT",
            with(nn::Conv1d(4, 6, 3, kKey, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}), b, c)(a)).loose(10),
      NUMPY("f32[2, 7, 8, 3], f32[5, 3, 2, 3] in -1..1, f32[5]",
            "torch.nn.functional.conv2d(T(a).permute(0, 3, 1, 2), T(b).permute(0, 3, 1, 2), T(c), "
            "stride=(2, 1), padding=(0, 1)).permute(0, 2, 3, 1)",
            with(nn::Conv2d(3, 5, {3, 2}, kKey, {.stride = {2, 1}, .padding = {0, 1}}), b, c)(a)).loose(10),
      NUMPY("f32[2, 5, 6], f32[6], f32[6]",
            "torch.nn.functional.group_norm(T(a).mT, 2, T(b), T(c)).mT",
            with(nn::GroupNorm(2, 6), b, c)(a)).loose(4),
      NUMPY("f32[2, 5, 6], f32[6], f32[6]",
            "torch.nn.functional.instance_norm(T(a).mT, weight=T(b), bias=T(c)).mT",
            with(nn::InstanceNorm(6, 1e-5f, true), b, c)(a)).loose(4),
      NUMPY("f32[2, 5, 6], f32[6], f32[6]",
            "torch.nn.functional.layer_norm(T(a), (6,), T(b), T(c))", with(nn::LayerNorm(6), b, c)(a)),
  });
  // clang-format on
}

// ---- How they begin

double largest(const Array& a) {
  return max(abs(astype(a, DType::f32))).item<float>();
}

void expect_uniform_within(const Array& a, double bound) {
  EXPECT_LE(largest(a), bound);
  EXPECT_GT(largest(a), 0.95 * bound);
  EXPECT_NEAR(std(astype(a, DType::f32)).item<float>(), bound / std::sqrt(3.0), 0.05 * bound);
}

TEST(Modules, BeginAsMlxAndPyTorchBegin) {
  const nn::Linear linear(100, 400, kKey);
  expect_uniform_within(linear.weight, 0.1);
  expect_uniform_within(*linear.bias, 0.1);
  expect_uniform_within(nn::Conv1d(4, 60, 25, kKey).weight, 0.1);
  expect_uniform_within(nn::Conv2d(32, 64, {5, 5}, kKey, {.groups = 8}).weight, 0.1);
  const nn::Embedding embedding(500, 64, kKey);
  EXPECT_NEAR(std(embedding.weight).item<float>(), 0.125, 0.005);
  EXPECT_NEAR(mean(embedding.weight).item<float>(), 0, 0.005);
  EXPECT_EQ(largest(*nn::Conv1d(4, 6, 3, kKey).bias), 0);
  EXPECT_EQ(largest(nn::RMSNorm(4).weight - 1), 0);
}

bool same(const Array& a, const Array& b) {
  return array_equal(a, b).item<bool>();
}

TEST(Modules, AKeyGivesTheSameNumbersAndItsPartsOthers) {
  EXPECT_TRUE(same(nn::Linear(8, 8, kKey).weight, nn::Linear(8, 8, kKey).weight));
  EXPECT_FALSE(same(nn::Linear(8, 8, kKey).weight, nn::Linear(8, 8, random::key(2)).weight));
  const nn::MultiHeadAttention attention(8, 2, kKey);
  const auto weight = [](const nn::AnyLinear& layer) {
    return std::get<nn::Linear>(layer.layer).weight;
  };
  EXPECT_FALSE(same(weight(attention.q_proj), weight(attention.k_proj)));
  EXPECT_FALSE(same(weight(attention.v_proj), weight(attention.o_proj)));
  const nn::GatedMLP mlp(8, 8, kKey);
  EXPECT_FALSE(same(weight(mlp.gate_proj), weight(mlp.up_proj)));
}

// ---- Dropout

TEST(Dropout, DropsThatShareAndKeepsTheMean) {
  const nn::Dropout dropout(0.25f);
  const Array dropped = dropout(ones({100, 100}), kKey);
  const float zeros = astype(sum(dropped == 0), DType::f32).item<float>();
  EXPECT_NEAR(zeros / 10000, 0.25, 0.03);
  EXPECT_TRUE(all(logical_or(dropped == 0, isclose(dropped, Array(1 / 0.75f)))).item<bool>());
  EXPECT_TRUE(same(dropped, dropout(ones({100, 100}), kKey)));
  EXPECT_FALSE(same(dropped, dropout(ones({100, 100}), random::key(2))));
}

TEST(Dropout, IsNothingWithoutAKeyOrAProbability) {
  const Array x = random::normal({5, 5}, kKey);
  EXPECT_TRUE(same(x, nn::Dropout(0.5f)(x)));
  EXPECT_TRUE(same(x, nn::Dropout(0.0f)(x, kKey)));
  EXPECT_EQ(nn::Dropout(0.5f)(astype(x, DType::bf16), kKey).dtype(), DType::bf16);
}

TEST(Dropout, DropsInfinitiesToo) {
  const Array dropped =
      nn::Dropout(0.5f)(full({1000}, std::numeric_limits<float>::infinity()), kKey);
  EXPECT_FALSE(any(isnan(dropped)).item<bool>());
  EXPECT_TRUE(any(dropped == 0).item<bool>());
}

// ---- Quantised

TEST(QuantizedLinear, GivesWhatItsDequantisedWeightGives) {
  const nn::Linear linear(256, 24, kKey);
  const Array x = random::normal({3, 256}, random::key(9));
  for (const nn::QuantizedLinear& quantized :
       {nn::QuantizedLinear(linear, DType::q8_0), nn::QuantizedLinear(linear, DType::q4_K),
        nn::QuantizedLinear(linear), nn::QuantizedLinear(linear, 32, 8),
        nn::QuantizedLinear(linear, std::nullopt, std::nullopt, "mxfp8"),
        nn::QuantizedLinear(linear, std::nullopt, std::nullopt, "nvfp4")}) {
    SCOPED_TRACE(to_string(quantized.weight.spec()) + " " + quantized.mode);
    const Array expected = matmul(x, transpose(quantized.dequantized_weight())) + *quantized.bias;
    EXPECT_LT(largest(quantized(x) - expected), 2e-2 * largest(expected));
    EXPECT_LT(largest(quantized.dequantized_weight() - linear.weight),
              0.3 * largest(linear.weight));
    EXPECT_TRUE(nn::trainable_parameters(quantized).empty());
  }
}

// ---- Inside the transforms

struct AllLayers {
  nn::Conv1d conv{8, 8, 3, kKey, {.padding = 1}};
  nn::GroupNorm group_norm{2, 8};
  nn::MultiHeadAttention attention{
      8, 2, kKey, {.kv_heads = 1, .qkv_bias = true, .rope_base = 100.0f}};
  nn::LayerNorm layer_norm{8};
  nn::MLP mlp{8, 16, kKey};
  nn::GatedMLP gated{8, 16, kKey};
  nn::RMSNorm rms_norm{8};

  Array operator()(const Array& x) const {
    const Array y = attention(layer_norm(group_norm(conv(x))), "causal");
    return rms_norm(y + gated(mlp(y)));
  }
  auto leaves() const {
    return nn::named("conv", conv, "group_norm", group_norm, "attention", attention, "layer_norm",
                     layer_norm, "mlp", mlp, "gated", gated, "rms_norm", rms_norm);
  }
};

double distance(const Array& a, const Array& b) {
  return largest(a - b);
}

TEST(Modules, GiveTheSameCompiledAndMapped) {
  const AllLayers layers;
  const Array x = random::normal({3, 2, 6, 8}, random::key(4));
  const Array expected =
      stack({layers(take(x, 0, 0)), layers(take(x, 1, 0)), layers(take(x, 2, 0))});
  const ArrayFunction call = [&](const Array& a) { return layers(a); };
  EXPECT_LT(distance(vmap(call)(x), expected), 1e-5);
  EXPECT_LT(distance(compile(vmap(call))(x), expected), 1e-5);
  EXPECT_LT(distance(compile(call)(take(x, 1, 0)), take(expected, 1, 0)), 1e-5);
}

/// Along a random direction in all parameters.
TEST(Modules, HaveTheGradientsThatDifferencesHave) {
  AllLayers layers;
  nn::set_dtype(layers, DType::f64);
  const Array x = astype(random::normal({2, 6, 8}, random::key(4)), DType::f64);
  const auto loss = [](const AllLayers& all, const Array& in) { return sum(square(all(in)) * in); };
  const auto [value, gradients] = value_and_grad(loss, layers, x);
  AllLayers ahead = layers, behind = layers;
  Array slope = astype(Array(0.0f), DType::f64);
  const Array h = astype(Array(0x1p-14f), DType::f64);
  const auto at = nn::parameters_in(layers), along = nn::parameters_in(gradients);
  const auto more = nn::parameters_in(ahead), less = nn::parameters_in(behind);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const Array step = astype(random::normal(at[i].array->shape(), random::key(i)), DType::f64);
    slope = slope + sum(step * *along[i].array);
    *more[i].array = *at[i].array + h * step;
    *less[i].array = *at[i].array - h * step;
  }
  const Array difference = (loss(ahead, x) - loss(behind, x)) / (2 * h);
  EXPECT_NEAR(difference.item<double>() / slope.item<double>(), 1, 1e-4);
}

}  // namespace
}  // namespace heddle::test
