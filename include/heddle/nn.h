// Modules: plain structs of arrays and other modules, trees with names (heddle/nn_tree.h). They are
// made by constructors that take sizes and a random key (heddle/random.h), and called with arrays.
// Members may be read and replaced. Names follow mlx.nn, those of parts mlx-lm's and Hugging Face's
// models.
//
// Constructors throw invalid_argument for sizes that make no sense, calls for arrays that do not
// fit; both name the module and the sizes. A call changes nothing: any thread may make it.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <variant>

#include "heddle/nn_tree.h"
#include "heddle/op_math.h"
#include "heddle/random.h"

namespace heddle::nn {

using Where = std::source_location;  // of the call that errors name

/// x [..., in] -> x weight^T + bias [..., out]
struct Linear {
  Array weight;               // floating [out, in]
  std::optional<Array> bias;  // [out]

  /// Uniform within 1 / sqrt(input_dims).
  Linear(int input_dims, int output_dims, const Array& key, bool bias = true,
         Where where = Where::current());
  explicit Linear(Array weight, std::optional<Array> bias = std::nullopt);
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight, "bias", bias); }
};

/// Linear with a quantised weight, none of which trains.
struct QuantizedLinear {
  Array weight;                 // [out, in] of a block type, or codes of groups
  std::optional<Array> scales;  // with codes: see heddle/ops_quantized.h
  std::optional<Array> biases;  // with codes of "affine"
  std::optional<Array> bias;    // [out]
  std::optional<int> group_size, bits;
  std::string mode = "affine";

  /// In a block type (q4_K, q8_0, ...). Evaluates the weight.
  QuantizedLinear(const Linear& linear, DType block_type, Where where = Where::current());
  /// In groups, as `quantize` does it.
  explicit QuantizedLinear(const Linear& linear, std::optional<int> group_size = std::nullopt,
                           std::optional<int> bits = std::nullopt,
                           const std::string& mode = "affine", Where where = Where::current());
  /// A weight of a block type, as a GGUF file has it.
  explicit QuantizedLinear(Array weight, std::optional<Array> bias = std::nullopt);
  /// f32
  Array dequantized_weight() const;
  Array operator()(const Arg& x) const;
  auto leaves() const {
    return frozen(named("weight", weight, "scales", scales, "biases", biases, "bias", bias));
  }
};

/// Zeros with probability `p`, and the others divided by 1 - p; without a key, x itself. The same
/// key drops the same elements.
struct Dropout {
  float p;

  explicit Dropout(float p = 0.5f);
  Array operator()(const Arg& x, const random::Key& key = std::nullopt) const;
  std::tuple<> leaves() const { return {}; }
};

struct AnyLinear;

/// A frozen linear layer, and an adapter of low rank that trains:
/// linear(x) + scale * (dropout(x) lora_a) lora_b
struct LoRALinear {
  std::variant<Linear, QuantizedLinear> linear;
  Array lora_a;  // [in, rank], uniform within 1 / sqrt(in)
  Array lora_b;  // [rank, out], zeros
  float scale;
  Dropout dropout;

  /// `linear` must not have an adapter already.
  LoRALinear(const AnyLinear& linear, int rank, const Array& key, float scale = 20.0f,
             float dropout = 0.0f, Where where = Where::current());
  Array operator()(const Arg& x, const random::Key& key = std::nullopt) const;
  /// One layer that gives the same, but for dropout. Of a quantised one in f32: it can be quantised
  /// again.
  Linear fuse() const;
  auto leaves() const {
    return named("linear", frozen(alternatives(linear)), "lora_a", lora_a, "lora_b", lora_b);
  }
};
/// Whether a parameter is an adapter's by its name: `select(model, is_adapter)`.
bool is_adapter(const std::string& name);

/// Any linear layer: what larger modules are made of, so that one can be put in another's place.
struct AnyLinear {
  std::variant<Linear, QuantizedLinear, LoRALinear> layer;

  template <class T>
  requires std::is_constructible_v<decltype(layer), T> AnyLinear(T&& one)  // NOLINT: it is one
      : layer(std::forward<T>(one)) {}
  /// The key is for an adapter's dropout.
  Array operator()(const Arg& x, const random::Key& key = std::nullopt) const;
  auto leaves() const { return alternatives(layer); }
};

/// ids [...] -> rows [..., dims]
struct Embedding {
  Array weight;  // [num_embeddings, dims]

  /// Normal, with variance 1 / dims.
  Embedding(int num_embeddings, int dims, const Array& key, Where where = Where::current());
  explicit Embedding(Array weight);
  Array operator()(const Arg& ids) const;
  /// x weight^T: the output layer of models that share it.
  Array as_linear(const Arg& x) const;
  auto leaves() const { return named("weight", weight); }
};

// ---- Norms. Weights begin as ones, biases as zeros.
/// Over the last axis.
struct RMSNorm {
  Array weight;
  float eps;

