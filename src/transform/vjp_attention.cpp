// Rotary positions, attention and state spaces backwards.
#include <algorithm>

#include "base/check.h"
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// The two features of each pair that turns, and what stays.
struct Pairs {
  Array first, second, rest;
};

Pairs pairs_of(const Array& x, RopeStyle style, std::int64_t dims) {
  const std::int64_t half = dims / 2;
  const auto features = [&](std::int64_t from, std::int64_t to, std::int64_t step) {
    Dims start(x.ndim(), 0), stop = x.shape(), strides(x.ndim(), 1);
    start[x.ndim() - 1] = from;
    stop[x.ndim() - 1] = to;
    strides[x.ndim() - 1] = step;
    return slice(x, start, stop, strides);
  };
  const Array rest = features(dims, x.shape().back(), 1);
  if (style == RopeStyle::split_half) return {features(0, half, 1), features(half, dims, 1), rest};
  return {features(0, dims, 2), features(1, dims, 2), rest};
}

/// Cosine and sine tables' cotangents: what a turn by each row's angle was given, over its heads.
std::pair<Array, Array> turn_vjp(const RopeTable& op, const Array& x, const Array& g,
                                 std::int64_t dims) {
  const Pairs from = pairs_of(x, op.style, dims), to = pairs_of(g, op.style, dims);
  return {sum(to.first * from.first + to.second * from.second, 1),
          sum(to.second * from.first - to.first * from.second, 1)};
}

/// q, k, v as [B, H, S, D].
Array heads_first(const Array& x, bool sequence_first) {
  return sequence_first ? swapaxes(x, 1, 2) : x;
}

/// Which keys a query sees, [Sq, Sk]: query i stands at Sk - Sq + i.
Array sees(const Attention& op, std::int64_t queries, std::int64_t keys) {
  const Array at =
      heddle::apply(Arange{static_cast<double>(keys - queries), 1, queries, DType::i64}, {});
  const Array row = reshape(at, {queries, 1});
  const Array key = reshape(heddle::apply(Arange{0, 1, keys, DType::i64}, {}), {1, keys});
  const Array past = key <= row;
  return op.window > 0 ? logical_and(past, key > row - Array(op.window)) : past;
}

Array masked_scores(const Attention& op, const Array& scores, const std::vector<Array>& in) {
  const Array lowest = scalar(-std::numeric_limits<double>::infinity(), scores.dtype());
  switch (op.mask) {
    case Attention::Mask::none:
      return scores;
    case Attention::Mask::causal:
      return where(sees(op, scores.shape(-2), scores.shape(-1)), scores, lowest);
    case Attention::Mask::boolean:
      return where(in[3], scores, lowest);
    case Attention::Mask::additive:
      return scores + astype(in[3], scores.dtype());
  }
  return scores;
}

/// A head's sink is one more score, whose weight goes nowhere.
Array attention_weights(const Attention& op, const Array& all_scores,
                        const std::vector<Array>& in) {
  if (op.mask == Attention::Mask::causal && op.window == 0 && !op.has_sinks) {
    return heddle::apply(CausalSoftmax{}, {all_scores});
  }
  const Array scores = masked_scores(op, all_scores, in);
  if (!op.has_sinks) return heddle::apply(Softmax{}, {scores});
  Shape column = scores.shape();
  column[3] = 1;
  const Array sinks = reshape(astype(in.back(), scores.dtype()), {1, scores.shape(1), 1, 1});
  const Array all =
      heddle::apply(Softmax{}, {concatenate({scores, broadcast_to(sinks, column)}, -1)});
  return slice(all, {0, 0, 0, 0}, scores.shape());
}

