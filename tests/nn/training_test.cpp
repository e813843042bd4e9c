// Models that are trained for some steps, eagerly and compiled.
#include <gtest/gtest.h>

#include <vector>

#include "heddle/compile.h"
#include "heddle/losses.h"
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "heddle/optimizers.h"

namespace heddle {
namespace {

using nn::named;

struct Block {
  nn::RMSNorm attention_norm, mlp_norm;
  nn::MultiHeadAttention attention;
  nn::GatedMLP mlp;

  Block(int dims, const Array& key)
      : attention_norm(dims),
        mlp_norm(dims),
        attention(dims, 4, take(random::split(key, 2), 0, 0),
                  {.kv_heads = 2, .qkv_bias = true, .rope_base = 10000.0f}),
        mlp(dims, 3 * dims, take(random::split(key, 2), 1, 0)) {}
  Array operator()(const Array& x) const {
    const Array seen = x + attention(attention_norm(x), "causal");
    return seen + mlp(mlp_norm(seen));
  }
  auto leaves() const {
    return named("attention_norm", attention_norm, "attention", attention, "mlp_norm", mlp_norm,
                 "mlp", mlp);
  }
};

/// A small qwen2, with tied embeddings.
struct Transformer {
  nn::Embedding embedding;
  std::vector<Block> layers;
  nn::RMSNorm norm;

  Transformer(int vocabulary, int dims, int depth, const Array& key)
      : embedding(vocabulary, dims, key), norm(dims) {
    const Array keys = random::split(key, depth);
    for (int i = 0; i < depth; ++i) layers.emplace_back(dims, take(keys, i, 0));
  }
  Array operator()(const Array& ids) const {
    Array x = embedding(ids);
    for (const Block& layer : layers) x = layer(x);
    return embedding.as_linear(norm(x));
  }
  auto leaves() const { return named("embedding", embedding, "layers", layers, "norm", norm); }
};

Array next_token_loss(const Transformer& model, const Array& ids, const Array& targets) {
  return nn::losses::cross_entropy(model(ids), targets, std::nullopt, -1, 0.0f,
                                   nn::losses::Reduction::mean);
}

struct Batch {
  Array ids = random::randint(0, 32, {2, 9}, DType::i32, random::key(3));
  Array inputs = slice(ids, {0, 0}, {2, 8}), targets = slice(ids, {0, 1}, {2, 9});
};

std::vector<float> losses_of(bool compiled, int steps) {
  Transformer model(32, 16, 2, random::key(7));
  optim::AdamW optimizer(optim::join_schedules(
      {optim::linear_schedule(0, 1e-2, 5), optim::cosine_decay(1e-2, 100)}, {5}));
  optimizer.init(model);
  const Batch batch;
  ArraysFunction step = [&](const std::vector<Array>& in) {
    const auto [loss, gradients] = value_and_grad(next_token_loss, model, in[0], in[1]);
    const auto [clipped, norm] = optim::clip_grad_norm(gradients, 1.0);
    optimizer.update(model, clipped);
    return std::vector<Array>{loss, norm};
  };
  if (compiled) step = compile(step, false, nn::state_of(model, optimizer));
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(step({batch.inputs, batch.targets})[0].item<float>());
    eval(model, optimizer);
  }
  EXPECT_EQ(optimizer.step.item<int>(), steps);
  return losses;
}

TEST(Training, ATransformerLearnsABatchAndCompiledStepsDoTheSame) {
  const std::vector<float> eager = losses_of(false, 40), compiled = losses_of(true, 40);
  EXPECT_NEAR(eager.front(), std::log(32.0f), 1.0f);
  EXPECT_LT(eager.back(), 0.3f * eager.front());
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(eager[i], compiled[i], 2e-2f) << i;
}

}  // namespace
}  // namespace heddle
