// Lowering of element-wise ops, reductions, normalisations and products.
#include <algorithm>
#include <limits>

#include "device/lower_build.h"

namespace heddle {

namespace {

using Value = LoweredBuilder::Value;

bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// With every operand repeated to the shape of the result, if one is not of that shape.
MaybeLowered with_explicit_broadcast(const Op& op, LowerInputs in) {
  const Shape result = infer(op, in)[0].shape;
  const auto fits = [&](const TensorSpec& spec) { return spec.shape == result; };
  if (std::all_of(in.begin(), in.end(), fits)) return std::nullopt;
  LoweredBuilder b(in);
  std::vector<Value> operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Value x = LoweredBuilder::input(i);
    operands.push_back(fits(in[i]) ? x : b.contiguous(b.add(Broadcast{result}, {x})));
  }
  return b.finish({b.add(op, operands)});
}

/// In f32, if the operands are of a half type.
MaybeLowered in_single_precision(const Op& op, LowerInputs in) {
  if (!is_half(in.back().dtype)) return std::nullopt;
  const DType result = infer(op, in)[0].dtype;
  LoweredBuilder b(in);
  std::vector<Value> operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Value x = LoweredBuilder::input(i);
    operands.push_back(is_half(in[i].dtype) ? b.cast(x, DType::f32) : x);
  }
  return b.finish({b.cast(b.add(op, operands), result)});
}

MaybeLowered lower_element_wise(const Op& op, LowerInputs in) {
  MaybeLowered lowered = with_explicit_broadcast(op, in);
  return lowered ? std::move(lowered) : in_single_precision(op, in);
}

/// The last axis of `x`, without going through a step for it.
std::int64_t width(const LoweredBuilder& b, Value x) {
  return b.shape(x).back();
}

/// The axes that stay, then those that are reduced, joined into one: reduced along the last axis.
MaybeLowered reduce_along_last(const Reduce& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape& shape = in[0].shape;
  Dims order, kept;
  std::int64_t reduced = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (std::ranges::find(op.axes, static_cast<std::int64_t>(i)) != op.axes.end()) continue;
    order.push_back(static_cast<std::int64_t>(i));
    kept.push_back(shape[i]);
  }
  for (const std::int64_t axis : op.axes) {
    order.push_back(axis);
    reduced *= shape[static_cast<std::size_t>(axis)];
  }
  Value x = LoweredBuilder::input(0);
  if (!std::ranges::is_sorted(order)) x = b.contiguous(b.add(Transpose{order}, {x}));
  Shape joined = kept;
  joined.push_back(reduced);
  x = b.reshape(x, joined);
  x = b.add(Reduce{op.kind, {static_cast<std::int64_t>(kept.size())}, false}, {x});
  return b.finish({b.reshape(x, infer(op, in)[0].shape)});
}

MaybeLowered reduce_cast(const Reduce& op, LowerInputs in, DType dtype) {
  LoweredBuilder b(in);
  const Value x = b.add(op, {b.cast(LoweredBuilder::input(0), dtype)});
  return b.finish({b.cast(x, infer(op, in)[0].dtype)});
}

/// x, in the type to compute in, and the result of a norm's last steps in x's own type.
struct Norm {
  LoweredBuilder b;
  DType dtype, compute;

  explicit Norm(LowerInputs in) : b(in), dtype(in[0].dtype), compute(compute_dtype(in[0].dtype)) {}

  Value x() { return b.cast(LoweredBuilder::input(0), compute); }

  /// 1 / sqrt(mean(x^2) + eps) over the last axis.
  Value inverse_root_mean_square(Value x, float eps) {
    const Value mean = b.reduce_last(ReduceKind::mean, b.unary(UnaryKind::square, x));
    const Value safe = b.binary(BinaryKind::add, mean, b.scalar(eps, compute));
    return b.unary(UnaryKind::rsqrt, safe);
  }

  Lowered finish(Value x, bool has_weight, bool has_bias) {
    if (has_weight) {
      const Value weight = b.cast(LoweredBuilder::input(1), compute);
      x = b.binary(BinaryKind::multiply, x, weight);
    }
    if (has_bias) {
      const Value bias = b.cast(LoweredBuilder::input(1 + std::size_t{has_weight}), compute);
      x = b.binary(BinaryKind::add, x, bias);
    }
    return b.finish({b.cast(x, dtype)});
  }
};