/// softmax(q k^T * scale + mask) v. A row that sees nothing has weights of zero. The rows of query
/// heads that share one of k and v make one matrix.
Array plain_attention(const Attention& op, const std::vector<Array>& in) {
  const Array q = heads_first(widened(in[0]), op.sequence_first);
  const Array k = heads_first(widened(in[1]), op.sequence_first);
  const Array v = heads_first(widened(in[2]), op.sequence_first);
  const std::int64_t batch = q.shape(0), heads = q.shape(1), queries = q.shape(2);
  const std::int64_t shared = k.shape(1), keys = k.shape(2);
  const std::int64_t rows = shared == 0 ? 0 : heads / shared * queries;
  const Array scaled = reshape(q * scalar(op.scale, q.dtype()), {batch, shared, rows, q.shape(3)});
  const Array scores = reshape(matmul(scaled, swapaxes(k, -1, -2)), {batch, heads, queries, keys});
  const Array weights = reshape(attention_weights(op, scores, in), {batch, shared, rows, keys});
  const Array out = reshape(matmul(weights, v), {batch, heads, queries, v.shape(3)});
  return astype(heads_first(out, op.sequence_first), in[0].dtype());
}

// ---- Attention backwards, a block of queries at a time

/// Queries [begin, end), and keys [first, last): all that any of them sees.
struct QueryBlock {
  std::int64_t begin, end, first, last;
};

/// What a causal mask hides from all of a block is not computed: smaller blocks hide more, and do
/// less at once.
std::vector<QueryBlock> query_blocks(const Attention& op, std::int64_t queries, std::int64_t keys) {
  constexpr std::int64_t kLeastQueries = 32, kMostBlocks = 8;
  if (op.mask != Attention::Mask::causal || queries == 0) return {{0, queries, 0, keys}};
  const std::int64_t size = std::max(kLeastQueries, (queries + kMostBlocks - 1) / kMostBlocks);
  const std::int64_t shift = keys - queries;  // from a query's number to its position
  std::vector<QueryBlock> blocks;
  for (std::int64_t begin = 0; begin < queries; begin += size) {
    QueryBlock block{begin, std::min(begin + size, queries), 0, 0};
    block.last = std::clamp<std::int64_t>(shift + block.end, 0, keys);
    if (op.window > 0) {
      block.first = std::clamp<std::int64_t>(shift + begin + 1 - op.window, 0, block.last);
    }
    blocks.push_back(block);
  }
  return blocks;
}

/// Parts [B, H, n, D], one after another along n. They lie in memory as models hold them, tokens
/// before heads.
Array joined(const std::vector<Array>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Array> by_token;
  for (const Array& part : parts) by_token.push_back(swapaxes(part, 1, 2));
  return swapaxes(concatenate(by_token, 1), 1, 2);
}

/// Positions [begin, end) of x [B, H, S, D].
Array positions_of(const Array& x, std::int64_t begin, std::int64_t end) {
  return slice(x, {0, 0, begin, 0}, {x.shape(0), x.shape(1), end, x.shape(3)});
}

/// The sum of parts [B, H, n, D] that each lie on the keys of their block, of `keys` in all.
Array summed_over_keys(const std::vector<QueryBlock>& blocks, const std::vector<Array>& parts,
                       std::int64_t keys) {
  std::vector<std::int64_t> bounds{0, keys};
  for (const QueryBlock& block : blocks) {
    bounds.push_back(block.first);
    bounds.push_back(block.last);
  }
  std::ranges::sort(bounds);
  bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
  std::vector<Array> segments;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    std::optional<Array> sum;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::int64_t first = blocks[i].first;
      if (bounds[s] < first || bounds[s + 1] > blocks[i].last) continue;
      const Array part = positions_of(parts[i], bounds[s] - first, bounds[s + 1] - first);
      sum = sum ? *sum + part : part;
    }
    const Array& like = parts[0];
    segments.push_back(
        sum ? *sum
            : zeros({like.shape(0), like.shape(1), bounds[s + 1] - bounds[s], like.shape(3)},
                    like.dtype()));
  }
  return segments.empty() ? parts[0] : joined(segments);
}

