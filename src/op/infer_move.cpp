#include <cmath>

#include "op/infer.h"

namespace heddle {

namespace {

Shape without_first(const Shape& shape) {
  Shape rest = shape;
  rest.erase(0);
  return rest;
}

bool is_real(DType dtype) {
  return is_floating(dtype) || is_integer(dtype);
}

}  // namespace

Specs infer_op(const Contiguous&, const Operands& in) {
  in.check_count(1, "x");
  return {in[0]};
}

Specs infer_op(const Repack& op, const Operands& in) {
  in.check_count(1, "a matrix");
  in.check(op.kind != LayoutKind::strided, "strided is no packed layout");
  in.check_rank(0, 2, "the matrix");
  return {in[0]};
}

Specs infer_op(const Cast& op, const Operands& in) {
  in.check_count(1, "x");
  in.check(!is_block(op.dtype), "{} to {}: casts do not quantise", in[0], op.dtype);
  return {{op.dtype, in[0].shape}};
}

Specs infer_op(const Reinterpret& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_plain(0);
  in.check(!is_block(op.dtype), "{} as {}: a block type", in[0], op.dtype);
  in.check(op.dtype != DType::bool_ || in[0].dtype == DType::bool_,
           "{} as bool: bytes other than 0 and 1 are no bools; compare with 0 instead", in[0]);
  const auto from = static_cast<std::int64_t>(item_size(in[0].dtype));
  const auto to = static_cast<std::int64_t>(item_size(op.dtype));
  Shape result = in[0].shape;
  if (from == to) return {{op.dtype, result}};
  in.check(!result.empty(), "{} as {}: a scalar keeps its size", in[0], op.dtype);
  std::int64_t& last = result[result.size() - 1];
  std::int64_t bytes;
  in.check(!__builtin_mul_overflow(last, from, &bytes), "the size of {} overflows", in[0]);
  in.check(bytes % to == 0, "{} as {}: rows of {} bytes are not whole elements of {}", in[0],
           op.dtype, bytes, to);
  last = bytes / to;
  return {{op.dtype, result}};
}

Specs infer_op(const Concatenate& op, const Operands& in) {
  in.check(in.size() >= 1, "takes at least 1 input");
  const std::size_t rank = in[0].shape.size();
  in.check(op.axis >= 0 && op.axis < static_cast<std::int64_t>(rank),
           "axis {} is outside [0, {}) of {}", op.axis, rank, in[0]);
  in.check_one_dtype();
  const auto axis = static_cast<std::size_t>(op.axis);
  Shape result = in[0].shape;
  for (std::size_t i = 1; i < in.size(); ++i) {
    Shape shape = in[i].shape;
    bool fits = shape.size() == rank;
    for (std::size_t d = 0; fits && d < rank; ++d) fits = d == axis || shape[d] == result[d];
    in.check(fits, "{} does not continue {} along axis {}", in[i], in[0], axis);
    in.check(!__builtin_add_overflow(result[axis], shape[axis], &result[axis]),
             "the extent of axis {} overflows", axis);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const SliceUpdate& op, const Operands& in) {
  in.check_count(2, "base, update");
  in.check_plain(0);
  in.check_spec(1, {in[0].dtype, slice_shape(in, op.start, op.stop, op.step)}, "the update");
  return {in[0]};
}

Specs infer_op(const GatherRows& op, const Operands& in) {
  in.check_count(2, "table, ids");
  in.check_min_rank(0, 1, "the table");
  in.check(is_integer(in[1].dtype), "ids are {}; they must be integers", in[1]);
  const DType stored = in[0].dtype;
  in.check(is_block(stored) || is_floating(stored) ? is_floating(op.dtype) : op.dtype == stored,
           "rows of {} cannot be given as {}", in[0], op.dtype);
  const std::size_t rank = in[0].shape.size() - 1 + in[1].shape.size();
  in.check(rank <= kMaxRank, "rows of {} at {} have {} dimensions; at most {} are supported", in[0],
           in[1], rank, kMaxRank);
  Shape result = in[1].shape;
  for (const std::int64_t extent : without_first(in[0].shape)) result.push_back(extent);
  return {{op.dtype, result}};
}

void check_row_write(const Operands& in, std::size_t state, std::size_t x, std::size_t row) {
  in.check_min_rank(state, 1, "the state");
  in.check_min_rank(x, 1, "x");
  in.check(without_first(in[state].shape) == without_first(in[x].shape),
           "rows of x {} do not fit rows of the state {}", in[x], in[state]);
  const DType to = in[state].dtype;
  const DType from = in[x].dtype;
  in.check(to == from || (is_floating(from) && (is_floating(to) || is_block(to))),
           "x {} cannot be converted to the state {}", in[x], in[state]);
  const TensorSpec wanted{DType::i32, {in[x].shape[0]}};
  in.check(in[row] == wanted, "row is {}; for x {} it must be {}", in[row], in[x], wanted);
}

Specs infer_op(const WriteRows&, const Operands& in) {
  in.check_count(3, "state, x, row");
  check_row_write(in, 0, 1, 2);
  return {in[0]};
}

Specs infer_op(const Feed& op, const Operands& in) {
  if (op.kind == Feed::Kind::whole) {
    in.check_count(2, "state, x");
    in.check_spec(1, in[0], "x");
    return {in[0]};
  }
  in.check_count(3, "state, x, extent");
  in.check_spec(2, {DType::i32, {}}, "the extent");
  in.check_min_rank(1, 1, "x");
  in.check(in[1].dtype == in[0].dtype, "x {} and the state {} differ in dtype", in[1], in[0]);
  const Shape row = without_first(in[1].shape);
  Shape one_row = row;
  one_row.insert(0, 1);
  const bool fits = op.kind == Feed::Kind::row
                        ? in[0].shape == row || in[0].shape == one_row
                        : !in[0].shape.empty() && without_first(in[0].shape) == row;
  in.check(fits, "rows of x {} do not fit the state {}", in[1], in[0]);
  return {in[0]};
}

Specs infer_op(const Arange& op, const Operands& in) {
  in.check_count(0, "");
  in.check(op.size >= 0, "of {} elements", op.size);
  in.check(is_real(op.dtype), "of {}; it must be an integer or floating type", op.dtype);
  // With steps of 0 it is a way to write any number down.
  in.check(op.step == 0 || (std::isfinite(op.start) && std::isfinite(op.step)),
           "from {} in steps of {}", op.start, op.step);
  return {{op.dtype, {op.size}}};
}

}  // namespace heddle
