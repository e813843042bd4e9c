#include <cmath>

#include "op/infer.h"

namespace heddle {

namespace {

void check_heads(const Operands& in, std::size_t x) {
  in.check_rank(x, 3, "x");
  in.check_floating(x, "x");
}

void check_angles(const Operands& in, const RopeAngles& angles, const TensorSpec& x) {
  const std::int64_t width = x.shape[2];
  in.check(angles.dims > 0 && angles.dims <= width && angles.dims % 2 == 0,
           "{} of {} features of x {} turn; the number must be even, positive and no larger",
           angles.dims, width, x);
  in.check(std::isfinite(angles.base) && angles.base > 0, "base {}; it must be positive",
           angles.base);
  in.check(std::isfinite(angles.scale), "scale {}", angles.scale);
}

void check_bias(const Operands& in, std::size_t i, const TensorSpec& x) {
  in.check_vector(i, elements({x.shape[1], x.shape[2]}), x.dtype, "the bias");
}

/// Positions, and factors if there are any, from operand `next` on.
void check_positions(const Operands& in, std::size_t next, const RopeAngles& angles,
                     const TensorSpec& x) {
  check_angles(in, angles, x);
  in.check_spec(next, {DType::i32, {x.shape[0]}}, "pos");
  if (angles.has_factors) in.check_spec(next + 1, {DType::f32, {angles.dims / 2}}, "the factors");
}

struct AttentionShape {
  std::int64_t batch, heads, length, width;
};

AttentionShape attention_shape(const Shape& s, bool sequence_first) {
  return sequence_first ? AttentionShape{s[0], s[2], s[1], s[3]}
                        : AttentionShape{s[0], s[1], s[2], s[3]};
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[lead + i]) return false;
  }
  return true;
}

void check_mask(const Operands& in, const Attention& op, const Shape& scores) {
  const TensorSpec& mask = in[3];
  const bool typed = op.mask == Attention::Mask::boolean
                         ? mask.dtype == DType::bool_
                         : mask.dtype == in[0].dtype || mask.dtype == DType::f32;
  in.check(typed, "the {} mask is {}; it must be {}", to_string(op.mask), mask,
           op.mask == Attention::Mask::boolean ? "bool" : "of q's dtype or f32");
  in.check(broadcasts_to(mask.shape, scores), "the mask {} does not broadcast to {}", mask, scores);
}

}  // namespace

Specs infer_op(const Rope& op, const Operands& in) {
  in.check_count(2 + op.has_bias + op.angles.has_factors,
                 fmt::format("x, {}pos{}", op.has_bias ? "bias, " : "",
                             op.angles.has_factors ? ", factors" : ""));
  check_heads(in, 0);
  if (op.has_bias) check_bias(in, 1, in[0]);
  check_positions(in, 1 + op.has_bias, op.angles, in[0]);
  return {in[0]};
}

Specs infer_op(const RopeTable& op, const Operands& in) {
  in.check_count(3 + op.by_position, op.by_position ? "x, cos, sin, index" : "x, cos, sin");
  check_heads(in, 0);
  in.check_rank(1, 2, "cos");
  const TensorSpec& cos = in[1];
  in.check(cos.dtype == DType::f32 && cos.shape[1] > 0 && cos.shape[1] <= in[0].shape[2] / 2,
           "cos is {}; for x {} it must be f32 of 1 to {} columns", cos, in[0], in[0].shape[2] / 2);
  in.check_spec(2, cos, "sin");
  if (op.by_position) {
    in.check_spec(3, {DType::i32, {in[0].shape[0]}}, "index");
  } else {
    in.check(cos.shape[0] == in[0].shape[0], "cos is {}; it must have a row for each of x {}", cos,
             in[0]);
  }
  return {in[0]};
}

Specs infer_op(const RopeWriteRows& op, const Operands& in) {
  const bool factors = op.rope && op.angles.has_factors;
  in.check_count(3 + op.has_bias + op.rope + factors,
                 fmt::format("state, x, row{}{}{}", op.has_bias ? ", bias" : "",
                             op.rope ? ", pos" : "", factors ? ", factors" : ""));
  in.check_rank(0, 3, "the state");
  check_heads(in, 1);
  check_row_write(in, 0, 1, 2);
  if (op.has_bias) check_bias(in, 3, in[1]);
  if (op.rope) check_positions(in, 3 + op.has_bias, op.angles, in[1]);
  return {in[0]};
}

Specs infer_op(const NormRope& op, const Operands& in) {
  in.check_count(2 + op.has_weight + op.angles.has_factors,
                 fmt::format("x, {}pos{}", op.has_weight ? "weight, " : "",
                             op.angles.has_factors ? ", factors" : ""));
  check_heads(in, 0);
  if (op.has_weight) in.check_vector(1, in[0].shape[2], in[0].dtype, "the weight");
  in.check(op.eps >= 0 && std::isfinite(op.eps), "eps {}; it must be finite and not negative",
           op.eps);
  check_positions(in, 1 + op.has_weight, op.angles, in[0]);
  return {in[0]};
}

