// Adapters of low rank on plain and quantised layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/compile.h"
#include "heddle/losses.h"
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "heddle/optimizers.h"

namespace heddle::test {
namespace {

const Array kKey = random::key(1);

std::vector<std::pair<const char*, nn::AnyLinear>> bases() {
  const nn::Linear linear(64, 32, kKey);
  return {{"plain", linear},
          {"q8_0", nn::QuantizedLinear(linear, DType::q8_0)},
          {"q4_0", nn::QuantizedLinear(linear, DType::q4_0)},
          {"affine", nn::QuantizedLinear(linear, 32, 4)},
          {"mxfp4", nn::QuantizedLinear(linear, std::nullopt, std::nullopt, "mxfp4")}};
}

double largest(const Array& a) {
  return max(abs(a)).item<float>();
}
bool same(const Array& a, const Array& b) {
  return a.spec() == b.spec() && a.to_bytes() == b.to_bytes();
}

/// Layers that have learned something.
nn::LoRALinear moved(nn::LoRALinear layer) {
  layer.lora_b = 0.01f * random::normal(layer.lora_b.shape(), random::key(8));
  return layer;
}

TEST(LoRA, BeginsAsTheLayerItIsOn) {
  const Array x = random::normal({5, 64}, random::key(2));
  for (const auto& [name, base] : bases()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(same(nn::LoRALinear(base, 4, kKey)(x), base(x)));
  }
}

TEST(LoRA, GivesTheSameFused) {
  const Array x = random::normal({5, 64}, random::key(2));
  for (const auto& [name, base] : bases()) {
    SCOPED_TRACE(name);
    const nn::LoRALinear layer = moved(nn::LoRALinear(base, 4, kKey, 3.0f));
    const Array expected = layer(x);
    EXPECT_GT(largest(expected - base(x)), 0.05 * largest(expected));
    EXPECT_LT(largest(layer.fuse()(x) - expected), 1e-2 * largest(expected));
  }
  nn::Linear half(64, 32, kKey);
  nn::set_dtype(half, DType::f16);
  const nn::LoRALinear layer = moved(nn::LoRALinear(half, 4, kKey));
  EXPECT_EQ(layer.fuse().weight.dtype(), DType::f16);
  EXPECT_EQ(layer(astype(x, DType::f16)).dtype(), DType::f16);
}

/// By the layer's input, as of the dense layer that has the same weight.
TEST(LoRA, GradientsFlowThroughTheBase) {
  const Array x = random::normal({5, 64}, random::key(2)),
              c = random::normal({5, 32}, random::key(3));
  for (const auto& [name, base] : bases()) {
    SCOPED_TRACE(name);
    const nn::LoRALinear layer = moved(nn::LoRALinear(base, 4, kKey));
    const nn::Linear dense = layer.fuse();
    const Array slope = grad([&](const Array& in) { return sum(layer(in) * c); })(x);
    const Array expected = matmul(c, dense.weight);
    EXPECT_LT(largest(slope - expected), 1e-4 * largest(expected));
  }
}

/// A layer learns to give what another gives that differs by a matrix of rank 2.
TEST(LoRA, OnlyTheAdaptersLearn) {
  const Array x = random::normal({64, 64}, random::key(2));
  const Array change =
      matmul(random::normal({64, 2}, random::key(3)), random::normal({2, 32}, random::key(4)));
  for (const auto& [name, base] : bases()) {
    SCOPED_TRACE(name);
    const Array target = base(x) + 0.02f * matmul(x, change);
    nn::LoRALinear layer(base, 4, random::key(6), 2.0f);
    const nn::NamedArrays before = nn::parameters(layer);
    optim::Adam optimizer(1e-2);
    optimizer.init(layer);
    const ArraysFunction step = compile(
        [&](const std::vector<Array>& in) {
          const auto loss = [](const nn::LoRALinear& lora, const Array& from, const Array& to) {
            return nn::losses::mse_loss(lora(from), to);
          };
          const auto [value, gradients] = value_and_grad(loss, layer, in[0], in[1]);
          optimizer.update(layer, gradients);
          return std::vector<Array>{value};
        },
        false, nn::state_of(layer, optimizer));
    const float first = step({x, target})[0].item<float>();
    float last = first;
    for (int i = 0; i < 100; ++i) last = step({x, target})[0].item<float>();
    EXPECT_LT(last, 0.05f * first);
    const nn::NamedArrays after = nn::parameters(layer);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(same(before[i].second, after[i].second), !nn::is_adapter(before[i].first))
          << before[i].first;
    }
  }
}

TEST(LoRA, DropsOfTheAdaptersInputOnly) {
  const Array x = random::normal({5, 64}, random::key(2));
  const nn::LoRALinear layer = moved(nn::LoRALinear(bases()[0].second, 4, kKey, 20.0f, 0.5f));
  EXPECT_TRUE(same(layer(x), layer(x)));
  EXPECT_FALSE(same(layer(x), layer(x, random::key(3))));
  EXPECT_TRUE(same(layer(x, random::key(3)), layer(x, random::key(3))));
  nn::LoRALinear silent = layer;
  silent.lora_b = zeros({4, 32});
  EXPECT_TRUE(same(silent(x), silent(x, random::key(3))));
}

/// In a model whose other parameters would train: all but the adapters are left out.
TEST(LoRA, AdaptersOfAModelAreSelected) {
  nn::MultiHeadAttention attention(64, 4, kKey, {.kv_heads = 2, .rope_base = 100.0f});
  for (nn::AnyLinear* layer : {&attention.q_proj, &attention.v_proj}) {
    const auto& plain = std::get<nn::Linear>(layer->layer);
    *layer = nn::LoRALinear(nn::QuantizedLinear(plain, DType::q8_0), 4, random::key(2), 2.0f, 0.1f);
  }
  auto adapters = nn::select(attention, nn::is_adapter);
  EXPECT_THAT(nn::trainable_parameters(adapters),
              testing::ElementsAre(testing::Key("q_proj.lora_a"), testing::Key("q_proj.lora_b"),
                                   testing::Key("v_proj.lora_a"), testing::Key("v_proj.lora_b")));
  const nn::NamedArrays before = nn::parameters(adapters);
  optim::AdamW optimizer(1e-2);
  optimizer.init(adapters);
  const ArraysFunction step = compile(
      [&](const std::vector<Array>& in) {
        const auto loss = [](const auto& chosen, const Array& x, const Array& key) {
          const Array y = chosen.tree(x, "causal", std::nullopt, key);
          return nn::losses::mse_loss(y, flip(x, -1));
        };
        const auto [value, gradients] = value_and_grad(loss, adapters, in[0], in[1]);
        optimizer.update(adapters, gradients);
        return std::vector<Array>{value};
      },
      false, nn::state_of(adapters, optimizer));
  const Array x = random::normal({2, 6, 64}, random::key(5));
  std::vector<float> losses;
  for (unsigned i = 0; i < 60; ++i) losses.push_back(step({x, random::key(i)})[0].item<float>());
  EXPECT_LT(losses.back(), 0.9f * losses.front());
  const nn::NamedArrays after = nn::parameters(adapters);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(same(before[i].second, after[i].second), !nn::is_adapter(before[i].first))
        << before[i].first;
  }
}

TEST(LoRA, AdaptersAreToldByTheirNames) {
  for (const char* name : {"lora_a", "lora_b", "layers.0.q_proj.lora_a"})
    EXPECT_TRUE(nn::is_adapter(name));
  for (const char* name : {"", "lora_a.weight", "lora_c", "my_lora_a"})
    EXPECT_FALSE(nn::is_adapter(name));
}

}  // namespace
}  // namespace heddle::test
