// What works along an axis: scans, index reductions, top k, gather and scatter, padding, norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/reference.h"

namespace heddle::test {

ReduceKind combining_kind(ScatterKind kind) {
  switch (kind) {
    case ScatterKind::prod:
      return ReduceKind::prod;
    case ScatterKind::max:
      return ReduceKind::max;
    case ScatterKind::min:
      return ReduceKind::min;
    default:
      return ReduceKind::sum;
  }
}

namespace {

using Complex = std::complex<Number>;
using Line = std::vector<std::size_t>;  // flat indices of its elements

Complex value(const Values& x, std::size_t i) {
  return {x.real[i], x.imaginary.empty() ? 0 : x.imaginary[i]};
}
void set(Values& x, std::size_t i, Complex v) {
  x.real[i] = v.real();
  if (!x.imaginary.empty()) x.imaginary[i] = v.imag();
}

/// Calls f(index of the line's first element, the line) for all lines of `shape` along `axis`.
template <class F>
void for_each_line(const Shape& shape, std::int64_t axis, const F& f) {
  Shape firsts = shape;
  const auto a = static_cast<std::size_t>(axis);
  firsts[a] = 1;
  for_each_index(firsts, [&](const Dims& first) {
    Line line;
    Dims at = first;
    for (at[a] = 0; at[a] < shape[a]; ++at[a]) line.push_back(flat_index(shape, at));
    f(first, line);
  });
}

Line line_through(const Shape& shape, std::int64_t axis, Dims first) {
  Line line;
  const auto a = static_cast<std::size_t>(axis);
  for (first[a] = 0; first[a] < shape[a]; ++first[a]) line.push_back(flat_index(shape, first));
  return line;
}

// ---- Scans

Number lowest(DType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<Number>::infinity();
  const bool negative = info(dtype).kind == DTypeKind::signed_int;
  return negative ? -std::ldexp(Number{1}, static_cast<int>(item_size(dtype)) * 8 - 1) : 0;
}
Number highest(DType dtype) {
  if (is_floating(dtype)) return std::numeric_limits<Number>::infinity();
  if (dtype == DType::bool_) return 1;
  const int bits = static_cast<int>(item_size(dtype)) * 8;
  const bool negative = info(dtype).kind == DTypeKind::signed_int;
  return std::ldexp(Number{1}, negative ? bits - 1 : bits) - 1;
}

Complex of_nothing(ScanKind kind, DType dtype) {
  switch (kind) {
    case ScanKind::sum:
      return 0;
    case ScanKind::prod:
      return 1;
    case ScanKind::max:
      return lowest(dtype);
    case ScanKind::min:
      return highest(dtype);
    case ScanKind::logaddexp:
      return -std::numeric_limits<Number>::infinity();
  }
  return 0;
}

Complex combined(ScanKind kind, DType dtype, Complex a, Complex b) {
  switch (kind) {
    case ScanKind::sum:
      return reference_combine(ReduceKind::sum, dtype, a, b);
    case ScanKind::prod:
      return reference_combine(ReduceKind::prod, dtype, a, b);
    case ScanKind::max:
      return reference_combine(ReduceKind::max, dtype, a, b);
    case ScanKind::min:
      return reference_combine(ReduceKind::min, dtype, a, b);
    case ScanKind::logaddexp: {
      const Number x = a.real(), y = b.real();
      if (std::isnan(x) || std::isnan(y)) return NAN;
      const Number most = std::max(x, y);
      if (std::isinf(most)) return most;
      return most + std::log(std::exp(x - most) + std::exp(y - most));
    }
  }
  return a;
}

Values scan(const Scan& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  for_each_line(x.spec.shape, op.axis, [&](const Dims&, Line line) {
    if (op.reverse) std::reverse(line.begin(), line.end());
    Complex so_far = of_nothing(op.kind, out.spec.dtype);
    for (const std::size_t i : line) {
      const Complex with = combined(op.kind, out.spec.dtype, so_far, value(x, i));
      set(out, i, op.exclusive ? so_far : with);
      so_far = with;
    }
  });
  return out;
}

// ---- Order

/// Whether `a` stands before `b` among the largest first.
bool stands_before(Number a, Number b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

Values arg_reduce(const ArgReduce& op, const Values& x) {
  Values out(infer(op, std::span(&x.spec, 1))[0]);
  std::size_t next = 0;
  for_each_line(x.spec.shape, op.axis, [&](const Dims&, const Line& line) {
    const auto best = std::min_element(line.begin(), line.end(), [&](std::size_t i, std::size_t j) {
      const Number a = x.real[i], b = x.real[j];
      if (op.kind == ArgReduceKind::max || std::isnan(a) || std::isnan(b)) {
        return stands_before(a, b);
      }
      return a < b;
    });
    out.real[next++] = static_cast<Number>(best - line.begin());
  });
  return out;
}

std::vector<Values> top_k(const TopK& op, const Values& x) {
  const std::vector<TensorSpec> specs = infer(op, std::span(&x.spec, 1));
  Values values(specs[0]), indices(specs[1]);
  std::size_t next = 0;
  for_each_line(x.spec.shape, static_cast<std::int64_t>(x.spec.shape.size()) - 1,
                [&](const Dims&, const Line& line) {
                  std::vector<std::size_t> order(line.size());
                  std::iota(order.begin(), order.end(), std::size_t{0});
                  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
                    return stands_before(x.real[line[i]], x.real[line[j]]);
                  });
                  for (std::size_t i = 0; i < static_cast<std::size_t>(op.k); ++i, ++next) {
                    values.real[next] = x.real[line[order[i]]];
                    indices.real[next] = static_cast<Number>(order[i]);
                  }
                });
  return {values, indices};
}

// ---- Gather and scatter

/// Element number `index` of a line; negative ones count from its end.
std::size_t element_at(const Line& line, Number index) {
  if (index < 0) index += static_cast<Number>(line.size());
  return line.at(static_cast<std::size_t>(index));
}

Values gather_axis(const GatherAxis& op, const Values& x, const Values& indices) {
  Values out({x.spec.dtype, indices.spec.shape});
  for_each_line(indices.spec.shape, op.axis, [&](const Dims& first, const Line& line) {
    const Line from = line_through(x.spec.shape, op.axis, first);
    for (const std::size_t i : line) {
      set(out, i, value(x, element_at(from, indices.real[i])));
    }
  });
  return out;
}

Values scatter_axis(const ScatterAxis& op, const std::vector<Values>& in) {
  Values out = in[0];
  const ReduceKind kind = combining_kind(op.kind);
  for_each_line(in[1].spec.shape, op.axis, [&](const Dims& first, const Line& line) {
    const Line to = line_through(out.spec.shape, op.axis, first);
    for (const std::size_t i : line) {
      const std::size_t at = element_at(to, in[1].real[i]);
      const Complex update = value(in[2], i);
      set(out, at,
          op.kind == ScatterKind::none
              ? update
              : reference_combine(kind, out.spec.dtype, value(out, at), update));
    }
  });
  return out;
}

Values pad(const Pad& op, const std::vector<Values>& in) {
  std::vector<TensorSpec> specs;
  for (const Values& x : in) specs.push_back(x.spec);
  Values out(infer(op, specs)[0]);
  const Shape& shape = in[0].spec.shape;
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](Dims index) {
    bool outside = false;
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] -= op.low[i];
      outside = outside || index[i] < 0 || index[i] >= shape[i];
      if (op.mode == Pad::Mode::edge) {
        index[i] = std::clamp<std::int64_t>(index[i], 0, shape[i] - 1);
      }
    }
    const bool takes_value = outside && op.mode == Pad::Mode::constant;
    set(out, next++, takes_value ? value(in[1], 0) : value(in[0], flat_index(shape, index)));
  });
  return out;
}

