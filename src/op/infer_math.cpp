#include <algorithm>
#include <cmath>
#include <optional>

#include "op/infer.h"

namespace heddle {

namespace {

unsigned accepted(UnaryKind kind) {
  using enum UnaryKind;
  switch (kind) {
    case abs:
    case negative:
    case sign:
    case square:
      return kNumber;
    case silu:
    case gelu:
    case gelu_tanh:
    case relu:
    case erf:
    case erfinv:
    case floor:
    case ceil:
    case trunc:
      return kFloat;
    case bitwise_invert:
      return kBool | kInteger;
    case conjugate:
    case real:
    case imag:
      return kComplex;
    case logical_not:
      return kPlain;
    default:
      return kFloat | kComplex;
  }
}

DType result_of(UnaryKind kind, DType dtype) {
  using enum UnaryKind;
  switch (kind) {
    case logical_not:
    case isnan:
    case isinf:
    case isfinite:
      return DType::bool_;
    case abs:
    case real:
    case imag:
      return dtype == DType::complex64 ? DType::f32 : dtype;
    default:
      return dtype;
  }
}

unsigned accepted(BinaryKind kind) {
  using enum BinaryKind;
  switch (kind) {
    case add:
    case multiply:
    case logical_and:
    case logical_or:
      return kPlain;
    case subtract:
    case power:
      return kNumber;
    case maximum:
    case minimum:
      return kBool | kInteger | kFloat;
    case divide:
      return kFloat | kComplex;
    case floor_divide:
    case remainder:
      return kInteger | kFloat;
    case logaddexp:
    case arctan2:
      return kFloat;
    case bitwise_and:
    case bitwise_or:
    case bitwise_xor:
      return kBool | kInteger;
    case left_shift:
    case right_shift:
      return kInteger;
  }
  return 0;
}

bool gives_bool(BinaryKind kind) {
  return kind == BinaryKind::logical_and || kind == BinaryKind::logical_or;
}

DType accumulated(DType dtype) {
  const bool small = dtype == DType::bool_ || (is_integer(dtype) && info(dtype).block_bytes < 4);
  return small ? DType::i32 : dtype;
}

DType reduced_dtype(const Operands& in, ReduceKind kind) {
  const DType dtype = in[0].dtype;
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::prod:
      in.check_kind(0, kPlain);
      return accumulated(dtype);
    case ReduceKind::mean:
      in.check_kind(0, kPlain);
      return is_integer(dtype) || dtype == DType::bool_ ? DType::f32 : dtype;
    case ReduceKind::max:
    case ReduceKind::min:
      in.check_kind(0, kBool | kInteger | kFloat);
      return dtype;
    case ReduceKind::all:
    case ReduceKind::any:
      in.check_kind(0, kPlain);
      return DType::bool_;
  }
  return dtype;
}

void check_reduced_axes(const Operands& in, const Dims& axes) {
  const auto rank = static_cast<std::int64_t>(in[0].shape.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    in.check(axes[i] >= 0 && axes[i] < rank, "axis {} is outside [0, {}) of {}", axes[i], rank,
             in[0]);
    in.check(i == 0 || axes[i - 1] < axes[i], "axes {} are not sorted and distinct", axes);
  }
}

/// Operand 0 is x, the `more` operands before the weight are like it; weight and bias go along
/// `axis` of it, by default the last.
void check_norm(const Operands& in, std::size_t more, float eps, bool has_weight, bool has_bias,
                const char* what, std::optional<std::int64_t> axis = {}) {
  const std::size_t count = 1 + more + has_weight + has_bias;
  if (in.size() != count) {
    in.check_count(
        count, fmt::format("{}{}{}", what, has_weight ? ", weight" : "", has_bias ? ", bias" : ""));
  }
  in.check_min_rank(0, 1, "x");
  in.check_floating(0, "x");
  if (axis) in.check_axis(0, *axis);
  const std::int64_t width = axis ? in[0].shape[*axis] : in[0].shape.back();
  std::size_t next = 1 + more;
  if (has_weight) in.check_vector(next++, width, in[0].dtype, "the weight");
  if (has_bias) in.check_vector(next++, width, in[0].dtype, "the bias");
  in.check(std::isfinite(eps) && eps >= 0, "eps {}; it must be finite and not negative", eps);
}

Shape batch_of(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.begin(), shape.size() - 2));
}

bool is_weight_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || is_block(dtype);
}

}  // namespace

Specs infer_op(const Unary& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_kind(0, accepted(op.kind));
  return {{result_of(op.kind, in[0].dtype), in[0].shape}};
}

Specs infer_op(const Binary& op, const Operands& in) {
  in.check_count(2, "a, b");
  in.check_one_dtype();
  in.check_kind(0, accepted(op.kind));
  return {{gives_bool(op.kind) ? DType::bool_ : in[0].dtype, in.broadcast()}};
}

Specs infer_op(const Compare& op, const Operands& in) {
  in.check_count(2, "a, b");
  in.check_one_dtype();
  const bool ordered = op.kind != CompareKind::equal && op.kind != CompareKind::not_equal;
  in.check_kind(0, ordered ? kPlain & ~kComplex : kPlain);
  return {{DType::bool_, in.broadcast()}};
}

Specs infer_op(const Select&, const Operands& in) {
  in.check_count(3, "condition, a, b");
  in.check(in[0].dtype == DType::bool_, "the condition is {}; it must be bool", in[0]);
  in.check_one_dtype(1);
  in.check_kind(1, kPlain);
  return {{in[1].dtype, in.broadcast()}};
}

