#include "model.h"

#include <heddle/losses.h>
#include <heddle/ops.h>
#include <heddle/ops_llm.h>
#include <heddle/random.h>

namespace fable {
namespace {

using namespace heddle;

constexpr int kKeysOfBlock = 7;

/// [B, T, heads * D] -> [B, heads, T, D]
Array by_head(const Array& x, int heads) {
  return swapaxes(reshape(x, {x.shape(0), x.shape(1), heads, -1}), 1, 2);
}

/// The keys of part `index` where all parts have `count`.
Array keys_of(const Array& keys, int index, int count) {
  return slice(keys, {index * count, 0}, {(index + 1) * count, 2});
}

}  // namespace

Block::Block(const ModelShape& s, const Array& keys)
    : attn_norm(s.n_embd, s.rms_eps),
      ffn_norm(s.n_embd, s.rms_eps),
      attn_q(s.n_embd, s.n_head * s.n_embd_head(), take(keys, 0, 0)),
      attn_k(s.n_embd, s.n_head_kv * s.n_embd_head(), take(keys, 1, 0)),
      attn_v(s.n_embd, s.n_head_kv * s.n_embd_head(), take(keys, 2, 0)),
      attn_output(s.n_head * s.n_embd_head(), s.n_embd, take(keys, 3, 0), false),
      ffn_gate(s.n_embd, s.n_ff, take(keys, 4, 0), false),
      ffn_up(s.n_embd, s.n_ff, take(keys, 5, 0), false),
      ffn_down(s.n_ff, s.n_embd, take(keys, 6, 0), false) {}

Array Block::attention(const Array& x, const ModelShape& shape) const {
  const auto turned = [&](const Array& heads) {
    return fast::rope(heads, shape.n_embd_head(), false, shape.rope_base, 1.0f, 0);
  };
  const Array q = turned(by_head(attn_q(x), shape.n_head)),
              k = turned(by_head(attn_k(x), shape.n_head_kv)),
              v = by_head(attn_v(x), shape.n_head_kv);
  const Array attended = fast::scaled_dot_product_attention(q, k, v, std::nullopt, "causal");
  return attn_output(reshape(swapaxes(attended, 1, 2), {x.shape(0), x.shape(1), -1}));
}

Array Block::operator()(const Array& x, const ModelShape& shape) const {
  const Array attended = x + attention(attn_norm(x), shape);
  const Array normed = ffn_norm(attended);
  return attended + ffn_down(gated_multiply(ffn_gate(normed), ffn_up(normed)));
}

Model::Model(const ModelShape& model_shape, std::uint64_t seed)
    : shape(model_shape),
      token_embd(shape.n_vocab, shape.n_embd, random::key(seed)),
      output_norm(shape.n_embd, shape.rms_eps) {
  const auto [unused, rest] = random::split(random::key(seed));
  const Array keys = random::split(rest, shape.n_layer * kKeysOfBlock);
  for (int i = 0; i < shape.n_layer; ++i) blk.emplace_back(shape, keys_of(keys, i, kKeysOfBlock));
}

Array Model::logits(const Array& tokens) const {
  Array x = token_embd(tokens);
  for (const Block& block : blk) x = block(x, shape);
  return token_embd.as_linear(output_norm(x));
}

Array Model::loss(const Array& tokens) const {
  const std::int64_t rows = tokens.shape(0), length = tokens.shape(1) - 1;
  const Array inputs = slice(tokens, {0, 0}, {rows, length}),
              targets = slice(tokens, {0, 1}, {rows, length + 1});
  return nn::losses::cross_entropy(logits(inputs), targets, std::nullopt, -1, 0.0f,
                                   nn::losses::Reduction::mean);
}

std::int64_t parameter_count(const Model& model) {
  std::int64_t count = 0;
  for (const auto& [name, array] : nn::parameters(model)) count += array.size();
  return count;
}

}  // namespace fable
