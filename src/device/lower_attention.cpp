// Lowering of attention into products and softmax.
#include <algorithm>
#include <limits>

#include "device/lower_build.h"

namespace heddle {

namespace {

using Value = LoweredBuilder::Value;
using enum Attention::Mask;

/// Scores that one block of queries may take (64 MiB of f32), and the fewest queries in one.
constexpr std::int64_t kBlockScores = std::int64_t{1} << 24;
constexpr std::int64_t kLeastBlock = 16;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Extents of q, k, v with heads before the sequence.
struct Sizes {
  std::int64_t batch, heads, queries, width, kv_heads, keys, v_width;
};

Sizes sizes_of(LowerInputs in) {
  const Shape& q = in[0].shape;
  return {q[0], q[1], q[2], q[3], in[1].shape[1], in[1].shape[2], in[2].shape[3]};
}

Lowered with_heads_first(const Attention& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Transpose swap{{0, 2, 1, 3}};
  std::vector<Value> operands;
  for (std::size_t i = 0; i < 3; ++i) operands.push_back(b.add(swap, {LoweredBuilder::input(i)}));
  for (std::size_t i = 3; i < in.size(); ++i) operands.push_back(LoweredBuilder::input(i));
  Attention inner = op;
  inner.sequence_first = false;
  return b.finish({b.contiguous(b.add(swap, {b.add(inner, operands)}))});
}

bool has_mask(const Attention& op) {
  return op.mask == boolean || op.mask == additive;
}

/// The part of a mask that belongs to queries [begin, end); whole where it does not tell them
/// apart.
Value mask_of_block(LoweredBuilder& b, std::int64_t begin, std::int64_t end) {
  const Value mask = LoweredBuilder::input(3);
  const Shape& shape = b.shape(mask);
  if (shape.size() < 2 || shape[shape.size() - 2] == 1) return mask;
  return b.slice(mask, shape.size() - 2, begin, end);
}

/// Queries in blocks. A causal block sees only the keys up to its last query, and so stands at
/// their end, as the op wants it; a window leaves out keys at the start too.
Lowered in_blocks(const Attention& op, LowerInputs in, std::int64_t block) {
  LoweredBuilder b(in);
  const Sizes n = sizes_of(in);
  std::vector<Value> parts;
  for (std::int64_t begin = 0; begin < n.queries; begin += block) {
    const std::int64_t end = std::min(begin + block, n.queries);
    const std::int64_t shift = n.keys - n.queries;  // from a query's number to its position
    std::int64_t first = 0;
    std::int64_t last = n.keys;
    if (op.mask == causal) {
      last = std::clamp<std::int64_t>(shift + end, 0, n.keys);
      if (op.window > 0) first = std::clamp<std::int64_t>(shift + begin + 1 - op.window, 0, last);
    }
    std::vector<Value> operands{b.slice(LoweredBuilder::input(0), 2, begin, end),
                                b.slice(LoweredBuilder::input(1), 2, first, last),
                                b.slice(LoweredBuilder::input(2), 2, first, last)};
    if (has_mask(op)) operands.push_back(mask_of_block(b, begin, end));
    if (op.has_sinks) operands.push_back(LoweredBuilder::input(in.size() - 1));
    parts.push_back(b.add(op, operands));
  }
  return b.finish({b.add(Concatenate{2}, parts)});
}

/// bool [queries, keys]: who sees whom, from positions.
Value causal_mask(LoweredBuilder& b, const Attention& op, const Sizes& n) {
  const auto positions = [&](std::int64_t first, std::int64_t count) {
    return b.add(Arange{static_cast<double>(first), 1, count, DType::i32}, {});
  };
  const std::int64_t shift = n.keys - n.queries;
  const Value keys = positions(0, n.keys);
  const Value queries = b.reshape(positions(shift, n.queries), {n.queries, 1});
  const Value before = b.add(Compare{CompareKind::less_equal}, {keys, queries});
  if (op.window == 0) return before;
  const Value oldest = b.reshape(positions(shift - op.window, n.queries), {n.queries, 1});
  const Value within = b.add(Compare{CompareKind::greater}, {keys, oldest});
  return b.binary(BinaryKind::logical_and, before, within);
}

/// Scores [B, H, queries, keys] with -inf where nothing is seen.
Value masked(LoweredBuilder& b, const Attention& op, const Sizes& n, Value scores) {
  if (op.mask == none) return scores;
  if (op.mask == additive) {
    const Value mask = b.cast(LoweredBuilder::input(3), b.dtype(scores));
    return b.binary(BinaryKind::add, scores, mask);
  }
  const Value seen = op.mask == boolean ? LoweredBuilder::input(3) : causal_mask(b, op, n);
  return b.add(Select{}, {seen, scores, b.scalar(kMinusInfinity, b.dtype(scores))});
}

/// Softmax of scores [B, H, queries, keys] and of a sink for each head: as one key more, which is
/// left out of what comes.
Value weights_of(LoweredBuilder& b, const Attention& op, const Sizes& n, Value scores) {
  if (!op.has_sinks) return b.add(Softmax{}, {scores});
  const Value vector = b.cast(LoweredBuilder::input(b.input_count() - 1), b.dtype(scores));
  const Value each =
      b.add(Broadcast{{n.batch, n.heads, n.queries, 1}}, {b.reshape(vector, {1, n.heads, 1, 1})});
  const Value all = b.add(Softmax{}, {b.add(Concatenate{3}, {scores, each})});
  return b.contiguous(b.slice(all, 3, 0, n.keys));
}

/// Query heads that share a key head lie side by side, so they join its rows.
Lowered whole(const Attention& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Sizes n = sizes_of(in);
  const DType compute = compute_dtype(in[0].dtype);
  const std::int64_t rows = n.heads / n.kv_heads * n.queries;
  const auto operand = [&](std::size_t i) { return b.cast(LoweredBuilder::input(i), compute); };
  const Value q = b.reshape(operand(0), {n.batch, n.kv_heads, rows, n.width});
  const Value k = b.add(Transpose{{0, 1, 3, 2}}, {operand(1)});
  Value scores =
      b.binary(BinaryKind::multiply, b.add(Matmul{}, {q, k}), b.scalar(op.scale, compute));
  scores = b.reshape(scores, {n.batch, n.heads, n.queries, n.keys});
  const Value weights = weights_of(b, op, n, masked(b, op, n, scores));
  const Value joined = b.reshape(weights, {n.batch, n.kv_heads, rows, n.keys});
  const Value mixed = b.add(Matmul{}, {joined, operand(2)});
  return b.finish(
      {b.cast(b.reshape(mixed, {n.batch, n.heads, n.queries, n.v_width}), in[0].dtype)});
}

// Operands of attend.
enum : std::size_t { kQ, kK, kV, kTable, kSeq, kPos, kLen };

/// i32 [S, B * block_size]: the state's row of every position of every sequence.
Value rows_of_positions(LoweredBuilder& b, const Attend& op, Value zero) {
  using enum BinaryKind;
  const Shape table = b.shape(LoweredBuilder::input(kTable));
  const Value block = b.binary(maximum, LoweredBuilder::input(kTable), zero);  // -1: never seen
  const Value size = b.scalar(static_cast<double>(op.block_size), DType::i32);
  const Value first = b.reshape(b.binary(multiply, block, size), {table[0], table[1], 1});
  const Value within = b.add(Arange{0, 1, op.block_size, DType::i32}, {});
  return b.reshape(b.binary(add, first, within), {table[0], table[1] * op.block_size});
}

/// bool [T, context]: the positions that each token sees.
Value positions_seen(LoweredBuilder& b, const Attend& op, Value seq, Value zero,
                     std::int64_t context) {
  using enum CompareKind;
  const std::int64_t tokens = b.shape(seq)[0];
  const auto column = [&](Value x) { return b.reshape(x, {tokens, 1}); };
  const auto both = [&](Value x, Value y) { return b.binary(BinaryKind::logical_and, x, y); };
  const Value position = b.add(Arange{0, 1, context, DType::i32}, {});
  const Value length = b.add(GatherRows{DType::i32}, {LoweredBuilder::input(kLen), seq});
  const Value pos = column(LoweredBuilder::input(kPos));
  const Value active = column(b.add(Compare{greater_equal}, {LoweredBuilder::input(kSeq), zero}));
  Value seen = both(b.add(Compare{less}, {position, column(length)}),
                    b.add(Compare{less_equal}, {position, pos}));
  if (op.window > 0) {
    const Value window = b.scalar(static_cast<double>(op.window), DType::i32);
    const Value oldest = b.binary(BinaryKind::subtract, pos, window);
    seen = both(seen, b.add(Compare{greater}, {position, oldest}));
  }
  return both(seen, active);
}

}  // namespace

MaybeLowered lower_op(const Attention& op, LowerInputs in) {
  if (op.sequence_first) return with_heads_first(op, in);
  const Sizes n = sizes_of(in);
  const std::int64_t scores_of_query =
      std::max<std::int64_t>(elements({n.batch, n.heads, n.keys}), 1);
  const std::int64_t block = std::max(kBlockScores / scores_of_query, kLeastBlock);
  return block < n.queries ? in_blocks(op, in, block) : whole(op, in);
}

// Every token as a batch entry of one query, over a gathered copy of its sequence's rows.
MaybeLowered lower_op(const Attend& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape& q = in[kQ].shape;
  const Shape& table = in[kTable].shape;
  if (elements(table) == 0 || in[kK].shape[0] == 0) return std::nullopt;  // no row to gather
  const std::int64_t context = table[1] * op.block_size;
  const Value zero = b.scalar(0, DType::i32);
  const Value seq = b.binary(BinaryKind::maximum, LoweredBuilder::input(kSeq), zero);  // -1: idle
  const Value rows = b.add(GatherRows{DType::i32}, {rows_of_positions(b, op, zero), seq});
  const Value k = b.add(GatherRows{DType::f32}, {LoweredBuilder::input(kK), rows});
  const Value v = b.add(GatherRows{DType::f32}, {LoweredBuilder::input(kV), rows});
  const Value mask = b.reshape(positions_seen(b, op, seq, zero, context), {q[0], 1, 1, context});
  const Value query = b.reshape(LoweredBuilder::input(kQ), {q[0], 1, q[1], q[2]});
  const Attention inner{.mask = boolean, .scale = op.scale, .sequence_first = true};
  return b.finish({b.reshape(b.add(inner, {query, k, v, mask}), q)});
}

}  // namespace heddle
