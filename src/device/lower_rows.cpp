// Lowering of casts, of slices and rows that are replaced, and of rotary positions.
#include <cmath>
#include <cstdlib>

#include "device/lower_build.h"

namespace heddle {

namespace {

using Value = LoweredBuilder::Value;

/// x [T, H, D] + bias [H*D].
Value add_bias(LoweredBuilder& b, Value x, Value bias) {
  const Shape& shape = b.shape(x);
  const Value by_head = b.reshape(b.cast(bias, b.dtype(x)), {shape[1], shape[2]});
  return b.binary(BinaryKind::add, x, by_head);
}

/// pos [T] -> angles f64 [T, dims/2]: positions grow large, and so do errors of the angle.
Value angles_of(LoweredBuilder& b, const RopeAngles& angles, Value pos, const Value* factors) {
  const std::int64_t pairs = angles.dims / 2;
  const double step =
      -2 * std::log(static_cast<double>(angles.base)) / static_cast<double>(angles.dims);
  Value frequency = b.unary(UnaryKind::exp, b.add(Arange{0, step, pairs, DType::f64}, {}));
  frequency = b.binary(BinaryKind::multiply, frequency, b.scalar(angles.scale, DType::f64));
  if (factors) {
    frequency = b.binary(BinaryKind::divide, frequency, b.cast(*factors, DType::f64));
  }
  const Value position = b.reshape(b.cast(pos, DType::f64), {b.shape(pos)[0], 1});
  return b.binary(BinaryKind::multiply, position, frequency);
}

/// The members of each pair that turns: [T, H, pairs] each.
struct Pairs {
  Value first, second;
};

Pairs split_pairs(LoweredBuilder& b, RopeStyle style, Value x, std::int64_t pairs) {
  if (style == RopeStyle::split_half) {
    return {b.slice(x, 2, 0, pairs), b.slice(x, 2, pairs, 2 * pairs)};
  }
  return {b.slice(x, 2, 0, 2 * pairs, 2), b.slice(x, 2, 1, 2 * pairs, 2)};
}

Value join_pairs(LoweredBuilder& b, RopeStyle style, const Pairs& turned) {
  if (style == RopeStyle::split_half) {
    return b.add(Concatenate{2}, {turned.first, turned.second});
  }
  const Value first = b.add(ExpandDims{{3}}, {turned.first});
  const Value second = b.add(ExpandDims{{3}}, {turned.second});
  const Shape shape = b.shape(turned.first);
  return b.reshape(b.add(Concatenate{3}, {first, second}), {shape[0], shape[1], 2 * shape[2]});
}

/// x [T, H, D] turned by cos and sin [T, pairs], one row a token.
Value turn(LoweredBuilder& b, RopeStyle style, Value x, Value cos, Value sin) {
  using enum BinaryKind;
  const DType dtype = b.dtype(x);
  const Shape shape = b.shape(x);
  const std::int64_t pairs = b.shape(cos)[1];
  x = b.cast(x, compute_dtype(dtype));
  cos = b.cast(b.reshape(cos, {shape[0], 1, pairs}), b.dtype(x));
  sin = b.cast(b.reshape(sin, {shape[0], 1, pairs}), b.dtype(x));
  const auto [first, second] = split_pairs(b, style, x, pairs);
  const Pairs turned{
      b.binary(subtract, b.binary(multiply, first, cos), b.binary(multiply, second, sin)),
      b.binary(add, b.binary(multiply, second, cos), b.binary(multiply, first, sin))};
  Value result = join_pairs(b, style, turned);
  if (2 * pairs < shape[2]) {
    result = b.add(Concatenate{2}, {result, b.slice(x, 2, 2 * pairs, shape[2])});
  }
  return b.cast(result, dtype);
}

}  // namespace

MaybeLowered lower_op(const Cast& op, LowerInputs in) {
  if (!is_block(in[0].dtype) || op.dtype == DType::f32) return std::nullopt;
  LoweredBuilder b(in);
  return b.finish({b.cast(b.cast(LoweredBuilder::input(0), DType::f32), op.dtype)});
}

// Where elements lie side by side: what is before, the update (turned round if it was backwards)
// and what is behind, joined along the first axis of which a part is left; the rest of it by a
// smaller update of the middle.
MaybeLowered lower_op(const SliceUpdate& op, LowerInputs in) {
  const Shape& shape = in[0].shape;
  LoweredBuilder b(in);
  Value update = LoweredBuilder::input(1);
  SliceUpdate inner = op;
  std::size_t axis = shape.size();
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::int64_t length = in[1].shape[i];
    if (length == 0) return b.finish({b.contiguous(LoweredBuilder::input(0))});
    if (length > 1 && std::abs(op.step[i]) != 1) return std::nullopt;
    if (length > 1 && op.step[i] < 0) update = b.slice(update, i, length - 1, -1, -1);
    const std::int64_t first = op.step[i] < 0 ? op.start[i] - (length - 1) : op.start[i];
    inner.start[i] = first, inner.stop[i] = first + length, inner.step[i] = 1;
    if (length < shape[i]) axis = i;
  }
  if (axis == shape.size()) return b.finish({b.contiguous(update)});
  const std::int64_t begin = inner.start[axis], end = inner.stop[axis];
  Value middle = b.slice(LoweredBuilder::input(0), axis, begin, end);
  inner.start[axis] = 0, inner.stop[axis] = end - begin;
  middle = b.shape(middle) == b.shape(update) ? update : b.add(inner, {middle, update});
  std::vector<Value> parts;
  if (begin > 0) parts.push_back(b.slice(LoweredBuilder::input(0), axis, 0, begin));
  parts.push_back(middle);
  if (end < shape[axis]) parts.push_back(b.slice(LoweredBuilder::input(0), axis, end, shape[axis]));
  return b.finish({b.add(Concatenate{static_cast<std::int64_t>(axis)}, parts)});
}

