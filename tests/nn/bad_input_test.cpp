// Bad input of every kind to every module, loss, optimiser and schedule: an Error that names the
// function and the sizes at fault, at the call.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "heddle/losses.h"
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "heddle/optimizers.h"
#include "support/error_message.h"

namespace heddle::test {
namespace {

struct Refusal {
  const char* text;  // in the message
  std::function<void()> call;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    expect_refusal(refusal.call, ErrorCode::invalid_argument, refusal.text);
  }
}

const Array kKey = random::key(1);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Array blocks() {
  return nn::QuantizedLinear(nn::Linear(32, 4, kKey), DType::q8_0).weight;
}

TEST(BadInput, ModulesRefuseSizesThatMakeNoSense) {
  expect_refusals({
      {"nn::Linear: input_dims is 0; it must be positive", [] { nn::Linear(0, 4, kKey); }},
      {"nn::Linear: output_dims is -1", [] { nn::Linear(4, -1, kKey); }},
      {"nn::Linear: split: bits: the key is i32[]; it must be u32[2] [",
       [] { nn::Linear(4, 4, 7); }},
      {"nn::Linear: the weight is f32[4]", [] { nn::Linear(zeros({4})); }},
      {"nn::Linear: the weight is i32[4, 4]",
       [] {
         nn::Linear(zeros({4, 4}, DType::i32));
       }},
      {"nn::Linear: the weight is q8_0[4, 32]", [] { nn::Linear{blocks()}; }},
      {"nn::Linear: the bias is f32[3]; for the weight f32[4, 2] it must be floating [4]",
       [] {
         nn::Linear(zeros({4, 2}), zeros({3}));
       }},
      {"nn::Linear: the bias is i32[4]",
       [] {
         nn::Linear(zeros({4, 2}), zeros({4}, DType::i32));
       }},
      {"nn::QuantizedLinear: f16 is no block type",
       [] { nn::QuantizedLinear(nn::Linear(32, 4, kKey), DType::f16); }},
      {"nn::QuantizedLinear: ", [] { nn::QuantizedLinear(nn::Linear(31, 4, kKey), DType::q8_0); }},
      {"nn::QuantizedLinear: quantize: ", [] { nn::QuantizedLinear(nn::Linear(31, 4, kKey)); }},
      {"nn::QuantizedLinear: quantize: ", [] { nn::QuantizedLinear(nn::Linear(64, 4, kKey), 7); }},
      {"nn::QuantizedLinear: quantize: ",
       [] { nn::QuantizedLinear(nn::Linear(64, 4, kKey), 64, 4, "none"); }},
      {"nn::QuantizedLinear: the weight is f32[4, 32]",
       [] {
         nn::QuantizedLinear(zeros({4, 32}));
       }},
      {"nn::QuantizedLinear: the bias is f32[5]",
       [] { nn::QuantizedLinear(blocks(), zeros({5})); }},
      {"nn::Embedding: num_embeddings is 0", [] { nn::Embedding(0, 4, kKey); }},
      {"nn::Embedding: dims is -4", [] { nn::Embedding(4, -4, kKey); }},
      {"nn::Embedding: normal: ", [] { nn::Embedding(4, 4, zeros({3})); }},
      {"nn::Embedding: the weight is f32[]", [] { nn::Embedding(Array(1.0f)); }},
      {"nn::RMSNorm: dims is 0", [] { nn::RMSNorm(0); }},
      {"nn::RMSNorm: eps is -1", [] { nn::RMSNorm(4, -1); }},
      {"nn::LayerNorm: dims is 0", [] { nn::LayerNorm(0); }},
      {"nn::LayerNorm: eps is nan", [] { nn::LayerNorm(4, kNaN); }},
      {"nn::GroupNorm: num_groups is 0", [] { nn::GroupNorm(0, 4); }},
      {"nn::GroupNorm: 3 groups do not divide 4 channels", [] { nn::GroupNorm(3, 4); }},
      {"nn::GroupNorm: eps is inf", [] { nn::GroupNorm(2, 4, kInfinity); }},
      {"nn::GroupNorm: num_groups is -2", [] { nn::InstanceNorm(-2); }},
      {"nn::Dropout: p is 1;", [] { nn::Dropout(1.0f); }},
      {"nn::Dropout: p is -0.1", [] { nn::Dropout(-0.1f); }},
      {"nn::Dropout: p is nan", [] { nn::Dropout dropout(kNaN); }},
      {"nn::Conv1d: kernel_size is 0", [] { nn::Conv1d(4, 4, 0, kKey); }},
      {"nn::Conv1d: stride is 0", [] { nn::Conv1d(4, 4, 3, kKey, {.stride = 0}); }},
      {"nn::Conv1d: padding is -1", [] { nn::Conv1d(4, 4, 3, kKey, {.padding = -1}); }},
      {"nn::Conv1d: 2 groups do not divide 3 channels in and 4 out",
       [] { nn::Conv1d(3, 4, 3, kKey, {.groups = 2}); }},
      {"nn::Conv2d: in_channels is 0",
       [] {
         nn::Conv2d(0, 4, {3, 3}, kKey);
       }},
      {"nn::Conv2d: kernel_size is -3",
       [] {
         nn::Conv2d(4, 4, {3, -3}, kKey);
       }},
      {"nn::Conv2d: dilation is 0",
       [] {
         nn::Conv2d(4, 4, {3, 3}, kKey, {.dilation = {1, 0}});
       }},
      {"nn::Conv2d: padding is -2",
       [] {
         nn::Conv2d(4, 4, {3, 3}, kKey, {.padding = {-2, 0}});
       }},
      {"nn::Conv2d: 3 groups do not divide 4 channels",
       [] {
         nn::Conv2d(4, 3, {3, 3}, kKey, {.groups = 3});
       }},
      {"nn::Conv2d: uniform: ",
       [] {
         nn::Conv2d(4, 4, {3, 3}, Array(1));
       }},
  });
}

TEST(BadInput, PartsOfTransformersRefuseSizesThatMakeNoSense) {
  using Attention = nn::MultiHeadAttention;
  const nn::AnyLinear linear = nn::Linear(8, 4, kKey);
  expect_refusals({
      {"nn::MultiHeadAttention: dims is 0", [] { Attention(0, 2, kKey); }},
      {"nn::MultiHeadAttention: heads is 0", [] { Attention(8, 0, kKey); }},
      {"nn::MultiHeadAttention: 3 heads do not divide 8 dims", [] { Attention(8, 3, kKey); }},
      {"nn::MultiHeadAttention: 3 heads of keys and values do not divide 4 heads",
       [] { Attention(8, 4, kKey, {.kv_heads = 3}); }},
      {"nn::MultiHeadAttention: -1 heads of keys", [] { Attention(8, 4, kKey, {.kv_heads = -1}); }},
      {"nn::MultiHeadAttention: head_dims is -2", [] { Attention(8, 4, kKey, {.head_dims = -2}); }},
      {"nn::MultiHeadAttention: heads of 3 features cannot turn",
       [] { Attention(9, 3, kKey, {.rope_base = 10.0f}); }},
      {"nn::MultiHeadAttention: rope_base is -1",
       [] { Attention(8, 2, kKey, {.rope_base = -1.0f}); }},
      {"nn::MultiHeadAttention: split: ", [] { Attention(8, 2, Array(3)); }},
      {"nn::MLP: nn::Linear: input_dims is 0", [] { nn::MLP(0, 4, kKey); }},
      {"nn::MLP: nn::Linear: output_dims is 0", [] { nn::MLP(4, 0, kKey); }},
      {"nn::GatedMLP: nn::Linear: input_dims is -4", [] { nn::GatedMLP(-4, 4, kKey); }},
      {"nn::GatedMLP: nn::Linear: output_dims is 0", [] { nn::GatedMLP(4, 0, kKey); }},
      {"nn::LoRALinear: rank is 0", [&] { nn::LoRALinear(linear, 0, kKey); }},
      {"nn::LoRALinear: scale is nan", [&] { nn::LoRALinear(linear, 2, kKey, kNaN); }},
      {"nn::Dropout: p is 1.5", [&] { nn::LoRALinear(linear, 2, kKey, 1.0f, 1.5f); }},
      {"nn::LoRALinear: uniform: ", [&] { nn::LoRALinear(linear, 2, Array(1.0f)); }},
      {"nn::LoRALinear: the layer has an adapter already",
       [&] { nn::LoRALinear(nn::LoRALinear(linear, 2, kKey), 2, kKey); }},
  });
}

TEST(BadInput, ModulesRefuseArraysThatDoNotFit) {
  const Array x = zeros({2, 5}), scalar = 1.0f;
  const nn::QuantizedLinear quantized(blocks()), groups(nn::Linear(64, 4, kKey));
  const nn::MultiHeadAttention attention(8, 2, kKey);
  expect_refusals({
      {"nn::Linear: x is f32[2, 5]; its last axis must be 4", [&] { nn::Linear(4, 3, kKey)(x); }},
      {"nn::Linear: x is f32[]", [&] { nn::Linear(4, 3, kKey)(scalar); }},
      {"nn::QuantizedLinear: x is f32[2, 5]; its last axis must be 32", [&] { quantized(x); }},
      {"nn::QuantizedLinear: quantized_matmul: ", [&] { groups(x); }},
      {"nn::Embedding: take: ", [&] { nn::Embedding(4, 3, kKey)(x); }},
      {"nn::Embedding: x is f32[2, 5]; its last axis must be 3",
       [&] { nn::Embedding(4, 3, kKey).as_linear(x); }},
      {"nn::RMSNorm: rms_norm: ", [&] { nn::RMSNorm(4)(x); }},
      {"nn::LayerNorm: x is f32[2, 5]; its last axis must be 4", [&] { nn::LayerNorm(4)(x); }},
      {"nn::LayerNorm: x is f32[2, 5]", [&] { nn::LayerNorm(4, 1e-5f, false)(x); }},
      {"nn::GroupNorm: x is f32[4]; it must be [N, ..., 4]",
       [&] { nn::GroupNorm(2, 4)(zeros({4})); }},
      {"nn::GroupNorm: x is f32[2, 5]; its last axis must be 4", [&] { nn::InstanceNorm(4)(x); }},
      {"nn::Dropout: x is i32[]", [&] { nn::Dropout()(Array(1)); }},
      {"nn::Dropout: bernoulli: ", [&] { nn::Dropout()(x, Array(1)); }},
      {"nn::Conv1d: ",
       [&] {
         nn::Conv1d(4, 4, 3, kKey)(zeros({1, 9, 5}));
       }},
      {"nn::Conv1d: ",
       [&] {
         nn::Conv1d(4, 4, 3, kKey)(zeros({9, 4}));
       }},
      {"nn::Conv2d: ",
       [&] {
         nn::Conv2d(4, 4, {3, 3}, kKey)(zeros({1, 9, 4}));
       }},
      {"nn::Conv2d: ",
       [&] {
         nn::Conv2d(4, 4, {3, 3}, kKey)(zeros({1, 2, 2, 4}));
       }},
      {"nn::MultiHeadAttention: x is f32[8]; it must be [..., S, dims]",
       [&] { attention(zeros({8})); }},
      {"nn::MultiHeadAttention: nn::Linear: x is f32[2, 5]", [&] { attention(x); }},
      {"nn::MultiHeadAttention: scaled_dot_product_attention: mask mode \"none\"",
       [&] {
         attention(zeros({3, 8}), "none");
       }},
      {"nn::MultiHeadAttention: ",
       [&] {
         attention(zeros({3, 8}), "array", zeros({4, 4}));
       }},
      {"nn::MultiHeadAttention: ",
       [&] {
         attention(zeros({3, 8}), zeros({4, 8}), zeros({5, 8}));
       }},
      {"nn::MultiHeadAttention: ",
       [&] {
         attention(zeros({2, 3, 8}), zeros({3, 3, 8}), zeros({3, 3, 8}));
       }},
      {"nn::MLP: nn::Linear: x is f32[2, 5]", [&] { nn::MLP(4, 3, kKey)(x); }},
      {"nn::GatedMLP: nn::Linear: x is f32[2, 5]", [&] { nn::GatedMLP(4, 3, kKey)(x); }},
      {"nn::LoRALinear: nn::Linear: x is f32[2, 5]",
       [&] { nn::LoRALinear(nn::Linear(4, 3, kKey), 2, kKey)(x); }},
  });
}

/// Members may be replaced; what does not fit is noticed when it is used.
TEST(BadInput, ModulesRefuseMembersThatDoNotFit) {
  nn::Linear linear(4, 3, kKey);
  linear.weight = 1.0f;
  nn::LoRALinear lora(nn::Linear(4, 3, kKey), 2, kKey);
  lora.lora_b = zeros({3, 3});
  nn::QuantizedLinear quantized(nn::Linear(64, 4, kKey));
  quantized.biases = std::nullopt;
  nn::MultiHeadAttention attention(8, 2, kKey);
  attention.k_proj = nn::Linear(8, 7, kKey);
  const Array x = zeros({2, 4});
  expect_refusals({
      {"nn::Linear: ", [&] { linear(x); }},
      {"nn::LoRALinear: matmul: ", [&] { lora(x); }},
      {"nn::LoRALinear: matmul: ", [&] { lora.fuse(); }},
      {"nn::QuantizedLinear: ",
       [&] {
         quantized(zeros({2, 64}));
       }},
      {"nn::QuantizedLinear: ", [&] { quantized.dequantized_weight(); }},
      {"nn::MultiHeadAttention: ",
       [&] {
         attention(zeros({3, 8}));
       }},
  });
}

// ---- Losses

using namespace nn::losses;
using PairLoss = Array (*)(const Array&, const Array&);
const std::vector<std::pair<std::string, PairLoss>> kPairLosses{
    {"binary_cross_entropy",
     [](const Array& a, const Array& b) { return binary_cross_entropy(a, b); }},
    {"l1_loss", [](const Array& a, const Array& b) { return l1_loss(a, b); }},
    {"mse_loss", [](const Array& a, const Array& b) { return mse_loss(a, b); }},
    {"smooth_l1_loss", [](const Array& a, const Array& b) { return smooth_l1_loss(a, b); }},
    {"huber_loss", [](const Array& a, const Array& b) { return huber_loss(a, b); }},
    {"log_cosh_loss", [](const Array& a, const Array& b) { return log_cosh_loss(a, b); }},
    {"kl_div_loss", [](const Array& a, const Array& b) { return kl_div_loss(a, b); }},
    {"gaussian_nll_loss",
     [](const Array& a, const Array& b) { return gaussian_nll_loss(a, b, a); }},
    {"hinge_loss", [](const Array& a, const Array& b) { return hinge_loss(a, b); }},
    {"margin_ranking_loss",
     [](const Array& a, const Array& b) { return margin_ranking_loss(a, b, a); }},
    {"margin_ranking_loss",
     [](const Array& a, const Array& b) { return margin_ranking_loss(a, a, b); }},
    {"triplet_loss", [](const Array& a, const Array& b) { return triplet_loss(a, b, a); }},
    {"triplet_loss", [](const Array& a, const Array& b) { return triplet_loss(a, a, b); }},
    {"cosine_similarity_loss",
     [](const Array& a, const Array& b) { return cosine_similarity_loss(a, b); }},
};

TEST(BadInput, LossesOfPairsWantFloatsAndTargetsOfTheirShape) {
  const Array good = zeros({4, 32});
  for (const auto& [name, loss] : kPairLosses) {
    SCOPED_TRACE(name);
    const auto refuse = [&](const Array& a, const Array& b, const std::string& text) {
      expect_refusal([&] { loss(a, b); }, ErrorCode::invalid_argument, name + ": " + text);
    };
    refuse(zeros({4, 32}, DType::i32), good,
           "the predictions are i32[4, 32]; they must be floating");
    refuse(blocks(), good, "the predictions are q8_0[4, 32]");
    refuse(zeros({4, 32}, DType::complex64), good, "the predictions are complex64[4, 32]");
    refuse(good, zeros({4}),
           "the targets are f32[4]; for predictions f32[4, 32] they must be real [4, 32]");
    refuse(good, zeros({32}), "the targets are f32[32]");
    refuse(good, blocks(), "the targets are q8_0[4, 32]");
    refuse(good, zeros({4, 32}, DType::complex64), "the targets are complex64[4, 32]");
  }
}

TEST(BadInput, LossesRefuseWhatTheyCannotUse) {
  const Array logits = zeros({4, 3}), index = zeros({4}, DType::i32);
  const std::optional<Array> no_weights;
  expect_refusals({
      {"cross_entropy: the logits are i32[4, 3]",
       [&] {
         cross_entropy(zeros({4, 3}, DType::i32), index);
       }},
      {"cross_entropy: sum: axis -1 is outside [0, 0)", [&] { cross_entropy(1.0f, 1.0f); }},
      {"cross_entropy: the targets are f32[4]; for f32[4, 3] and axis -1 they must be integers [4]",
       [&] { cross_entropy(logits, zeros({4})); }},
      {"cross_entropy: the targets are i32[3]",
       [&] { cross_entropy(logits, zeros({3}, DType::i32)); }},
      {"cross_entropy: the targets are bool[4]",
       [&] { cross_entropy(logits, zeros({4}, DType::bool_)); }},
      {"cross_entropy: the targets are f32[4, 4]",
       [&] {
         cross_entropy(logits, zeros({4, 4}));
       }},
      {"cross_entropy: the probabilities are i32[4, 3]",
       [&] {
         cross_entropy(logits, zeros({4, 3}, DType::i32));
       }},
      {"cross_entropy: the weights are f32[3]; for this loss they must be real [4]",
       [&] { cross_entropy(logits, index, zeros({3})); }},
      {"cross_entropy: the weights are complex64[4]",
       [&] { cross_entropy(logits, index, zeros({4}, DType::complex64)); }},
      {"cross_entropy: axis: axis 2 is outside",
       [&] { cross_entropy(logits, index, no_weights, 2); }},
      {"cross_entropy: sum: axis -3 is outside",
       [&] { cross_entropy(logits, logits, no_weights, -3); }},
      {"cross_entropy: label_smoothing is 1;",
       [&] { cross_entropy(logits, index, no_weights, -1, 1); }},
      {"cross_entropy: label_smoothing is nan",
       [&] { cross_entropy(logits, index, no_weights, -1, kNaN); }},
      {"binary_cross_entropy: the weights are f32[3, 4]",
       [&] {
         binary_cross_entropy(logits, logits, zeros({3, 4}));
       }},
      {"smooth_l1_loss: beta is 0", [&] { smooth_l1_loss(logits, logits, 0); }},
      {"huber_loss: delta is -1", [&] { huber_loss(logits, logits, -1); }},
      {"nll_loss: the inputs are i32[4]", [&] { nll_loss(index, index); }},
      {"nll_loss: the targets are i32[4]; for f32[4, 3] and axis 0 they must be integers [3]",
       [&] { nll_loss(logits, index, 0); }},
      {"nll_loss: axis: axis 5 is outside", [&] { nll_loss(logits, index, 5); }},
      {"gaussian_nll_loss: the variances are f32[3]",
       [&] { gaussian_nll_loss(logits, logits, zeros({3})); }},
      {"gaussian_nll_loss: eps is 0", [&] { gaussian_nll_loss(logits, logits, logits, false, 0); }},
      {"kl_div_loss: the targets are i32[4, 3]",
       [&] {
         kl_div_loss(logits, zeros({4, 3}, DType::i32));
       }},
      {"kl_div_loss: sum: axis 2 is outside", [&] { kl_div_loss(logits, logits, 2); }},
      {"margin_ranking_loss: margin is nan",
       [&] { margin_ranking_loss(logits, logits, logits, kNaN); }},
      {"triplet_loss: p is 0", [&] { triplet_loss(logits, logits, logits, -1, 0); }},
      {"triplet_loss: margin is inf",
       [&] { triplet_loss(logits, logits, logits, -1, 2, kInfinity); }},
      {"triplet_loss: eps is -1", [&] { triplet_loss(logits, logits, logits, -1, 2, 1, -1); }},
      {"triplet_loss: sum: axis 2 is outside", [&] { triplet_loss(logits, logits, logits, 2); }},
      {"cosine_similarity_loss: eps is 0", [&] { cosine_similarity_loss(logits, logits, 1, 0); }},
      {"cosine_similarity_loss: sum: axis 1 is outside",
       [&] { cosine_similarity_loss(index + 0.5f, index); }},
  });
}

// ---- Optimisers

TEST(BadInput, OptimizersRefuseNumbersOutOfTheirRange) {
  expect_refusals({
      {"optimizer: the learning rate is -1", [] { optim::SGD(-1); }},
      {"optimizer: the learning rate is nan", [] { optim::Adam optimizer(kNaN); }},
      {"optimizer: the schedule of the learning rate is empty",
       [] { optim::Lion optimizer{optim::Schedule()}; }},
      {"optimizer: what the schedule gives is f32[2]; it must be one floating number",
       [] { optim::Lion([](const Array&) { return zeros({2}); }); }},
      {"SGD: momentum is -0.1", [] { optim::SGD(1, {.momentum = -0.1}); }},
      {"SGD: weight_decay is inf", [] { optim::SGD(1, {.weight_decay = kInfinity}); }},
      {"SGD: dampening is -1", [] { optim::SGD(1, {.dampening = -1}); }},
      {"SGD: Nesterov's momentum needs a momentum (it is 0)",
       [] { optim::SGD(1, {.nesterov = true}); }},
      {"SGD: Nesterov's momentum needs a momentum (it is 0.5) and no dampening (it is 0.1)",
       [] { optim::SGD(1, {.momentum = 0.5, .dampening = 0.1, .nesterov = true}); }},
      {"Adam: the betas are 1 and 0.5",
       [] {
         optim::Adam(1, {.betas = {1, 0.5}});
       }},
      {"Adam: the betas are 0.5 and -1",
       [] {
         optim::AdamW(1, {.betas = {0.5, -1}});
       }},
      {"Adam: eps is -1", [] { optim::Adam(1, {.eps = -1}); }},
      {"AdamW: weight_decay is -1", [] { optim::AdamW(1, {.weight_decay = -1}); }},
      {"Lion: the betas are nan",
       [] {
         optim::Lion(1, {.betas = {kNaN, 0}});
       }},
      {"Lion: weight_decay is -1", [] { optim::Lion(1, {.weight_decay = -1}); }},
      {"Adafactor: steps that are not relative need a learning rate",
       [] { optim::Adafactor({.relative_step = false}); }},
      {"Adafactor: with a learning rate, steps cannot be relative",
       [] { optim::Adafactor(1, {}); }},
      {"Adafactor: eps is -1",
       [] {
         optim::Adafactor({.eps = {-1, 0}});
       }},
      {"Adafactor: eps is nan",
       [] {
         optim::Adafactor({.eps = {0, kNaN}});
       }},
      {"Adafactor: clip_threshold is 0", [] { optim::Adafactor({.clip_threshold = 0}); }},
      {"Adafactor: decay_rate is 0.8", [] { optim::Adafactor({.decay_rate = 0.8}); }},
      {"Adafactor: beta_1 is 1", [] { optim::Adafactor({.beta_1 = 1.0}); }},
      {"Adafactor: weight_decay is -1", [] { optim::Adafactor({.weight_decay = -1}); }},
  });
}

TEST(BadInput, OptimizersRefuseTreesThatDoNotFit) {
  using Trees = std::vector<Array>;
  const auto update = [](Trees parameters, const Trees& gradients) {
    optim::Adam(1).update(parameters, gradients);
  };
  optim::Adam used(1);
  used.init(Trees{zeros({2})});
  Trees other{zeros({3})};
  expect_refusals({
      {"optimizer: 2 parameters train, and there are 1 gradients",
       [&] {
         update({zeros({2}), zeros({2})}, {zeros({2})});
       }},
      {"optimizer: 0 is f32[2], and its gradient f32[3]",
       [&] { update({zeros({2})}, {zeros({3})}); }},
      {"optimizer: the gradient in the place of 0 is called 1",
       [&] {
         update({zeros({2})}, {zeros({2}, DType::i32), zeros({2})});
       }},
      {"optimizer: the state m of 0 is f32[2]; for f32[3] it must be f32[3]",
       [&] { used.update(other, other); }},
      {"optimizer: the state m of 0", [&] { used.init(other); }},
  });
  EXPECT_EQ(used.step.item<int>(), 0);
  Trees fitting{zeros({2})};
  used.learning_rate = zeros({2});
  expect_refusals({{"optimizer: learning_rate is f32[2]", [&] { used.update(fitting, fitting); }}});
  used.learning_rate = 1.0f;
  used.step = 0.5f;
  expect_refusals({{"optimizer: step is f32[]", [&] { used.update(fitting, fitting); }}});
}

TEST(BadInput, SchedulesAndClippingRefuseNumbersOutOfTheirRange) {
  const std::vector<Array> gradients{ones({2})};
  expect_refusals({
      {"constant: nan is no finite number", [] { optim::constant(kNaN); }},
      {"linear_schedule: inf is no finite number", [] { optim::linear_schedule(0, kInfinity, 1); }},
      {"linear_schedule: steps is 0", [] { optim::linear_schedule(0, 1, 0); }},
      {"exponential_decay: decay_rate is 0", [] { optim::exponential_decay(1, 0); }},
      {"exponential_decay: nan", [] { optim::exponential_decay(kNaN, 1); }},
      {"step_decay: decay_rate is -1", [] { optim::step_decay(1, -1, 1); }},
      {"step_decay: step_size is -3", [] { optim::step_decay(1, 1, -3); }},
      {"cosine_decay: decay_steps is 0", [] { optim::cosine_decay(1, 0); }},
      {"cosine_decay: nan", [] { optim::cosine_decay(1, 1, kNaN); }},
      {"join_schedules: 0 schedules and 0 boundaries", [] { optim::join_schedules({}, {}); }},
      {"join_schedules: 1 schedules and 1 boundaries",
       [] { optim::join_schedules({optim::constant(1)}, {1}); }},
      {"join_schedules: schedule 1 is empty",
       [] {
         optim::join_schedules({optim::constant(1), nullptr}, {1});
       }},
      {"join_schedules: boundary 1 is 2; it must not be below 3",
       [] {
         optim::join_schedules({optim::constant(1), optim::constant(1), optim::constant(1)},
                               {3, 2});
       }},
      {"clip_grad_norm: max_norm is 0", [&] { optim::clip_grad_norm(gradients, 0); }},
      {"clip_grad_norm: max_norm is nan", [&] { optim::clip_grad_norm(gradients, kNaN); }},
      {"clip_grad_value: clip_value is -1", [&] { optim::clip_grad_value(gradients, -1); }},
  });
}

}  // namespace
}  // namespace heddle::test
