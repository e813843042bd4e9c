// The model that is trained: qwen2's architecture, as a plain tree of modules whose names are those
// of a GGUF file's tensors ("blk.0.attn_q.weight").
#pragma once

#include <heddle/nn.h>

#include <vector>

namespace fable {

/// The default has 0.87 million parameters with a vocabulary of a thousand tokens.
struct ModelShape {
  int n_vocab = 0;
  int n_embd = 128;
  int n_layer = 4;
  int n_head = 4, n_head_kv = 2;
  int n_ff = 352;
  int n_ctx = 512;  // positions that the file says the model was made for
  float rms_eps = 1e-6f;
  float rope_base = 10000.0f;

  int n_embd_head() const { return n_embd / n_head; }
};

struct Block {
  heddle::nn::RMSNorm attn_norm, ffn_norm;
  heddle::nn::Linear attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down;

  /// `keys`: u32 [7, 2]
  Block(const ModelShape& shape, const heddle::Array& keys);
  /// x [B, T, n_embd]
  heddle::Array operator()(const heddle::Array& x, const ModelShape& shape) const;

  auto leaves() const {
    return heddle::nn::named("attn_norm", attn_norm, "ffn_norm", ffn_norm, "attn_q", attn_q,
                             "attn_k", attn_k, "attn_v", attn_v, "attn_output", attn_output,
                             "ffn_gate", ffn_gate, "ffn_up", ffn_up, "ffn_down", ffn_down);
  }

 private:
  heddle::Array attention(const heddle::Array& x, const ModelShape& shape) const;
};

struct Model {
  ModelShape shape;
  heddle::nn::Embedding token_embd;  // the output layer too
  std::vector<Block> blk;
  heddle::nn::RMSNorm output_norm;

  /// Random weights.
  Model(const ModelShape& model_shape, std::uint64_t seed);
  /// tokens i32 [B, T] -> f32 [B, T, n_vocab]
  heddle::Array logits(const heddle::Array& tokens) const;
  /// The mean loss, in nats, of foretelling each of tokens[:, 1:] from those before it.
  heddle::Array loss(const heddle::Array& tokens) const;

  auto leaves() const {
    return heddle::nn::named("token_embd", token_embd, "blk", blk, "output_norm", output_norm);
  }
};

std::int64_t parameter_count(const Model& model);

}  // namespace fable