Specs infer_op(const GatedMultiply& op, const Operands& in) {
  using enum UnaryKind;
  in.check_count(2, "gate, up");
  in.check(op.activation == silu || op.activation == gelu || op.activation == gelu_tanh ||
               op.activation == relu,
           "activation {}; it must be silu, gelu, gelu_tanh or relu", to_string(op.activation));
  in.check_floating(0, "the gate");
  in.check_spec(1, in[0], "up");
  return {in[0]};
}

Specs infer_op(const Reduce& op, const Operands& in) {
  in.check_count(1, "x");
  check_reduced_axes(in, op.axes);
  const DType dtype = reduced_dtype(in, op.kind);
  Shape result;
  bool of_nothing = false;
  for (std::size_t i = 0, next = 0; i < in[0].shape.size(); ++i) {
    const bool reduced = next < op.axes.size() && op.axes[next] == static_cast<std::int64_t>(i);
    if (reduced) {
      ++next;
      of_nothing = of_nothing || in[0].shape[i] == 0;
      if (op.keepdims) result.push_back(1);
    } else {
      result.push_back(in[0].shape[i]);
    }
  }
  const bool has_identity =
      op.kind != ReduceKind::max && op.kind != ReduceKind::min && op.kind != ReduceKind::mean;
  in.check(has_identity || !of_nothing, "{} of nothing: {} over axes {}", to_string(op.kind), in[0],
           op.axes);
  return {{dtype, result}};
}

Specs infer_op(const Softmax&, const Operands& in) {
  in.check_count(1, "x");
  in.check_min_rank(0, 1, "x");
  in.check_floating(0, "x");
  return {in[0]};
}

Specs infer_op(const CausalSoftmax&, const Operands& in) {
  in.check_count(1, "x");
  in.check_min_rank(0, 2, "x");
  in.check_floating(0, "x");
  return {in[0]};
}

Specs infer_op(const RmsNorm& op, const Operands& in) {
  check_norm(in, 0, op.eps, op.has_weight, op.has_bias, "x");
  return {in[0]};
}

Specs infer_op(const AddRmsNorm& op, const Operands& in) {
  check_norm(in, 1, op.eps, op.has_weight, op.has_bias, "a, b");
  in.check_spec(1, in[0], "b");
  return {in[0], in[0]};
}

Specs infer_op(const LayerNorm& op, const Operands& in) {
  check_norm(in, 0, op.eps, op.has_weight, op.has_bias, "x");
  return {in[0]};
}

Specs infer_op(const ChannelNorm& op, const Operands& in) {
  check_norm(in, 0, op.eps, op.has_weight, op.has_bias, "x", op.axis);
  return {in[0]};
}

Specs infer_op(const GroupNorm& op, const Operands& in) {
  check_norm(in, 0, op.eps, op.has_weight, op.has_bias, "x");
  in.check_min_rank(0, 2, "x");
  in.check(op.groups > 0 && in[0].shape.back() % op.groups == 0,
           "the {} channels of x {} do not divide into {} groups", in[0].shape.back(), in[0],
           op.groups);
  return {in[0]};
}

Specs infer_op(const Matmul&, const Operands& in) {
  in.check_count(2, "a, b");
  in.check_min_rank(0, 2, "a");
  in.check_min_rank(1, 2, "b");
  in.check_kind(0, kFloat | kComplex);
  in.check_one_dtype();
  const Shape& a = in[0].shape;
  const Shape& b = in[1].shape;
  in.check(a.back() == b[b.size() - 2], "{} and {}: the columns of a are not the rows of b", in[0],
           in[1]);
  const TensorSpec batches[] = {{in[0].dtype, batch_of(a)}, {in[1].dtype, batch_of(b)}};
  Shape result;
  try {
    result = broadcast_shapes(batches[0].shape, batches[1].shape);
  } catch (const Error&) {
    in.check(false, "the batches of {} and {} do not broadcast", in[0], in[1]);
  }
  result.push_back(a[a.size() - 2]);
  result.push_back(b.back());
  return {{in[0].dtype, result}};
}

Specs infer_op(const Linear&, const Operands& in) {
  in.check(in.size() >= 2, "takes x and at least one weight, but was given {} ({})", in.size(),
           in.all());
  in.check_min_rank(0, 1, "x");
  in.check(in[0].dtype == DType::f32, "x is {}; it must be f32", in[0]);
  Specs outputs;
  for (std::size_t i = 1; i < in.size(); ++i) {
    const TensorSpec& weight = in[i];
    in.check(is_weight_dtype(weight.dtype),
             "weight {} is {}; it must be f32, f16, bf16 or a block type", i - 1, weight);
    in.check(weight.shape.size() == 2 && weight.shape[1] == in[0].shape.back(),
             "weight {} is {}; for x {} it must be [out, {}]", i - 1, weight, in[0],
             in[0].shape.back());
    Shape shape = in[0].shape;
    shape[shape.size() - 1] = weight.shape[0];
    outputs.push_back({DType::f32, shape});
  }
  return outputs;
}

Specs infer_op(const GroupedLinear&, const Operands& in) {
  in.check_count(3, "x, weights, expert");
  in.check_rank(0, 2, "x");
  in.check(in[0].dtype == DType::f32, "x is {}; it must be f32", in[0]);
  in.check(is_weight_dtype(in[1].dtype),
           "the weights are {}; they must be f32, f16, bf16 or a block type", in[1]);
  in.check(in[1].shape.size() == 3 && in[1].shape[2] == in[0].shape[1],
           "the weights are {}; for x {} they must be [experts, out, {}]", in[1], in[0],
           in[0].shape[1]);
  const TensorSpec wanted{DType::i32, {in[0].shape[0]}};
  in.check(in[2] == wanted, "expert is {}; for x {} it must be {}", in[2], in[0], wanted);
  return {{DType::f32, {in[0].shape[0], in[1].shape[1]}}};
}

}  // namespace heddle