/// Of q, k and v: with weights P = softmax(S) of scores S, and dP = g v^T,
///   dS = P (dP - D) scale,  dq = dS k,  dk = dS^T q,  dv = P^T g,
/// where D, a row's sum of P dP, is that of g times the row's result.
class AttentionBack {
 public:
  AttentionBack(const Attention& op, const Backward& b)
      : op_(op),
        in_(b.in.begin(), b.in.end()),
        q_(heads_first(widened(b.in[0]), op.sequence_first)),
        k_(heads_first(widened(b.in[1]), op.sequence_first)),
        v_(heads_first(widened(b.in[2]), op.sequence_first)),
        g_(heads_first(widened(b.g()), op.sequence_first)),
        along_(sum_of_products(g_, heads_first(widened(b.out[0]), op.sequence_first))),
        scale_(scalar(op.scale, q_.dtype())),
        scaled_k_(k_ * scale_) {}

  std::vector<Array> cotangents() {
    const std::int64_t keys = k_.shape(2);
    const std::vector<QueryBlock> blocks = query_blocks(op_, q_.shape(2), keys);
    for (const QueryBlock& block : blocks) add(block);
    return {joined(to_q_), summed_over_keys(blocks, to_k_, keys),
            summed_over_keys(blocks, to_v_, keys)};
  }

 private:
  /// The rows of query heads that share one of k and v make one matrix.
  Array by_shared(const Array& x) const {
    const std::int64_t shared = k_.shape(1), queries = x.shape(2);
    const std::int64_t rows = shared == 0 ? 0 : q_.shape(1) / shared * queries;
    return reshape(x, {x.shape(0), shared, rows, x.shape(3)});
  }
  Array by_head(const Array& x, std::int64_t queries) const {
    return reshape(x, {q_.shape(0), q_.shape(1), queries, x.shape(3)});
  }

  void add(const QueryBlock& block) {
    const std::int64_t queries = block.end - block.begin;
    const auto of_queries = [&](const Array& x) { return positions_of(x, block.begin, block.end); };
    const auto of_keys = [&](const Array& x) { return positions_of(x, block.first, block.last); };
    const Array q = by_shared(of_queries(q_)), g = by_shared(of_queries(g_));
    const Array scores = by_head(matmul(q, swapaxes(of_keys(scaled_k_), -1, -2)), queries);
    const Array weights = attention_weights(op_, scores, in_);
    const Array to_weights = by_head(matmul(g, swapaxes(of_keys(v_), -1, -2)), queries);
    const Array to_scores = by_shared(weights * ((to_weights - of_queries(along_)) * scale_));
    to_q_.push_back(by_head(matmul(to_scores, of_keys(k_)), queries));
    to_k_.push_back(matmul(swapaxes(to_scores, -1, -2), q));
    to_v_.push_back(matmul(swapaxes(by_shared(weights), -1, -2), g));
  }

  const Attention& op_;
  const std::vector<Array> in_;
  const Array q_, k_, v_, g_, along_, scale_, scaled_k_;
  std::vector<Array> to_q_, to_k_, to_v_;  // by block
};

/// One step after another, of h [B, D, N].
std::vector<Array> plain_scan(const SelectiveScan& op, const std::vector<Array>& in) {
  const Array &x = in[0], &dt = in[1], &a = in[2];
  Array state = op.has_d ? in[6] : in[5];
  const std::int64_t steps = x.shape(1), features = x.shape(2);
  const std::int64_t groups = in[3].shape(2);
  const auto at = [](const Array& all, std::int64_t t) {
    Dims start(all.ndim(), 0), stop = all.shape();
    start[1] = t;
    stop[1] = t + 1;
    return squeeze(slice(all, start, stop), Dims{1});
  };
  const auto of_features = [&](const Array& all, std::int64_t t) {
    return repeat(at(all, t), static_cast<int>(features / groups), 1);
  };
  std::vector<Array> outputs;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Array now = at(dt, t), input = at(x, t);
    state = exp(expand_dims(now, -1) * a) * state +
            expand_dims(now * input, -1) * of_features(in[3], t);
    Array y = sum(state * of_features(in[4], t), -1);
    if (op.has_d) y = y + in[5] * input;
    outputs.push_back(y);
  }
  return {steps == 0 ? zeros_like(x) : stack(outputs, 1), state};
}

}  // namespace

