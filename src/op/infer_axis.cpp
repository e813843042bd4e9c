#include <limits>

#include "op/infer.h"

namespace heddle {

namespace {

/// Operand 1 holds indices into `axis` of operand 0, for all its lines.
void check_axis_indices(const Operands& in, std::int64_t axis) {
  in.check_axis(0, axis);
  in.check_plain(0);
  in.check(is_integer(in[1].dtype), "indices are {}; they must be integers", in[1]);
  Shape wanted = in[1].shape;
  const bool ranks_agree = wanted.size() == in[0].shape.size();
  if (ranks_agree) wanted[axis] = in[0].shape[axis];
  in.check(ranks_agree && wanted == in[0].shape,
           "indices {} do not fit {}: their extents must agree but along axis {}", in[1], in[0],
           axis);
}

/// Whether an index reduction of operand 0 has to name an element where there is none.
bool names_nothing(const Operands& in, std::int64_t axis) {
  const Shape& shape = in[0].shape;
  if (shape[axis] != 0) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) != axis && shape[i] == 0) return false;
  }
  return true;
}

void check_countable(const Operands& in, std::int64_t extent) {
  in.check(extent <= std::numeric_limits<std::uint32_t>::max(),
           "the {} elements in a line of {} are more than u32 indices tell apart", extent, in[0]);
}

}  // namespace

Specs infer_op(const GatherAxis& op, const Operands& in) {
  in.check_count(2, "x, indices");
  check_axis_indices(in, op.axis);
  return {{in[0].dtype, in[1].shape}};
}

Specs infer_op(const ScatterAxis& op, const Operands& in) {
  in.check_count(3, "x, indices, updates");
  check_axis_indices(in, op.axis);
  const bool ordered = op.kind == ScatterKind::max || op.kind == ScatterKind::min;
  in.check_kind(0, ordered ? kOrdered : kPlain);
  in.check_spec(2, {in[0].dtype, in[1].shape}, "updates");
  return {in[0]};
}

Specs infer_op(const Pad& op, const Operands& in) {
  const bool constant = op.mode == Pad::Mode::constant;
  in.check_count(constant ? 2 : 1, constant ? "x, value" : "x");
  in.check_plain(0);
  if (constant) in.check_spec(1, {in[0].dtype, {}}, "the value");
  const std::size_t rank = in[0].shape.size();
  in.check(op.low.size() == rank && op.high.size() == rank,
           "low {} and high {} do not fit {}; they must have {} entries", op.low, op.high, in[0],
           rank);
  Shape result = in[0].shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t low = op.low[i], high = op.high[i];
    in.check(low >= 0 && high >= 0, "axis {} of {} by {} and {}; paddings must not be negative", i,
             in[0], low, high);
    in.check(constant || result[i] > 0 || low + high == 0, "axis {} of {} has no edge to repeat", i,
             in[0]);
    in.check(!__builtin_add_overflow(result[i], low, &result[i]) &&
                 !__builtin_add_overflow(result[i], high, &result[i]),
             "the extent of axis {} overflows", i);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const Scan& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_axis(0, op.axis);
  switch (op.kind) {
    case ScanKind::sum:
    case ScanKind::prod:
      in.check_kind(0, kPlain);
      break;
    case ScanKind::max:
    case ScanKind::min:
      in.check_kind(0, kOrdered);
      break;
    case ScanKind::logaddexp:
      in.check_kind(0, kFloat);
      break;
  }
  const bool counts = op.kind == ScanKind::sum && in[0].dtype == DType::bool_;
  return {{counts ? DType::i32 : in[0].dtype, in[0].shape}};
}

Specs infer_op(const ArgReduce& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_axis(0, op.axis);
  in.check_kind(0, kOrdered);
  in.check(!names_nothing(in, op.axis), "arg{} of nothing: {} over axis {}", to_string(op.kind),
           in[0], op.axis);
  check_countable(in, in[0].shape[op.axis]);
  Shape result = in[0].shape;
  if (op.keepdims) {
    result[op.axis] = 1;
  } else {
    result.erase(op.axis);
  }
  return {{DType::u32, result}};
}

Specs infer_op(const TopK& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_min_rank(0, 1, "x");
  in.check_kind(0, kOrdered);
  const std::int64_t length = in[0].shape.back();
  in.check(op.k >= 0 && op.k <= length, "the {} largest of rows of {}", op.k, in[0]);
  check_countable(in, length);
  Shape result = in[0].shape;
  result[result.size() - 1] = op.k;
  return {{in[0].dtype, result}, {DType::u32, result}};
}

}  // namespace heddle