Specs infer_op(const NormRopeWriteRows& op, const Operands& in) {
  in.check_count(4 + op.has_weight + op.angles.has_factors,
                 fmt::format("state, x, row, {}pos{}", op.has_weight ? "weight, " : "",
                             op.angles.has_factors ? ", factors" : ""));
  in.check_rank(0, 3, "the state");
  check_heads(in, 1);
  check_row_write(in, 0, 1, 2);
  if (op.has_weight) in.check_vector(3, in[1].shape[2], in[1].dtype, "the weight");
  in.check(op.eps >= 0 && std::isfinite(op.eps), "eps {}; it must be finite and not negative",
           op.eps);
  check_positions(in, 3 + op.has_weight, op.angles, in[1]);
  return {in[0]};
}

Specs infer_op(const Attention& op, const Operands& in) {
  using enum Attention::Mask;
  const bool masked = op.mask == boolean || op.mask == additive;
  in.check_count(3 + masked + op.has_sinks,
                 fmt::format("q, k, v{}{}", masked ? ", mask" : "", op.has_sinks ? ", sinks" : ""));
  const char* names[] = {"q", "k", "v"};
  for (std::size_t i = 0; i < 3; ++i) {
    in.check_rank(i, 4, names[i]);
    in.check(in[i].dtype == in[0].dtype, "q {} and {} {} differ in dtype", in[0], names[i], in[i]);
  }
  in.check_floating(0, "q");
  const AttentionShape q = attention_shape(in[0].shape, op.sequence_first);
  const AttentionShape k = attention_shape(in[1].shape, op.sequence_first);
  const AttentionShape v = attention_shape(in[2].shape, op.sequence_first);
  in.check(q.batch == k.batch && q.width == k.width, "q {} and k {} differ in batch or head size",
           in[0], in[1]);
  in.check(k.batch == v.batch && k.heads == v.heads && k.length == v.length,
           "k {} and v {} differ in batch, heads or length", in[1], in[2]);
  in.check(k.heads > 0 && q.heads % k.heads == 0,
           "{} query heads are not a multiple of {} key heads", q.heads, k.heads);
  in.check(op.window >= 0 && (op.window == 0 || op.mask == causal),
           "window {}; it is for the causal mask, and not negative", op.window);
  in.check(std::isfinite(op.scale), "scale {}", op.scale);
  if (masked) check_mask(in, op, {q.batch, q.heads, q.length, k.length});
  if (op.has_sinks) in.check_vector(3 + masked, q.heads, in[0].dtype, "the vector of sinks");
  Shape result = in[0].shape;
  result[3] = v.width;
  return {{in[0].dtype, result}};
}

Specs infer_op(const Attend& op, const Operands& in) {
  in.check_count(7, "q, k, v, block_table, seq, pos, len");
  in.check_rank(0, 3, "q");
  in.check(in[0].dtype == DType::f32, "q is {}; it must be f32", in[0]);
  in.check_rank(1, 3, "k");
  const Shape& q = in[0].shape;
  const Shape& k = in[1].shape;
  for (std::size_t i = 1; i <= 2; ++i) {
    const DType dtype = in[i].dtype;
    in.check(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::q8_0,
             "{} is {}; it must be f32, f16 or q8_0", i == 1 ? "k" : "v", in[i]);
  }
  in.check(k == in[2].shape, "k {} and v {} differ in shape", in[1], in[2]);
  in.check(q[2] == k[2], "q {} and k {} differ in head size", in[0], in[1]);
  in.check(k[1] > 0 && q[1] % k[1] == 0, "{} query heads are not a multiple of {} key heads", q[1],
           k[1]);
  in.check(in[3].dtype == DType::i32 && in[3].shape.size() == 2,
           "the block table is {}; it must be i32 [sequences, blocks]", in[3]);
  in.check_spec(4, {DType::i32, {q[0]}}, "seq");
  in.check_spec(5, {DType::i32, {q[0]}}, "pos");
  in.check_spec(6, {DType::i32, {in[3].shape[0]}}, "len");
  in.check(op.block_size >= 1, "blocks of {} rows", op.block_size);
  in.check(op.window >= 0, "window {}; it must not be negative", op.window);
  in.check(std::isfinite(op.scale), "scale {}", op.scale);
  return {in[0]};
}

Specs infer_op(const SelectiveScan& op, const Operands& in) {
  in.check_count(6 + std::size_t{op.has_d}, op.has_d ? "x, dt, a, b, c, d, state"  //
                                                     : "x, dt, a, b, c, state");
  const Shape &x = in[0].shape, &b = in[3].shape;
  in.check_rank(0, 3, "x");
  in.check_spec(0, {DType::f32, x}, "x");
  in.check_spec(1, in[0], "dt");
  in.check(in[2].shape.size() == 2 && in[2].shape[0] == x[2],
           "a is {}; for x {} it must be [{}, N]", in[2], in[0], x[2]);
  const std::int64_t width = in[2].shape[1];
  in.check_spec(2, {DType::f32, in[2].shape}, "a");
  in.check(b.size() == 4 && b[0] == x[0] && b[1] == x[1] && b[3] == width,
           "b is {}; for x {} and a {} it must be [{}, {}, groups, {}]", in[3], in[0], in[2], x[0],
           x[1], width);
  in.check(b[2] > 0 && x[2] % b[2] == 0, "the {} features of x {} do not divide into {} groups",
           x[2], in[0], b[2]);
  in.check_spec(3, {DType::f32, b}, "b");
  in.check_spec(4, in[3], "c");
  if (op.has_d) in.check_spec(5, {DType::f32, {x[2]}}, "d");
  const TensorSpec state{DType::f32, {x[0], x[2], width}};
  in.check_spec(in.size() - 1, state, "the state");
  return {in[0], state};
}

}  // namespace heddle