Shape with_batch(const Shape& batch, const Shape& matrix) {
  Shape shape = batch;
  shape.push_back(matrix[matrix.size() - 2]);
  shape.push_back(matrix.back());
  return shape;
}

Shape batch_of(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.begin(), shape.size() - 2));
}

/// Batches repeated to be the same, and joined into one axis.
MaybeLowered matmul_of_one_batch(const Matmul& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape result = infer(op, in)[0].shape;
  const Shape batch = batch_of(result);
  const Shape joined = batch.empty() ? Shape{} : Shape{elements(batch)};
  const auto operand = [&](std::size_t i) {
    Value x = LoweredBuilder::input(i);
    const Shape& shape = in[i].shape;
    if (batch_of(shape) != batch) {
      x = b.contiguous(b.add(Broadcast{with_batch(batch, shape)}, {x}));
    }
    return b.reshape(x, with_batch(joined, shape));
  };
  const Value x = operand(0);
  const Value y = operand(1);
  return b.finish({b.reshape(b.add(op, {x, y}), result)});
}

}  // namespace

MaybeLowered lower_op(const Unary& op, LowerInputs in) {
  return in_single_precision(op, in);
}
MaybeLowered lower_op(const Binary& op, LowerInputs in) {
  return lower_element_wise(op, in);
}
MaybeLowered lower_op(const Compare& op, LowerInputs in) {
  return lower_element_wise(op, in);
}
MaybeLowered lower_op(const Select& op, LowerInputs in) {
  return lower_element_wise(op, in);
}

MaybeLowered lower_op(const GatedMultiply& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Value gate = b.unary(op.activation, LoweredBuilder::input(0));
  return b.finish({b.binary(BinaryKind::multiply, gate, LoweredBuilder::input(1))});
}

// Each form is nearer to the plainest, a sum, product, maximum or minimum of f32 along the last
// axis.
MaybeLowered lower_op(const Reduce& op, LowerInputs in) {
  const DType dtype = in[0].dtype;
  const DType result = infer(op, in)[0].dtype;
  LoweredBuilder b(in);
  const Value x = LoweredBuilder::input(0);
  if (op.axes.empty()) return b.finish({dtype == result ? b.contiguous(x) : b.cast(x, result)});
  const std::int64_t last = static_cast<std::int64_t>(in[0].shape.size()) - 1;
  if (op.axes != Dims{last} || op.keepdims) return reduce_along_last(op, in);
  if (is_half(dtype)) return reduce_cast(op, in, DType::f32);
  if (result != dtype) return reduce_cast(op, in, result);
  if (op.kind == ReduceKind::all || op.kind == ReduceKind::any) {  // by counting
    const ReduceKind kind = op.kind == ReduceKind::all ? ReduceKind::prod : ReduceKind::sum;
    return b.finish({b.cast(b.add(Reduce{kind, op.axes, false}, {x}), DType::bool_)});
  }
  if (op.kind != ReduceKind::mean) return std::nullopt;
  const Value sum = b.add(Reduce{ReduceKind::sum, op.axes, false}, {x});
  const Value count = b.scalar(static_cast<double>(in[0].shape.back()), dtype);
  const Value mean = b.binary(BinaryKind::divide, sum, count);
  return b.finish({b.reshape(mean, infer(op, in)[0].shape)});  // of a scalar, [1]
}

namespace {

/// Rows of no elements, which have no maximum and no mean, come out as they are.
MaybeLowered nothing_of(LowerInputs in) {
  LoweredBuilder b(in);
  return b.finish({b.contiguous(LoweredBuilder::input(0))});
}

}  // namespace

