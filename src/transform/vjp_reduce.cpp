// Reductions and scans backwards.
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// With the reduced axes back, as 1.
Shape kept_shape(const Reduce& op, const Shape& shape) {
  Shape kept = shape;
  for (const std::int64_t axis : op.axes) kept[static_cast<std::size_t>(axis)] = 1;
  return kept;
}

std::int64_t reduced_count(const Reduce& op, const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t axis : op.axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

/// The axes in an order in which the reduced ones come last.
Dims reduced_last(const Reduce& op, std::size_t rank) {
  Dims order;
  const auto is_reduced = [&](std::int64_t axis) { return std::ranges::count(op.axes, axis) > 0; };
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i) {
    if (!is_reduced(i)) order.push_back(i);
  }
  for (const std::int64_t axis : op.axes) order.push_back(axis);
  return order;
}

/// For each element the product of all others, without dividing by any.
Array product_of_others(const Reduce& op, const Array& x) {
  const Dims order = reduced_last(op, x.ndim());
  const Array ordered = transpose(x, order);
  Shape lines(std::span(ordered.shape().begin(), x.ndim() - op.axes.size()));
  lines.push_back(reduced_count(op, x.shape()));
  const Array line = reshape(ordered, lines);
  const Array before = cumprod(line, -1, false, false), behind = cumprod(line, -1, true, false);
  return transpose(reshape(before * behind, ordered.shape()), inverse_order(order));
}

Scan summing(std::int64_t axis, bool reverse, bool exclusive) {
  return {ScanKind::sum, axis, reverse, exclusive};
}

/// What lies `steps` further along the scan, zeros beyond its end.
Array further(const Scan& op, const Array& a, std::int64_t steps = 1) {
  const auto axis = static_cast<std::size_t>(op.axis);
  const std::int64_t extent = a.shape()[axis];
  const std::int64_t by = std::min(steps, extent);
  Dims start(a.ndim(), 0), stop = a.shape(), low(a.ndim(), 0), high(a.ndim(), 0);
  if (op.reverse) {
    stop[axis] = extent - by;
    low[axis] = by;
  } else {
    start[axis] = by;
    high[axis] = by;
  }
  return heddle::apply(Pad{Pad::Mode::constant, low, high},
                       {slice(a, start, stop), scalar(0, a.dtype())});
}

/// r with r_i = b_i + a_i r_(i+1), where i+1 is further along the scan: by doubling, so that
/// nothing is divided and the result has derivatives of every order.
Array recurrence(const Scan& op, Array a, Array b) {
  const std::int64_t extent = b.shape()[static_cast<std::size_t>(op.axis)];
  for (std::int64_t steps = 1; steps < extent; steps *= 2) {
    b = b + a * further(op, b, steps);
    a = a * further(op, a, steps);
  }
  return b;
}

/// x_i is a factor of all that comes from i on (or behind i): of each, the product of those before
/// i times that of those behind it.
Array cumprod_vjp(const Scan& op, const Array& x, const Array& g) {
  const Array before = heddle::apply(Scan{ScanKind::prod, op.axis, op.reverse, true}, {x});
  const Array behind = recurrence(op, conjugate(further(op, x)), op.exclusive ? further(op, g) : g);
  return conjugate(before) * behind;
}

/// The element that was the largest (or smallest) so far, the last of equals, gets everything.
Array cumulative_extreme_vjp(const Scan& op, const Array& x, const Array& cotangent) {
  const Scan inclusive{op.kind, op.axis, op.reverse, false};
  const Array g = op.exclusive ? further(op, cotangent) : cotangent;
  const Array y = heddle::apply(inclusive, {x});
  Shape line(x.ndim(), 1);
  const std::int64_t extent = x.shape()[static_cast<std::size_t>(op.axis)];
  line[static_cast<std::size_t>(op.axis)] = extent;
  const Array place = reshape(heddle::apply(Arange{0, 1, extent, DType::i64}, {}), line);
  const Array unknown = Array(op.reverse ? static_cast<std::int64_t>(extent) : std::int64_t{-1});
  const Array latest =
      heddle::apply(Scan{op.reverse ? ScanKind::min : ScanKind::max, op.axis, op.reverse, false},
                    {where(x == y, place, unknown)});
  // NaN equals nothing, not even itself: such lines have no place to go back to.
  const Array known = logical_and(latest >= 0, latest < Array(extent));
  const Array places = where(known, latest, Array(std::int64_t{0}));
  return heddle::apply(ScatterAxis{op.axis, ScatterKind::sum},
                       {zeros_like(x), places, where(known, g, zeros_like(g))});
}

/// The sum behind of g_i e^(x - y_i), in logarithms, since e^-y alone may be too large: positive
/// and negative g apart.
Array logcumsumexp_vjp(const Scan& op, const Array& x, const Array& y, const Array& g) {
  const Scan back{ScanKind::logaddexp, op.axis, !op.reverse, op.exclusive};
  const Array lowest = scalar(-std::numeric_limits<double>::infinity(), x.dtype());
  const auto part = [&](const Array& positive) {
    const Array some = logical_and(positive > 0, y > lowest);
    const Array log_g = where(some, log(where(some, positive, ones_like(g))) - y, lowest);
    return exp(x + heddle::apply(back, {log_g}));
  };
  return part(g) - part(-g);
}

}  // namespace

InputCotangents vjp_rule(const Reduce& op, const Backward& b) {
  const Array& x = b.in[0];
  if (!is_differentiable(b.out[0].dtype())) return {std::nullopt};
  const Shape kept = kept_shape(op, x.shape());
  const Array g = reshape(b.g(), kept);
  switch (op.kind) {
    case ReduceKind::sum:
      return {astype(broadcast_to(g, x.shape()), x.dtype())};
    case ReduceKind::mean: {
      const auto count = static_cast<double>(reduced_count(op, x.shape()));
      return {broadcast_to(g / scalar(count, g.dtype()), x.shape())};
    }
    case ReduceKind::max:
    case ReduceKind::min: {
      const Array here = astype(x == reshape(b.out[0], kept), g.dtype());
      const Array count = astype(sum(astype(here, DType::f32), op.axes, true), g.dtype());
      return {here * (g / maximum(count, ones_like(count)))};
    }
    case ReduceKind::prod:
      return {g * conjugate(product_of_others(op, x))};
    default:
      return {std::nullopt};
  }
}

InputCotangents vjp_rule(const Scan& op, const Backward& b) {
  const Array& x = b.in[0];
  if (!is_differentiable(b.out[0].dtype())) return {std::nullopt};
  const Array g = b.g();
  switch (op.kind) {
    case ScanKind::sum:
      return {heddle::apply(summing(op.axis, !op.reverse, op.exclusive), {g})};
    case ScanKind::prod:
      return {cumprod_vjp(op, x, g)};
    case ScanKind::max:
    case ScanKind::min:
      return {cumulative_extreme_vjp(op, x, g)};
    case ScanKind::logaddexp:
      return {logcumsumexp_vjp(op, x, b.out[0], g)};
  }
  return {std::nullopt};
}

}  // namespace heddle
