// Reductions, softmax and products.
#include "array/ops_common.h"

namespace heddle {

namespace {

Array reduce(ReduceKind kind, const Arg& a, const Dims& axes, bool keepdims) {
  const std::string function(to_string(kind));
  return within(function, a, [&] {
    const Reduce op{kind, sorted_axes(axes, a.ndim(), function.c_str()), keepdims};
    if (op.axes.empty()) return astype(a, infer(op, std::span(&a.spec(), 1)).front().dtype);
    return heddle::apply(op, {a});
  });
}

Array reduce_all(ReduceKind kind, const Arg& a, bool keepdims) {
  Dims axes;
  for (std::size_t i = 0; i < a.ndim(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return reduce(kind, a, axes, keepdims);
}

}  // namespace

Array sum(const Arg& a, bool keepdims) {
  return reduce_all(ReduceKind::sum, a, keepdims);
}
Array sum(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::sum, a, Dims{axis}, keepdims);
}
Array sum(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::sum, a, axes, keepdims);
}
Array mean(const Arg& a, bool keepdims) {
  return within("mean", a, [&] {
    return reduce_all(ReduceKind::mean, astype(a, at_least_float(a.dtype())), keepdims);
  });
}
Array mean(const Arg& a, int axis, bool keepdims) {
  return mean(a, Dims{axis}, keepdims);
}
Array mean(const Arg& a, const Dims& axes, bool keepdims) {
  return within("mean", a, [&] {
    return reduce(ReduceKind::mean, astype(a, at_least_float(a.dtype())), axes, keepdims);
  });
}
Array max(const Arg& a, bool keepdims) {
  return reduce_all(ReduceKind::max, a, keepdims);
}
Array max(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::max, a, Dims{axis}, keepdims);
}
Array max(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::max, a, axes, keepdims);
}
Array min(const Arg& a, bool keepdims) {
  return reduce_all(ReduceKind::min, a, keepdims);
}
Array min(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::min, a, Dims{axis}, keepdims);
}
Array min(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::min, a, axes, keepdims);
}
Array prod(const Arg& a, bool keepdims) {
  return reduce_all(ReduceKind::prod, a, keepdims);
}
Array prod(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::prod, a, Dims{axis}, keepdims);
}
Array prod(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::prod, a, axes, keepdims);
}

Array softmax(const Arg& a, int axis) {
  return within("softmax", a, [&]() -> Array {
    const std::size_t at = normalize_axis(axis, a.ndim(), "softmax");
    const Array x = astype(a, at_least_float(a.dtype()));
    if (at + 1 == a.ndim()) return heddle::apply(Softmax{}, {x});

    return swapaxes(heddle::apply(Softmax{}, {swapaxes(x, axis, -1)}), axis, -1);
  });
}

// ---- Products

std::vector<Array> linear(const Arg& x, const std::vector<Array>& weights) {
  return within("linear", x, [&]() -> std::vector<Array> {
    std::vector<Array> inputs = {is_floating(x.dtype()) ? astype(x, DType::f32) : x.array()};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    return heddle::apply_multi(Linear{}, std::move(inputs));
  });
}

Array linear(const Arg& x, const Arg& weight) {
  return linear(x, std::vector<Array>{weight}).front();
}

Array grouped_linear(const Arg& x, const Arg& weights, const Arg& experts) {
  return within("grouped_linear", x, [&]() -> Array {
    const Array rows = is_floating(x.dtype()) ? astype(x, DType::f32) : x.array();
    const Array chosen =
        is_integer(experts.dtype()) ? astype(experts, DType::i32) : experts.array();
    return heddle::apply(GroupedLinear{}, {rows, weights, chosen});
  });
}

}  // namespace heddle
