// Reductions, softmax and products.
#include <algorithm>

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

/// All axes of `a`.
Dims all_axes(const Arg& a) {
  Dims axes;
  for (std::size_t i = 0; i < a.ndim(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

/// How many elements a reduction over `axes` combines.
std::int64_t reduced_count(const Arg& a, const Dims& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= a.shape()[static_cast<std::size_t>(axis)];
  return count;
}

/// `a` with `axes` behind the others and joined into one; and the shape with an extent of 1 for
/// each, or without them.
struct LastAxis {
  Array rows;
  Shape kept_shape;
};
LastAxis behind_others(const Array& a, const Dims& axes, bool keepdims) {
  Dims order;
  Shape joined, result;
  for (std::size_t i = 0, next = 0; i < a.ndim(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<std::int64_t>(i)) {
      ++next;
      if (keepdims) result.push_back(1);
    } else {
      order.push_back(static_cast<std::int64_t>(i));
      joined.push_back(a.shape()[i]);
      result.push_back(a.shape()[i]);
    }
  }
  for (const std::int64_t axis : axes) order.push_back(axis);
  joined.push_back(reduced_count(a, axes));
  return {reshape(transpose(a, order), joined), result};
}

}  // namespace

// ---- Kinds of the op Reduce

Array sum(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::sum, a, all_axes(a), keepdims);
}
Array sum(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::sum, a, Dims{axis}, keepdims);
}
Array sum(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::sum, a, axes, keepdims);
}

Array prod(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::prod, a, all_axes(a), keepdims);
}
Array prod(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::prod, a, Dims{axis}, keepdims);
}
Array prod(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::prod, a, axes, keepdims);
}

Array max(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::max, a, all_axes(a), keepdims);
}
Array max(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::max, a, Dims{axis}, keepdims);
}
Array max(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::max, a, axes, keepdims);
}

Array min(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::min, a, all_axes(a), keepdims);
}
Array min(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::min, a, Dims{axis}, keepdims);
}
Array min(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::min, a, axes, keepdims);
}

Array all(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::all, a, all_axes(a), keepdims);
}
Array all(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::all, a, Dims{axis}, keepdims);
}
Array all(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::all, a, axes, keepdims);
}

Array any(const Arg& a, bool keepdims) {
  return reduce(ReduceKind::any, a, all_axes(a), keepdims);
}
Array any(const Arg& a, int axis, bool keepdims) {
  return reduce(ReduceKind::any, a, Dims{axis}, keepdims);
}
Array any(const Arg& a, const Dims& axes, bool keepdims) {
  return reduce(ReduceKind::any, a, axes, keepdims);
}

Array mean(const Arg& a, bool keepdims) {
  return mean(a, all_axes(a), keepdims);
}
Array mean(const Arg& a, int axis, bool keepdims) {
  return mean(a, Dims{axis}, keepdims);
}
Array mean(const Arg& a, const Dims& axes, bool keepdims) {
  return within("mean", a, [&]() -> Array {
    return reduce(ReduceKind::mean, astype(a, at_least_float(a.dtype())), axes, keepdims);
  });
}

// ---- Made of them

Array var(const Arg& a, bool keepdims, int ddof) {
  return var(a, all_axes(a), keepdims, ddof);
}
Array var(const Arg& a, int axis, bool keepdims, int ddof) {
  return var(a, Dims{axis}, keepdims, ddof);
}
Array var(const Arg& a, const Dims& axes, bool keepdims, int ddof) {
  return within("var", a, [&]() -> Array {
    const Dims sorted = sorted_axes(axes, a.ndim(), "var");
    const Array x = astype(a, at_least_float(a.dtype()));
    // In f32 for halves: squares are beyond what f16 holds.
    const bool is_half = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
    const Array wide = is_half ? astype(x, DType::f32) : x;
    const std::int64_t count = reduced_count(a, sorted);
    require(count > 0, ErrorCode::invalid_argument, "var of nothing: {} over axes {}", a.spec(),
            axes);
    const Array squares = square(abs(subtract(wide, mean(wide, sorted, true))));
    const std::int64_t divisor = std::max<std::int64_t>(count - ddof, 0);
    const Array total = sum(squares, sorted, keepdims);
    const Array result = divide(total, astype(Array(static_cast<float>(divisor)), total.dtype()));
    return is_half ? astype(result, x.dtype()) : result;
  });
}
Array std(const Arg& a, bool keepdims, int ddof) {
  return std(a, all_axes(a), keepdims, ddof);
}
Array std(const Arg& a, int axis, bool keepdims, int ddof) {
  return std(a, Dims{axis}, keepdims, ddof);
}
Array std(const Arg& a, const Dims& axes, bool keepdims, int ddof) {
  return within("std", a, [&]() -> Array { return sqrt(var(a, axes, keepdims, ddof)); });
}

Array median(const Arg& a, bool keepdims) {
  return median(a, all_axes(a), keepdims);
}
Array median(const Arg& a, int axis, bool keepdims) {
  return median(a, Dims{axis}, keepdims);
}
Array median(const Arg& a, const Dims& axes, bool keepdims) {
  return within("median", a, [&]() -> Array {
    const Dims sorted = sorted_axes(axes, a.ndim(), "median");
    const std::int64_t count = reduced_count(a, sorted);
    require(count > 0, ErrorCode::invalid_argument, "median of nothing: {} over axes {}", a.spec(),
            axes);
    const Array x = astype(a, at_least_float(a.dtype()));
    const LastAxis last = behind_others(x, sorted, keepdims);
    const std::int64_t middle = count / 2;
    const Array largest = apply_multi(TopK{middle + 1}, {last.rows}).front();
    const auto place = [&](std::int64_t begin, std::int64_t end) {
      Dims start(largest.ndim(), 0), stop = largest.shape();
      start[start.size() - 1] = begin;
      stop[stop.size() - 1] = end;
      return mean(slice(largest, start, stop), -1);
    };
    const Array halfway = place(middle - (count % 2 == 0), middle + 1);
    const Array first = place(0, 1);  // NaN counts as the largest
    return reshape(where(isnan(first), first, halfway), last.kept_shape);
  });
}