MaybeLowered lower_op(const GatherRows& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Value table = LoweredBuilder::input(0);
  const Value ids = LoweredBuilder::input(1);
  const DType stored = is_block(in[0].dtype) ? DType::f32 : in[0].dtype;
  if (op.dtype != stored) {
    return b.finish({b.cast(b.add(GatherRows{stored, op.wrap}, {table, ids}), op.dtype)});
  }
  if (in[1].shape.size() == 1) return std::nullopt;
  const Value flat = b.reshape(ids, {elements(in[1].shape)});
  return b.finish({b.reshape(b.add(op, {table, flat}), infer(op, in)[0].shape)});
}

MaybeLowered lower_op(const WriteRows& op, LowerInputs in) {
  const DType state = in[0].dtype;
  const DType wanted = is_block(state) ? DType::f32 : state;
  if (in[1].dtype == wanted || in[1].dtype == state) return std::nullopt;
  LoweredBuilder b(in);
  const Value x = b.cast(LoweredBuilder::input(1), wanted);
  return b.finish({b.add(op, {LoweredBuilder::input(0), x, LoweredBuilder::input(2)})});
}

// The bias first; then with tables of the angles' cosines and sines.
MaybeLowered lower_op(const Rope& op, LowerInputs in) {
  LoweredBuilder b(in);
  Value x = LoweredBuilder::input(0);
  const std::size_t pos = 1 + std::size_t{op.has_bias};
  if (op.has_bias) {
    std::vector<Value> operands{add_bias(b, x, LoweredBuilder::input(1))};
    for (std::size_t i = pos; i < in.size(); ++i) operands.push_back(LoweredBuilder::input(i));
    return b.finish({b.add(Rope{op.angles, false}, operands)});
  }
  const Value factors = LoweredBuilder::input(pos + 1);
  const Value angles = angles_of(b, op.angles, LoweredBuilder::input(pos),
                                 op.angles.has_factors ? &factors : nullptr);
  const Value cos = b.cast(b.unary(UnaryKind::cos, angles), DType::f32);
  const Value sin = b.cast(b.unary(UnaryKind::sin, angles), DType::f32);
  return b.finish({b.add(RopeTable{op.angles.style, false}, {x, cos, sin})});
}

MaybeLowered lower_op(const RopeTable& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Value x = LoweredBuilder::input(0);
  const Value cos = LoweredBuilder::input(1);
  const Value sin = LoweredBuilder::input(2);
  if (!op.by_position) return b.finish({turn(b, op.style, x, cos, sin)});
  const Value index = LoweredBuilder::input(3);
  const Value cos_rows = b.add(GatherRows{DType::f32}, {cos, index});
  const Value sin_rows = b.add(GatherRows{DType::f32}, {sin, index});
  return b.finish({b.add(RopeTable{op.style, false}, {x, cos_rows, sin_rows})});
}

MaybeLowered lower_op(const RopeWriteRows& op, LowerInputs in) {
  LoweredBuilder b(in);
  Value x = LoweredBuilder::input(1);
  if (op.rope) {
    std::vector<Value> operands{x};
    for (std::size_t i = 3; i < in.size(); ++i) operands.push_back(LoweredBuilder::input(i));
    x = b.add(Rope{op.angles, op.has_bias}, operands);
  } else if (op.has_bias) {
    x = add_bias(b, x, LoweredBuilder::input(3));
  }
  return b.finish({b.add(WriteRows{}, {LoweredBuilder::input(0), x, LoweredBuilder::input(2)})});
}

namespace {

/// norm_rope's operands from `x` on as its parts: the weight, then what rope takes.
Value norm_then_rope(LoweredBuilder& b, const NormRope& op, Value x, std::size_t next) {
  std::vector<Value> norm{x};
  if (op.has_weight) norm.push_back(LoweredBuilder::input(next++));
  std::vector<Value> rope{b.add(RmsNorm{op.eps, op.has_weight, false}, norm)};
  for (; next < b.input_count(); ++next) rope.push_back(LoweredBuilder::input(next));
  return b.add(Rope{op.angles, false}, rope);
}

}  // namespace

MaybeLowered lower_op(const NormRope& op, LowerInputs in) {
  LoweredBuilder b(in);
  return b.finish({norm_then_rope(b, op, LoweredBuilder::input(0), 1)});
}

MaybeLowered lower_op(const NormRopeWriteRows& op, LowerInputs in) {
  LoweredBuilder b(in);
  const NormRope norm_rope{op.eps, op.has_weight, op.angles};
  const Value x = norm_then_rope(b, norm_rope, LoweredBuilder::input(1), 3);
  return b.finish({b.add(WriteRows{}, {LoweredBuilder::input(0), x, LoweredBuilder::input(2)})});
}

}  // namespace heddle
