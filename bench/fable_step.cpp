#include "fable_step.h"

#include <utility>

#include "heddle/compile.h"
#include "heddle/gguf.h"
#include "heddle/ops.h"

namespace heddle::bench {

namespace {

constexpr float kRate = 1e-3f, kDecay = 0.01f, kBeta1 = 0.9f, kBeta2 = 0.999f, kEps = 1e-8f;
constexpr float kLargestNorm = 1.0f;

Array linear(const Weights& weights, const std::string& name, const Array& x) {
  const Array y = matmul(x, transpose(weights.at(name + ".weight")));
  const auto bias = weights.find(name + ".bias");
  return bias == weights.end() ? y : y + bias->second;
}

/// [B, T, H * D] -> [B, H, T, D]
Array split_heads(const Array& x, std::int64_t heads) {
  const std::int64_t features = x.shape(-1) / heads;
  return swapaxes(reshape(x, {x.shape(0), x.shape(1), heads, features}), 1, 2);
}

Array self_attention(const FableShape& shape, const Weights& w, const std::string& block,
                     const Array& x) {
  const auto turned = [&](const Array& y) {
    const auto features = static_cast<int>(y.shape(-1));
    return fast::rope(y, features, false, shape.rope_base, 1.0f, 0);
  };
  const Array q = turned(split_heads(linear(w, block + "attn_q", x), shape.heads));
  const Array k = turned(split_heads(linear(w, block + "attn_k", x), shape.kv_heads));
  const Array v = split_heads(linear(w, block + "attn_v", x), shape.kv_heads);
  const Array out = fast::scaled_dot_product_attention(q, k, v, std::nullopt, "causal");
  return linear(w, block + "attn_output", reshape(swapaxes(out, 1, 2), x.shape()));
}

Array mlp(const Weights& w, const std::string& block, const Array& x) {
  const Array gate = linear(w, block + "ffn_gate", x), up = linear(w, block + "ffn_up", x);
  return linear(w, block + "ffn_down", gated_multiply(gate, up));
}

Array logits(const FableShape& shape, const Weights& w, const Array& tokens) {
  const Array& embedding = w.at("token_embd.weight");
  Array x = take(embedding, tokens, 0);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    const auto normed = [&](const char* name) {
      return fast::rms_norm(x, w.at(block + name), shape.eps);
    };
    x = x + self_attention(shape, w, block, normed("attn_norm.weight"));
    x = x + mlp(w, block, normed("ffn_norm.weight"));
  }
  x = fast::rms_norm(x, w.at("output_norm.weight"), shape.eps);
  return matmul(x, transpose(embedding));
}

Array clip_scale(const std::vector<Array>& gradients) {
  std::vector<Array> squares;
  for (const Array& g : gradients) squares.push_back(sum(square(g)));
  const Array norm = sqrt(sum(stack(squares)));
  return minimum(Array(1.0f), Array(kLargestNorm) / (norm + 1e-6f));
}

}  // namespace

Fable read_fable(const std::filesystem::path& path) {
  const gguf::File file = gguf::File::open(path);
  const gguf::Metadata& about = file.metadata();
  Fable fable{{about.get_int("qwen2.block_count"), about.get_int("qwen2.attention.head_count"),
               about.get_int("qwen2.attention.head_count_kv"),
               static_cast<float>(about.get_float("qwen2.attention.layer_norm_rms_epsilon")),
               static_cast<float>(about.get_float("qwen2.rope.freq_base"))},
              {}};
  for (const gguf::Tensor& tensor : file.tensors()) {
    const Array stored = Array::from_bytes({tensor.dtype, tensor.shape}, tensor.data);
    fable.weights.emplace(tensor.name, astype(stored, DType::f32));
  }
  return fable;
}

Array fable_loss(const FableShape& shape, const Weights& weights, const Array& tokens,
                 const Array& targets) {
  const Array scores = logits(shape, weights, tokens);
  const Array chosen = squeeze(take_along_axis(scores, expand_dims(targets, -1), -1), Dims{-1});
  return mean(logsumexp(scores, -1) - chosen);
}

Training::Training(Fable fable) : model(std::move(fable)) {
  for (const auto& [name, weight] : model.weights) state.push_back(weight);
  for (int moment = 0; moment < 2; ++moment) {
    for (const auto& [name, weight] : model.weights) state.push_back(zeros_like(weight));
  }
  state.emplace_back(0.0f);
  eval(state);
}

ArraysFunction training_step(Training& training) {
  std::vector<Array*> states;
  for (Array& array : training.state) states.push_back(&array);
  const auto step = [&training](const std::vector<Array>& batch) {
    const std::size_t count = training.model.weights.size();
    std::vector<Array>& state = training.state;
    Weights weights = training.model.weights;
    auto next = state.begin();
    for (auto& [name, weight] : weights) weight = *next++;
    const auto loss = [&](const Weights& w) {
      return fable_loss(training.model.shape, w, batch[0], batch[1]);
    };
    const auto [value, gradients] = value_and_grad(loss, weights);
    const std::vector<Array> slopes = leaves_of(gradients);
    const Array scale = clip_scale(slopes);
    Array& steps = state[3 * count];
    steps = steps + 1.0f;
    const Array unbias1 = 1.0f / (1.0f - power(Array(kBeta1), steps));
    const Array unbias2 = 1.0f / (1.0f - power(Array(kBeta2), steps));
    for (std::size_t i = 0; i < count; ++i) {
      Array &w = state[i], &m = state[count + i], &v = state[2 * count + i];
      const Array g = slopes[i] * scale;
      m = m * kBeta1 + g * (1.0f - kBeta1);
      v = v * kBeta2 + square(g) * (1.0f - kBeta2);
      const Array change = m * unbias1 / (sqrt(v * unbias2) + kEps);
      w = w * (1.0f - kRate * kDecay) - change * kRate;
    }
    return std::vector<Array>{value};
  };
  return compile(step, false, states);
}

}  // namespace heddle::bench
