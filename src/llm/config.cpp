// A model's configuration from GGUF metadata.
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "heddle/llm.h"
#include "llm/tensors.h"

namespace heddle::llm {

namespace {

// Far beyond any model, so that sums and products of them stay within int64.
constexpr std::int64_t kMostOfAnything = std::int64_t{1} << 31;

class Reader {
 public:
  explicit Reader(const gguf::File& file) : file_(file), meta_(file.metadata()) {}

  ModelConfig read() {
    read_architecture();
    read_sizes();
    read_heads();
    read_rope();
    read_tensor_facts();
    return config_;
  }

 private:
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", config_.architecture, name);
  }

  void require_sound(bool sound, std::string_view name, const std::string& value,
                     const char* expected) const {
    require(sound, ErrorCode::io, "{}: {} is {}; expected {}", file_.name(), key(name), value,
            expected);
  }

  std::int64_t positive(std::string_view name) const {
    const std::int64_t value = meta_.get_int(key(name));
    require_sound(0 < value && value < kMostOfAnything, name, std::to_string(value),
                  "a positive size");
    return value;
  }

  std::int64_t positive_or(std::string_view name, std::int64_t otherwise) const {
    return meta_.find(key(name)) ? positive(name) : otherwise;
  }

  void read_architecture() {
    config_.architecture = meta_.get_string("general.architecture");
    config_.name = meta_.find_string("general.name").value_or("");
    static const std::set<std::string> known{"llama", "qwen2", "qwen3"};
    require(known.contains(config_.architecture), ErrorCode::unsupported,
            "{}: general.architecture is '{}'; supported are llama, qwen2 and qwen3", file_.name(),
            config_.architecture);
    const std::int64_t experts = meta_.find_int(key("expert_count")).value_or(0);
    require(experts == 0, ErrorCode::unsupported,
            "{}: {} is {}; mixtures of experts are not supported", file_.name(),
            key("expert_count"), experts);
  }

  void read_sizes() {
    config_.n_ctx_train = positive("context_length");
    config_.n_embd = positive("embedding_length");
    config_.n_layer = positive("block_count");
    config_.n_ff = positive("feed_forward_length");
    config_.rms_eps = static_cast<float>(meta_.get_float(key("attention.layer_norm_rms_epsilon")));
    require_sound(std::isfinite(config_.rms_eps) && config_.rms_eps >= 0,
                  "attention.layer_norm_rms_epsilon", std::to_string(config_.rms_eps),
                  "a small positive number");
    config_.window = meta_.find_int(key("attention.sliding_window")).value_or(0);
    require_sound(config_.window >= 0, "attention.sliding_window", std::to_string(config_.window),
                  "0 or more");
    const Shape& embedding = file_.tensor("token_embd.weight").shape;
    require(embedding.size() == 2, ErrorCode::io,
            "{}: tensor 'token_embd.weight' is {}; expected [n_vocab, {}]", file_.name(),
            to_string(embedding), config_.n_embd);
    config_.n_vocab = embedding[0];
  }

  void read_heads() {
    config_.n_head = positive("attention.head_count");
    config_.n_head_kv = positive_or("attention.head_count_kv", config_.n_head);
    require_sound(config_.n_head % config_.n_head_kv == 0, "attention.head_count_kv",
                  std::to_string(config_.n_head_kv), "a divisor of attention.head_count");
    const bool has_length = meta_.find(key("attention.key_length")) != nullptr;
    require_sound(has_length || config_.n_embd % config_.n_head == 0, "attention.head_count",
                  std::to_string(config_.n_head), "a divisor of embedding_length");
    config_.n_embd_head = positive_or("attention.key_length", config_.n_embd / config_.n_head);
    const std::int64_t value_length = positive_or("attention.value_length", config_.n_embd_head);
    require(value_length == config_.n_embd_head, ErrorCode::unsupported,
            "{}: attention.value_length {} differs from attention.key_length {}", file_.name(),
            value_length, config_.n_embd_head);
  }

  void read_rope() {
    RopeAngles& rope = config_.rope;
    // llama's converter permutes q and k so that pairs are neighbours; qwen's files keep the
    // halves.
    rope.style = config_.architecture == "llama" ? RopeStyle::interleaved : RopeStyle::split_half;
    rope.dims = positive_or("rope.dimension_count", config_.n_embd_head);
    require_sound(rope.dims % 2 == 0 && rope.dims <= config_.n_embd_head, "rope.dimension_count",
                  std::to_string(rope.dims), "an even number, at most the head size");
    rope.base = static_cast<float>(meta_.find_float(key("rope.freq_base")).value_or(10000.0));
    require_sound(std::isfinite(rope.base) && rope.base > 1, "rope.freq_base",
                  std::to_string(rope.base), "a number above 1");
    rope.scale = static_cast<float>(1.0 / scaling_factor());
    rope.has_factors = file_.find_tensor("rope_freqs.weight") != nullptr;
  }