// ---- Norms

/// The elements at `at`, less their mean and by their deviation.
void normalize(const Values& x, const Line& at, Number eps, Values& out) {
  const auto count = static_cast<Number>(at.size());
  Number mean = 0, variance = 0;
  for (const std::size_t i : at) mean += x.real[i] / count;
  for (const std::size_t i : at) variance += (x.real[i] - mean) * (x.real[i] - mean) / count;
  for (const std::size_t i : at) out.real[i] = (x.real[i] - mean) / std::sqrt(variance + eps);
}

/// Weight and bias of each channel, which lie along `axis`.
template <class Norm>
void scale_and_shift(const Norm& op, const std::vector<Values>& in, std::int64_t axis,
                     Values& out) {
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const auto channel = static_cast<std::size_t>(index[static_cast<std::size_t>(axis)]);
    Number& y = out.real[next++];
    if (op.has_weight) y *= in[1].real[channel];
    if (op.has_bias) y += in[1 + std::size_t{op.has_weight}].real[channel];
  });
}

Values channel_norm(const ChannelNorm& op, const std::vector<Values>& in) {
  Values out(in[0].spec);
  for_each_line(out.spec.shape, op.axis, [&](const Dims&, const Line& line) {
    normalize(in[0], line, static_cast<Number>(op.eps), out);
  });
  scale_and_shift(op, in, op.axis, out);
  return out;
}

Values group_norm(const GroupNorm& op, const std::vector<Values>& in) {
  Values out(in[0].spec);
  const Shape& shape = out.spec.shape;
  const std::int64_t width = shape.back() / op.groups;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t g = 0; g < op.groups; ++g) {
      Line group;
      std::size_t next = 0;
      for_each_index(shape, [&](const Dims& index) {
        if (index[0] == n && index.back() / width == g) group.push_back(next);
        ++next;
      });
      normalize(in[0], group, static_cast<Number>(op.eps), out);
    }
  }
  scale_and_shift(op, in, static_cast<std::int64_t>(shape.size()) - 1, out);
  return out;
}

}  // namespace

std::vector<Values> reference_axis(const Op& op, const std::vector<Values>& in) {
  if (const auto* o = std::get_if<Scan>(&op)) return {scan(*o, in[0])};
  if (const auto* o = std::get_if<ArgReduce>(&op)) return {arg_reduce(*o, in[0])};
  if (const auto* o = std::get_if<TopK>(&op)) return top_k(*o, in[0]);
  if (const auto* o = std::get_if<GatherAxis>(&op)) return {gather_axis(*o, in[0], in[1])};
  if (const auto* o = std::get_if<ScatterAxis>(&op)) return {scatter_axis(*o, in)};
  if (const auto* o = std::get_if<Pad>(&op)) return {pad(*o, in)};
  if (const auto* o = std::get_if<ChannelNorm>(&op)) return {channel_norm(*o, in)};
  if (const auto* o = std::get_if<GroupNorm>(&op)) return {group_norm(*o, in)};
  return {};
}

}  // namespace heddle::test
