// Parts of transformers: attention and MLPs.
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "nn/check_sizes.h"

namespace heddle::nn {

namespace {

constexpr const char* kAttention = "nn::MultiHeadAttention";

AttentionOptions completed(AttentionOptions options, int dims, int heads) {
  require_positive(kAttention, {{"dims", dims}, {"heads", heads}});
  if (options.kv_heads == 0) options.kv_heads = heads;
  require(options.kv_heads > 0 && heads % options.kv_heads == 0, ErrorCode::invalid_argument,
          "{}: {} heads of keys and values do not divide {} heads", kAttention, options.kv_heads,
          heads);
  require(options.head_dims != 0 || dims % heads == 0, ErrorCode::invalid_argument,
          "{}: {} heads do not divide {} dims; head_dims can say how many each has", kAttention,
          heads, dims);
  if (options.head_dims == 0) options.head_dims = dims / heads;
  require_positive(kAttention, {{"head_dims", options.head_dims}});
  require(!options.rope_base || options.head_dims % 2 == 0, ErrorCode::invalid_argument,
          "{}: heads of {} features cannot turn; their number must be even", kAttention,
          options.head_dims);
  require(!options.rope_base || (std::isfinite(*options.rope_base) && *options.rope_base > 0),
          ErrorCode::invalid_argument, "{}: rope_base is {}; it must be positive", kAttention,
          options.rope_base.value_or(0));
  return options;
}

/// Key `which` of `count`.
Array nth_key(const Array& key, int count, int which) {
  return take(random::split(key, count), which, 0);
}

enum class Projection { q, k, v, o };

Linear projection(Projection which, int dims, int heads, const Array& key,
                  const AttentionOptions& given, Where where) {
  return within(kAttention, where, [&] {
    const AttentionOptions options = completed(given, dims, heads);
    const Array own = nth_key(key, 4, static_cast<int>(which));
    const int wide = heads * options.head_dims, narrow = options.kv_heads * options.head_dims;
    if (which == Projection::o) return Linear(wide, dims, own, options.out_bias);
    return Linear(dims, which == Projection::q ? wide : narrow, own, options.qkv_bias);
  });
}

/// x [..., dims] -> [B, heads, S, head_dims], turned by positions 0, 1, ... along S
struct Heads {
  const MultiHeadAttention& attention;

  Array operator()(const Array& projected, int heads, bool turns) const {
    const std::int64_t length = projected.shape(-2), width = attention.head_dims;
    const std::int64_t rows = heads * width * length;
    const std::int64_t batch = rows == 0 ? 0 : projected.size() / rows;
    Array x = projected;
    if (turns && attention.rope_base) {
      const Array time =
          broadcast_to(arange(0.0, static_cast<double>(length), DType::i32), {batch, length});
      const RopeAngles angles{
          attention.rope_traditional ? RopeStyle::interleaved : RopeStyle::split_half, width,
          *attention.rope_base};
      x = rope(reshape(x, {batch * length, heads, width}), flatten(time), angles);
    }
    return swapaxes(reshape(x, {batch, length, heads, width}), 1, 2);
  }
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(int dims, int head_count, const Array& key,
                                       const AttentionOptions& options, Where where)
    : q_proj(projection(Projection::q, dims, head_count, key, options, where)),
      k_proj(projection(Projection::k, dims, head_count, key, options, where)),
      v_proj(projection(Projection::v, dims, head_count, key, options, where)),
      o_proj(projection(Projection::o, dims, head_count, key, options, where)),
      heads(head_count),
      rope_base(options.rope_base),
      rope_traditional(options.rope_traditional) {
  const AttentionOptions all = completed(options, dims, heads);
  kv_heads = all.kv_heads;
  head_dims = all.head_dims;
}

Array MultiHeadAttention::operator()(const Arg& x, const std::string& mask_mode,
                                     const std::optional<Array>& mask,
                                     const random::Key& key) const {
  return within(kAttention, x, [&] { return (*this)(x, x, x, mask_mode, mask, key); });
}

Array MultiHeadAttention::operator()(const Arg& queries, const Arg& keys, const Arg& values,
                                     const std::string& mask_mode, const std::optional<Array>& mask,
                                     const random::Key& key) const {
  return within(kAttention, queries, [&] {
    for (const Arg* x : {&queries, &keys, &values}) {
      require(x->ndim() >= 2, ErrorCode::invalid_argument, "x is {}; it must be [..., S, dims]",
              x->spec());
    }
    Keys dropout(key);
    const Heads split{*this};
    const Array q = split(q_proj(queries, dropout.next()), heads, true);
    const Array k = split(k_proj(keys, dropout.next()), kv_heads, true);
    const Array v = split(v_proj(values, dropout.next()), kv_heads, false);
    const Array seen = fast::scaled_dot_product_attention(q, k, v, std::nullopt, mask_mode, mask);
    Shape shape = queries.shape();
    shape[shape.size() - 1] = std::int64_t{heads} * head_dims;
    return o_proj(reshape(swapaxes(seen, 1, 2), shape), dropout.next());
  });
}

namespace {

/// Layer `which` of `count` that share a key.
Linear part(const char* module, int in, int out, const Array& key, int count, int which, bool bias,
            Where where) {
  return within(module, where, [&] { return Linear(in, out, nth_key(key, count, which), bias); });
}

}  // namespace

MLP::MLP(int dims, int hidden_dims, const Array& key, UnaryKind kind, bool bias, Where where)
    : up_proj(part("nn::MLP", dims, hidden_dims, key, 2, 0, bias, where)),
      down_proj(part("nn::MLP", hidden_dims, dims, key, 2, 1, bias, where)),
      activation(kind) {}

Array MLP::operator()(const Arg& x, const random::Key& key) const {
  return within("nn::MLP", x, [&] {
    Keys dropout(key);
    const Array hidden = heddle::apply(Unary{activation}, {up_proj(x, dropout.next())});
    return down_proj(hidden, dropout.next());
  });
}

GatedMLP::GatedMLP(int dims, int hidden_dims, const Array& key, UnaryKind kind, bool bias,
                   Where where)
    : gate_proj(part("nn::GatedMLP", dims, hidden_dims, key, 3, 0, bias, where)),
      up_proj(part("nn::GatedMLP", dims, hidden_dims, key, 3, 1, bias, where)),
      down_proj(part("nn::GatedMLP", hidden_dims, dims, key, 3, 2, bias, where)),
      activation(kind) {}

Array GatedMLP::operator()(const Arg& x, const random::Key& key) const {
  return within("nn::GatedMLP", x, [&] {
    Keys dropout(key);
    const Array gate = gate_proj(x, dropout.next());
    const Array up = up_proj(x, dropout.next());
    return down_proj(gated_multiply(gate, up, activation), dropout.next());
  });
}

}  // namespace heddle::nn