  /// How much longer linear scaling makes the context. llama-3's scaling comes as
  /// rope_freqs.weight.
  double scaling_factor() const {
    const std::string type(meta_.find_string(key("rope.scaling.type")).value_or(""));
    double factor = meta_.find_float(key("rope.scale_linear")).value_or(1.0);
    if (type == "linear") factor = meta_.get_float(key("rope.scaling.factor"));
    require(type.empty() || type == "none" || type == "linear" || type == "llama3",
            ErrorCode::unsupported, "{}: {} is '{}'; supported are none, linear and llama3",
            file_.name(), key("rope.scaling.type"), type);
    require_sound(std::isfinite(factor) && factor > 0, "rope.scaling.factor",
                  std::to_string(factor), "a positive number");
    return factor;
  }

  void read_tensor_facts() {
    config_.has_qkv_bias = file_.find_tensor(layer_tensor(0, "attn_q.bias")) != nullptr;
    config_.has_output_bias = file_.find_tensor(layer_tensor(0, "attn_output.bias")) != nullptr;
    config_.has_qk_norm = file_.find_tensor(layer_tensor(0, "attn_q_norm.weight")) != nullptr;
    config_.tied_output = file_.find_tensor("output.weight") == nullptr;
  }

  const gguf::File& file_;
  const gguf::Metadata& meta_;
  ModelConfig config_;
};

bool suits(TensorUse use, DType dtype) {
  const bool plain = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return plain || (use == TensorUse::matrix && is_block(dtype));
}

/// Every tensor is there, of its shape and of a type its place can take, and none is left over: one
/// that goes unused would make the model another.
void check_tensors(const gguf::File& file, const ModelConfig& config) {
  std::set<std::string_view> used;
  const std::vector<ExpectedTensor> expected = expected_tensors(config);
  for (const ExpectedTensor& e : expected) {
    const gguf::Tensor& tensor = file.tensor(e.name);
    require(tensor.shape == e.shape, ErrorCode::io, "{}: tensor '{}' is {}; expected {}",
            file.name(), e.name, to_string(tensor.shape), to_string(e.shape));
    require(suits(e.use, tensor.dtype), ErrorCode::unsupported,
            "{}: tensor '{}' is of type {}, which its place cannot take", file.name(), e.name,
            to_string(tensor.dtype));
    used.insert(e.name);
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    require(used.contains(tensor.name), ErrorCode::unsupported,
            "{}: tensor '{}' is not one that a {} model has here", file.name(), tensor.name,
            config.architecture);
  }
}

}  // namespace

std::string layer_tensor(std::int64_t layer, std::string_view name) {
  std::string text = "blk." + std::to_string(layer);
  (text += '.') += name;
  return text;
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& c) {
  const std::int64_t q = c.n_head * c.n_embd_head, kv = c.n_head_kv * c.n_embd_head;
  constexpr auto kMatrix = TensorUse::matrix, kVector = TensorUse::vector;
  std::vector<ExpectedTensor> all{{"token_embd.weight", {c.n_vocab, c.n_embd}, kMatrix},
                                  {"output_norm.weight", {c.n_embd}, kVector}};
  if (!c.tied_output) all.push_back({"output.weight", {c.n_vocab, c.n_embd}, kMatrix});
  if (c.rope.has_factors) all.push_back({"rope_freqs.weight", {c.rope.dims / 2}, kVector});
  for (std::int64_t l = 0; l < c.n_layer; ++l) {
    const auto add = [&](const char* name, Shape shape, TensorUse use) {
      all.push_back({layer_tensor(l, name), shape, use});
    };
    add("attn_norm.weight", {c.n_embd}, kVector);
    add("attn_q.weight", {q, c.n_embd}, kMatrix);
    add("attn_k.weight", {kv, c.n_embd}, kMatrix);
    add("attn_v.weight", {kv, c.n_embd}, kMatrix);
    add("attn_output.weight", {c.n_embd, q}, kMatrix);
    if (c.has_qkv_bias) {
      add("attn_q.bias", {q}, kVector);
      add("attn_k.bias", {kv}, kVector);
      add("attn_v.bias", {kv}, kVector);
    }
    if (c.has_output_bias) add("attn_output.bias", {c.n_embd}, kVector);
    if (c.has_qk_norm) {
      add("attn_q_norm.weight", {c.n_embd_head}, kVector);
      add("attn_k_norm.weight", {c.n_embd_head}, kVector);
    }
    add("ffn_norm.weight", {c.n_embd}, kVector);
    add("ffn_gate.weight", {c.n_ff, c.n_embd}, kMatrix);
    add("ffn_up.weight", {c.n_ff, c.n_embd}, kMatrix);
    add("ffn_down.weight", {c.n_embd, c.n_ff}, kMatrix);
  }
  return all;
}

ModelConfig read_config(const gguf::File& file) {
  ModelConfig config = Reader(file).read();
  // A hostile block_count must not make a list of 2^31 names: each layer needs tensors of its own.
  require(config.n_layer <= static_cast<std::int64_t>(file.tensors().size()), ErrorCode::io,
          "{}: {}.block_count is {}, but the file has {} tensors", file.name(), config.architecture,
          config.n_layer, file.tensors().size());
  check_tensors(file, config);
  return config;
}

}  // namespace heddle::llm