MaybeLowered lower_op(const Softmax&, LowerInputs in) {
  if (in[0].shape.back() == 0) return nothing_of(in);
  LoweredBuilder b(in);
  const DType compute = compute_dtype(in[0].dtype);
  const Value x = b.cast(LoweredBuilder::input(0), compute);
  // A row of -inf: its maximum becomes finite, its terms zero, and its sum something to divide by.
  constexpr double kLowest = -3.0e38;
  constexpr double kTiny = 1e-30;
  const Value maximum =
      b.binary(BinaryKind::maximum, b.reduce_last(ReduceKind::max, x), b.scalar(kLowest, compute));
  const Value terms = b.unary(UnaryKind::exp, b.binary(BinaryKind::subtract, x, maximum));
  const Value sum = b.binary(BinaryKind::maximum, b.reduce_last(ReduceKind::sum, terms),
                             b.scalar(kTiny, compute));
  return b.finish({b.cast(b.binary(BinaryKind::divide, terms, sum), in[0].dtype)});
}

MaybeLowered lower_op(const CausalSoftmax&, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape& shape = in[0].shape;
  const std::int64_t keys = shape.back(), queries = shape[shape.size() - 2];
  const Value column = b.add(Arange{0, 1, keys, DType::i32}, {});
  const auto last = static_cast<double>(keys - queries);
  const Value seen = b.reshape(b.add(Arange{last, 1, queries, DType::i32}, {}), {queries, 1});
  const Value mask = b.add(Compare{CompareKind::less_equal}, {column, seen});
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const Value scores =
      b.add(Select{}, {mask, LoweredBuilder::input(0), b.scalar(kNothing, in[0].dtype)});
  return b.finish({b.add(Softmax{}, {scores})});
}

MaybeLowered lower_op(const RmsNorm& op, LowerInputs in) {
  if (in[0].shape.back() == 0) return nothing_of(in);
  Norm norm(in);
  const Value x = norm.x();
  const Value factor = norm.inverse_root_mean_square(x, op.eps);
  return norm.finish(norm.b.binary(BinaryKind::multiply, x, factor), op.has_weight, op.has_bias);
}

MaybeLowered lower_op(const AddRmsNorm& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Value sum = b.binary(BinaryKind::add, LoweredBuilder::input(0), LoweredBuilder::input(1));
  std::vector<Value> operands{sum};
  for (std::size_t i = 2; i < in.size(); ++i) operands.push_back(LoweredBuilder::input(i));
  return b.finish({sum, b.add(RmsNorm{op.eps, op.has_weight, op.has_bias}, operands)});
}

MaybeLowered lower_op(const LayerNorm& op, LowerInputs in) {
  if (in[0].shape.back() == 0) return nothing_of(in);
  Norm norm(in);
  const Value x = norm.x();
  const Value mean = norm.b.reduce_last(ReduceKind::mean, x);
  const Value centred = norm.b.binary(BinaryKind::subtract, x, mean);
  const Value factor = norm.inverse_root_mean_square(centred, op.eps);
  return norm.finish(norm.b.binary(BinaryKind::multiply, centred, factor), op.has_weight,
                     op.has_bias);
}

MaybeLowered lower_op(const Matmul& op, LowerInputs in) {
  const Shape batch = batch_of(infer(op, in)[0].shape);
  const bool same = batch_of(in[0].shape) == batch && batch_of(in[1].shape) == batch;
  if (!same || batch.size() > 1) return matmul_of_one_batch(op, in);
  return in_single_precision(op, in);
}

// One weight at a time; then as a product with the weight dequantised and transposed.
MaybeLowered lower_op(const Linear& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Value x = LoweredBuilder::input(0);
  if (in.size() > 2) {
    std::vector<Value> outputs;
    for (std::size_t i = 1; i < in.size(); ++i) {
      outputs.push_back(b.add(op, {x, LoweredBuilder::input(i)}));
    }
    return b.finish(outputs);
  }
  const Shape result = infer(op, in)[0].shape;
  const std::int64_t features = width(b, x);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < in[0].shape.size(); ++i) rows *= in[0].shape[i];
  const Value weight = b.cast(LoweredBuilder::input(1), DType::f32);
  const Value product =
      b.add(Matmul{}, {b.reshape(x, {rows, features}), b.add(Transpose{{1, 0}}, {weight})});
  return b.finish({b.reshape(product, result)});
}

}  // namespace heddle