  explicit RMSNorm(int dims, float eps = 1e-5f);
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight); }
};
/// Over the last axis.
struct LayerNorm {
  std::optional<Array> weight, bias;
  float eps;
  int dims;

  explicit LayerNorm(int dims, float eps = 1e-5f, bool affine = true, bool bias = true);
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight, "bias", bias); }
};
/// x [N, ..., dims]: groups of neighbouring channels, over all positions (MLX's with
/// pytorch_compatible).
struct GroupNorm {
  std::optional<Array> weight, bias;
  float eps;
  int num_groups, dims;

  GroupNorm(int num_groups, int dims, float eps = 1e-5f, bool affine = true);
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight, "bias", bias); }
};
/// x [N, ..., dims]: each channel of each n.
struct InstanceNorm : GroupNorm {
  explicit InstanceNorm(int dims, float eps = 1e-5f, bool affine = false);
};

// ---- Convolutions. Weights are uniform within 1 / sqrt(number of terms), biases begin as zeros.
struct Conv1dOptions {
  int stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
/// x [N, L, in] -> [N, L', out]
struct Conv1d {
  Array weight;  // [out, kernel, in / groups]
  std::optional<Array> bias;
  Conv1dOptions options;

  Conv1d(int in_channels, int out_channels, int kernel_size, const Array& key,
         const Conv1dOptions& options = {}, Where where = Where::current());
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight, "bias", bias); }
};
struct Conv2dOptions {
  std::pair<int, int> stride{1, 1}, padding{0, 0}, dilation{1, 1};  // of height and width
  int groups = 1;
  bool bias = true;
};
/// x [N, H, W, in] -> [N, H', W', out]
struct Conv2d {
  Array weight;  // [out, kernel height, kernel width, in / groups]
  std::optional<Array> bias;
  Conv2dOptions options;

  Conv2d(int in_channels, int out_channels, const std::pair<int, int>& kernel_size,
         const Array& key, const Conv2dOptions& options = {}, Where where = Where::current());
  Array operator()(const Arg& x) const;
  auto leaves() const { return named("weight", weight, "bias", bias); }
};

// ---- Parts of transformers

struct AttentionOptions {
  int kv_heads = 0;   // heads of keys and values, which as many query heads share each; 0: heads
  int head_dims = 0;  // 0: dims / heads
  bool qkv_bias = false;
  bool out_bias = false;
  std::optional<float> rope_base;  // without one, nothing turns
  bool rope_traditional = false;   // pairs (2i, 2i + 1), not (i, i + head_dims / 2)
};
/// x [..., S, dims] -> [..., S, dims]. `mask_mode` and `mask` are as in
/// fast::scaled_dot_product_attention, of [batch, heads, S, S]: attention(x, "causal").
struct MultiHeadAttention {
  AnyLinear q_proj, k_proj, v_proj, o_proj;
  int heads, kv_heads, head_dims;
  std::optional<float> rope_base;
  bool rope_traditional;

  MultiHeadAttention(int dims, int heads, const Array& key, const AttentionOptions& options = {},
                     Where where = Where::current());
  /// The key is for adapters' dropout.
  Array operator()(const Arg& x, const std::string& mask_mode = "",
                   const std::optional<Array>& mask = std::nullopt,
                   const random::Key& key = std::nullopt) const;
  /// Of other things: queries [..., S, dims], keys and values [..., T, dims].
  Array operator()(const Arg& queries, const Arg& keys, const Arg& values,
                   const std::string& mask_mode = "",
                   const std::optional<Array>& mask = std::nullopt,
                   const random::Key& key = std::nullopt) const;
  auto leaves() const {
    return named("q_proj", q_proj, "k_proj", k_proj, "v_proj", v_proj, "o_proj", o_proj);
  }
};

/// down(activation(up(x)))
struct MLP {
  AnyLinear up_proj, down_proj;
  UnaryKind activation;

  MLP(int dims, int hidden_dims, const Array& key, UnaryKind activation = UnaryKind::gelu,
      bool bias = true, Where where = Where::current());
  Array operator()(const Arg& x, const random::Key& key = std::nullopt) const;
  auto leaves() const { return named("up_proj", up_proj, "down_proj", down_proj); }
};
/// down(activation(gate(x)) * up(x)): with silu, SwiGLU.
struct GatedMLP {
  AnyLinear gate_proj, up_proj, down_proj;
  UnaryKind activation;

  GatedMLP(int dims, int hidden_dims, const Array& key, UnaryKind activation = UnaryKind::silu,
           bool bias = false, Where where = Where::current());
  Array operator()(const Arg& x, const random::Key& key = std::nullopt) const;
  auto leaves() const {
    return named("gate_proj", gate_proj, "up_proj", up_proj, "down_proj", down_proj);
  }
};

}  // namespace heddle::nn