Array logsumexp(const Arg& a, bool keepdims) {
  return logsumexp(a, all_axes(a), keepdims);
}
Array logsumexp(const Arg& a, int axis, bool keepdims) {
  return logsumexp(a, Dims{axis}, keepdims);
}
Array logsumexp(const Arg& a, const Dims& axes, bool keepdims) {
  return within("logsumexp", a, [&]() -> Array {
    const Dims sorted = sorted_axes(axes, a.ndim(), "logsumexp");
    const Array x = astype(a, at_least_float(a.dtype()));
    require(is_floating(x.dtype()), ErrorCode::invalid_argument,
            "logsumexp: {} must be of a real type", a.spec());
    if (reduced_count(a, sorted) == 0) return log(sum(x, sorted, keepdims));
    const Array largest = max(x, sorted, true);
    // The result does not depend on it, so derivatives need not go through it either.
    const Array shift = stop_gradient(where(isfinite(largest), largest, zeros({}, x.dtype())));
    const Array logs = log(sum(exp(subtract(x, shift)), sorted, true)) + shift;
    return keepdims ? logs : squeeze(logs, sorted);
  });
}

Array count_nonzero(const Arg& a, bool keepdims) {
  return count_nonzero(a, all_axes(a), keepdims);
}
Array count_nonzero(const Arg& a, int axis, bool keepdims) {
  return count_nonzero(a, Dims{axis}, keepdims);
}
Array count_nonzero(const Arg& a, const Dims& axes, bool keepdims) {
  return within("count_nonzero", a, [&]() -> Array {
    return reduce(ReduceKind::sum, not_equal(a, zeros({}, a.dtype())), axes, keepdims);
  });
}

namespace {

/// `end` as a part that goes before or behind `a` along `axis`.
Array edge_of(const Array& a, const Array& end, std::size_t axis) {
  require(end.ndim() == 0 || end.ndim() == a.ndim(), ErrorCode::invalid_argument,
          "diff: {} goes neither before nor behind {}", end.spec(), a.spec());
  if (end.ndim() != 0) return end;
  Shape shape = a.shape();
  shape[axis] = 1;
  return broadcast_to(end, shape);
}

}  // namespace

Array diff(const Arg& a, int n, int axis, const std::optional<Array>& prepend,
           const std::optional<Array>& append) {
  return within("diff", a, [&]() -> Array {
    require(n >= 0, ErrorCode::invalid_argument, "diff: {} times; it must not be negative", n);
    const std::size_t at = normalize_axis(axis, a.ndim(), "diff");
    std::vector<Array> parts;
    if (prepend) parts.push_back(edge_of(a, *prepend, at));
    parts.push_back(a);
    if (append) parts.push_back(edge_of(a, *append, at));
    Array x = concatenate(parts, static_cast<int>(at));
    const std::int64_t times = std::min<std::int64_t>(n, x.shape()[at]);
    for (std::int64_t i = 0; i < times; ++i) {
      Dims first(x.ndim(), 0), second = first, stop = x.shape(), before = stop;
      second[at] = 1;
      before[at] = std::max<std::int64_t>(stop[at] - 1, 0);
      const Array left = slice(x, first, before), right = slice(x, second, stop);
      x = x.dtype() == DType::bool_ ? not_equal(right, left) : subtract(right, left);
    }
    return x;
  });
}

// ---- Softmax

Array softmax(const Arg& a, bool precise) {
  return softmax(a, all_axes(a), precise);
}
Array softmax(const Arg& a, int axis, bool precise) {
  return softmax(a, Dims{axis}, precise);
}
Array softmax(const Arg& a, const Dims& axes, bool) {
  return within("softmax", a, [&]() -> Array {
    const Dims sorted = sorted_axes(axes, a.ndim(), "softmax");
    const Array x = astype(a, at_least_float(a.dtype()));
    const auto rank = static_cast<std::int64_t>(a.ndim());
    if (sorted.size() == 1 && sorted[0] == rank - 1) return heddle::apply(Softmax{}, {x});
    if (sorted.size() == 1) {
      const int at = static_cast<int>(sorted[0]);
      return swapaxes(heddle::apply(Softmax{}, {swapaxes(x, at, -1)}), at, -1);
    }
    const LastAxis last = behind_others(x, sorted, false);
    const Array rows = heddle::apply(Softmax{}, {last.rows});
    Shape apart = last.kept_shape;
    Dims back(a.ndim(), 0);
    for (std::size_t i = 0, kept = 0, next = 0; i < a.ndim(); ++i) {
      const bool reduced = next < sorted.size() && sorted[next] == static_cast<std::int64_t>(i);
      back[i] = static_cast<std::int64_t>(reduced ? last.kept_shape.size() + next++ : kept++);
      if (reduced) apart.push_back(a.shape()[i]);
    }
    return transpose(reshape(rows, apart), back);
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