InputCotangents vjp_rule(const Rope& op, const Backward& b) {
  const std::size_t positions = 1 + std::size_t{op.has_bias};
  require(!op.angles.has_factors || !b.wanted[positions + 1], ErrorCode::unsupported,
          "vjp: rope has no derivative by its frequency factors");
  Rope back{op.angles, false};
  back.angles.scale = -op.angles.scale;
  std::vector<Array> inputs{b.g(), b.in[positions]};
  if (op.angles.has_factors) inputs.push_back(b.in[positions + 1]);
  const Array to_x = heddle::apply(back, std::move(inputs));
  InputCotangents found(b.in.size());
  found[0] = to_x;
  if (op.has_bias) {
    const Array sums = reshape(sum(widened(to_x), 0), b.in[1].shape());
    found[1] = astype(sums, b.in[1].dtype());
  }
  return found;
}

InputCotangents vjp_rule(const RopeTable& op, const Backward& b) {
  const Array &x = b.in[0], &cosines = b.in[1], &sines = b.in[2];
  std::vector<Array> inputs{b.g(), cosines, -sines};
  if (op.by_position) inputs.push_back(b.in[3]);
  InputCotangents found(b.in.size());
  found[0] = heddle::apply(op, std::move(inputs));
  if (!b.wanted[1] && !b.wanted[2]) return found;
  const auto [to_cos, to_sin] =
      turn_vjp(op, widened(x), widened(b.g()), 2 * cosines.shape().back());
  const auto in_rows = [&](const Array& each) {
    if (!op.by_position) return each;
    const Array rows = broadcast_to(expand_dims(b.in[3], 1), each.shape());
    return scatter_add_axis(zeros(cosines.shape(), each.dtype()), rows, each, 0);
  };
  found[1] = in_rows(to_cos);
  found[2] = in_rows(to_sin);
  return found;
}

InputCotangents vjp_rule(const NormRope& op, const Backward& b) {
  const ArraysFunction parts = [&](const std::vector<Array>& in) {
    std::vector<Array> to_norm{in[0]};
    if (op.has_weight) to_norm.push_back(in[1]);
    std::vector<Array> to_turn{heddle::apply(RmsNorm{op.eps, op.has_weight}, std::move(to_norm))};
    to_turn.insert(to_turn.end(), in.begin() + 1 + op.has_weight, in.end());
    return std::vector<Array>{heddle::apply(Rope{op.angles}, std::move(to_turn))};
  };
  return vjp_of_parts(parts, b);
}

InputCotangents vjp_rule(const Attention& op, const Backward& b) {
  const bool wants_mask = op.mask == Attention::Mask::additive && b.wanted[3];
  if (op.has_sinks || wants_mask) {
    return vjp_of_parts(
        [&](const std::vector<Array>& in) { return std::vector<Array>{plain_attention(op, in)}; },
        b);
  }
  const std::vector<Array> to_qkv = AttentionBack(op, b).cotangents();
  InputCotangents found(b.in.size());
  for (std::size_t i = 0; i < to_qkv.size(); ++i) {
    found[i] = astype(heads_first(to_qkv[i], op.sequence_first), b.in[i].dtype());
  }
  return found;
}

InputCotangents vjp_rule(const SelectiveScan& op, const Backward& b) {
  return vjp_of_parts([&](const std::vector<Array>& in) { return plain_scan(op, in); }, b);
}

}  // namespace heddle
