// The models as Array code.
#include <cmath>
#include <optional>

#include "heddle/llm.h"
#include "heddle/ops.h"
#include "llm/tensors.h"

namespace heddle::llm {

namespace {

/// The scope of a part's device; nothing for null.
class PartScope {
 public:
  explicit PartScope(Device* device) {
    if (device) scope_.emplace(*device);
  }

 private:
  std::optional<DeviceScope> scope_;
};

/// One layer's share of `forward`.
class Layer {
 public:
  Layer(const ModelConfig& config, const std::function<Array(const std::string&)>& weight,
        const BatchArrays& batch, std::int64_t block_size, std::int64_t index)
      : config_(config), weight_(weight), batch_(batch), block_size_(block_size), index_(index) {}

  Array run(const Array& x, Array& keys, Array& values) const {
    const Array attended = x + attention(norm(x, "attn_norm.weight"), keys, values);
    return attended + feed_forward(norm(attended, "ffn_norm.weight"));
  }

 private:
  Array matrix(const char* name) const { return weight_(layer_tensor(index_, name)); }
  Array vector(const char* name) const { return astype(matrix(name), DType::f32); }

  Array norm(const Array& x, const char* name) const {
    return fast::rms_norm(x, vector(name), config_.rms_eps);
  }

  /// [T, heads * D] as [T, heads, D], with the bias added.
  Array heads(const Array& x, std::int64_t count, const char* bias) const {
    const Array biased = config_.has_qkv_bias ? x + vector(bias) : x;
    return reshape(biased, {x.shape(0), count, config_.n_embd_head});
  }

  Array turned(const Array& x, const char* norm_name) const {
    const Array normed = config_.has_qk_norm ? norm(x, norm_name) : x;
    std::optional<Array> factors;
    if (config_.rope.has_factors) factors = astype(weight_("rope_freqs.weight"), DType::f32);
    return rope(normed, batch_.positions, config_.rope, factors);
  }

  Array attention(const Array& x, Array& keys, Array& values) const {
    const std::vector<Array> qkv =
        linear(x, {matrix("attn_q.weight"), matrix("attn_k.weight"), matrix("attn_v.weight")});
    const Array q = turned(heads(qkv[0], config_.n_head, "attn_q.bias"), "attn_q_norm.weight");
    const Array k = turned(heads(qkv[1], config_.n_head_kv, "attn_k.bias"), "attn_k_norm.weight");
    const Array v = heads(qkv[2], config_.n_head_kv, "attn_v.bias");
    keys = write_rows(std::move(keys), k, batch_.rows);
    values = write_rows(std::move(values), v, batch_.rows);
    const Attend params{.scale = 1.0f / std::sqrt(static_cast<float>(config_.n_embd_head)),
                        .block_size = block_size_,
                        .window = config_.window};
    const Array attended = attend(q, keys, values, batch_.block_table, batch_.seq, batch_.positions,
                                  batch_.lengths, params);
    // Made by statements of its own: nodes are numbered as they are made, and compilers differ in
    // the order of arguments.
    const Array output = matrix("attn_output.weight");
    const Array projected =
        linear(reshape(attended, {x.shape(0), config_.n_head * config_.n_embd_head}), output);
    return config_.has_output_bias ? projected + vector("attn_output.bias") : projected;
  }

  Array feed_forward(const Array& x) const {
    const std::vector<Array> gate_up =
        linear(x, {matrix("ffn_gate.weight"), matrix("ffn_up.weight")});
    const Array down = matrix("ffn_down.weight");
    return linear(silu(gate_up[0]) * gate_up[1], down);
  }

  const ModelConfig& config_;
  const std::function<Array(const std::string&)>& weight_;
  const BatchArrays& batch_;
  std::int64_t block_size_, index_;
};

}  // namespace

Array hidden_rows(const ModelConfig& config, const std::function<Array(const std::string&)>& weight,
                  const BatchArrays& batch, std::int64_t block_size, std::vector<Array>& keys,
                  std::vector<Array>& values, const LayerDevices& devices) {
  Array x = [&] {
    const PartScope scope(devices.embedding);
    // At once as f32: `take` would give halves, which some devices cannot store.
    return apply(GatherRows{DType::f32}, {weight("token_embd.weight"), batch.tokens});
  }();
  for (std::int64_t l = 0; l < config.n_layer; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const PartScope scope(devices.layers.empty() ? nullptr : devices.layers[i]);
    x = Layer(config, weight, batch, block_size, l).run(x, keys[i], values[i]);
  }
  const PartScope scope(devices.output);
  const Array wanted = take(x, batch.output_rows, 0);
  return fast::rms_norm(wanted, astype(weight("output_norm.weight"), DType::f32), config.rms_eps);
}

Array forward(const ModelConfig& config, const std::function<Array(const std::string&)>& weight,
              const BatchArrays& batch, std::int64_t block_size, std::vector<Array>& keys,
              std::vector<Array>& values, const LayerDevices& devices) {
  const Array rows = hidden_rows(config, weight, batch, block_size, keys, values, devices);
  const PartScope scope(devices.output);
  return linear(rows, weight(config.tied_output ? "token_embd.weight" : "output.weight"));
}

}  // namespace heddle::llm
