// Reading and writing by indices backwards: what was read is added to, what was written is read.
#include <functional>
#include <utility>

#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// Places in an array that indices name, for reading and for each way of writing.
struct Places {
  std::function<Array(const Array& from)> read;
  std::function<Array(const Array& into, const Array& values, ScatterKind kind)> write;
};

/// Elements along an axis.
Places along_axis(const Array& indices, std::int64_t axis) {
  return {[=](const Array& from) {
            return heddle::apply(GatherAxis{axis}, {from, indices});
          },
          [=](const Array& into, const Array& values, ScatterKind kind) {
            return heddle::apply(ScatterAxis{axis, kind}, {into, indices, values});
          }};
}

/// Slices of those sizes.
Places of_slices(const std::vector<Array>& indices, const Dims& axes, const Shape& sizes) {
  return {[=](const Array& from) {
            std::vector<Array> inputs{from};
            inputs.insert(inputs.end(), indices.begin(), indices.end());
            return heddle::apply(Gather{axes, sizes}, std::move(inputs));
          },
          [=](const Array& into, const Array& values, ScatterKind kind) {
            std::vector<Array> inputs{into};
            inputs.insert(inputs.end(), indices.begin(), indices.end());
            inputs.push_back(values);
            return heddle::apply(Scatter{kind, axes}, std::move(inputs));
          }};
}

/// Of what is written to, and of the updates, the last operand; the indices have none.
InputCotangents around(const Backward& b, Array to_x, Array to_updates) {
  InputCotangents found(b.in.size());
  found.front() = std::move(to_x);
  found.back() = std::move(to_updates);
  return found;
}

/// Which of the updates are the last for their element, and so stay.
Array is_last(const Places& places, const Array& x, const Array& updates) {
  const Array numbers =
      reshape(heddle::apply(Arange{0, 1, updates.size(), DType::i64}, {}), updates.shape());
  const Array none = full(x.shape(), -1, DType::i64);
  return places.read(places.write(none, numbers, ScatterKind::max)) == numbers;
}

/// Those of several equal candidates share the cotangent.
InputCotangents extreme_vjp(const Places& places, const Backward& b) {
  const Array& x = b.in[0];
  const Array& updates = b.in.back();
  const Array y = b.out[0], g = b.g();
  const Array stays = astype(x == y, g.dtype());
  const Array wins = astype(updates == places.read(y), g.dtype());
  const Array count = places.write(stays, wins, ScatterKind::sum);
  const Array share = g / maximum(count, ones_like(count));
  return around(b, share * stays, places.read(share) * wins);
}

/// g times the product of all other factors. Zeros are counted apart, so that nothing is divided by
/// one.
InputCotangents product_vjp(const Places& places, const Backward& b) {
  const Array& x = b.in[0];
  const Array& updates = b.in.back();
  const Array g = b.g();
  const auto nonzero = [](const Array& a) { return where(a == 0, ones_like(a), a); };
  const auto is_zero = [&](const Array& a) { return astype(a == 0, DType::i32); };
  const Array product = places.write(nonzero(x), nonzero(updates), ScatterKind::prod);
  const Array zeros_there = places.write(is_zero(x), is_zero(updates), ScatterKind::sum);
  const auto others = [&](const Array& factor, const Array& all, const Array& count) {
    const Array alone = (count - is_zero(factor)) == 0;
    return where(alone, all / nonzero(factor), zeros_like(all));
  };
  return around(
      b, g * conjugate(others(x, product, zeros_there)),
      places.read(g) * conjugate(others(updates, places.read(product), places.read(zeros_there))));
}

InputCotangents scatter_vjp(const Places& places, ScatterKind kind, const Backward& b) {
  const Array g = b.g();
  const Array& updates = b.in.back();
  switch (kind) {
    case ScatterKind::none: {
      const Array kept = places.write(g, zeros_like(updates), ScatterKind::none);
      const Array last = is_last(places, b.in[0], updates);
      const Array taken = places.read(g);
      return around(b, kept, where(last, taken, zeros_like(taken)));
    }
    case ScatterKind::sum:
      return around(b, g, places.read(g));
    case ScatterKind::prod:
      return product_vjp(places, b);
    case ScatterKind::max:
    case ScatterKind::min:
      return extreme_vjp(places, b);
  }
  return InputCotangents(b.in.size());
}

/// `x` along `axis` at 0, 0, ..., 0, 1, ..., n-1, n-1, ..., n-1.
Array pad_with_edges(const Array& x, std::int64_t axis, std::int64_t low, std::int64_t high) {
  const std::int64_t extent = x.shape(axis);
  const Array places =
      heddle::apply(Arange{static_cast<double>(-low), 1, low + extent + high, DType::i64}, {});
  const Array inside = clip(places, Array(0), Array(static_cast<int>(extent - 1)));
  return take(x, inside, static_cast<int>(axis));
}

}  // namespace

InputCotangents vjp_rule(const SliceUpdate& op, const Backward& b) {
  const Array g = b.g();
  return {heddle::apply(SliceUpdate{op.start, op.stop, op.step}, {g, zeros_like(b.in[1])}),
          heddle::apply(Slice{op.start, op.stop, op.step}, {g})};
}

InputCotangents vjp_rule(const GatherRows&, const Backward& b) {
  const Array &table = b.in[0], &ids = b.in[1];
  Shape row = table.shape();
  row[0] = 1;
  Shape updates = b.out[0].shape();
  updates.insert(ids.ndim(), 1);
  const Array g = widened(b.g());
  const Array sums =
      of_slices({ids}, {0}, row)
          .write(zeros(table.shape(), g.dtype()), reshape(g, updates), ScatterKind::sum);
  return {astype(sums, table.dtype()), std::nullopt};
}

InputCotangents vjp_rule(const Gather& op, const Backward& b) {
  const std::vector<Array> indices(b.in.begin() + 1, b.in.end());
  InputCotangents found(b.in.size());
  found[0] = of_slices(indices, op.axes, op.slice_sizes)
                 .write(zeros_like(b.in[0]), b.g(), ScatterKind::sum);
  return found;
}

InputCotangents vjp_rule(const Scatter& op, const Backward& b) {
  const std::vector<Array> indices(b.in.begin() + 1, b.in.end() - 1);
  const Shape& updates = b.in.back().shape();
  const Shape sizes(std::span(updates.end() - b.in[0].ndim(), b.in[0].ndim()));
  return scatter_vjp(of_slices(indices, op.axes, sizes), op.kind, b);
}

InputCotangents vjp_rule(const Sort& op, const Backward& b) {
  if (op.kind == SortKind::argsort) return {std::nullopt};
  const Array& x = b.in[0];
  const Array order = heddle::apply(Sort{SortKind::argsort}, {x});
  const Places places = along_axis(order, static_cast<std::int64_t>(x.ndim()) - 1);
  return {places.write(zeros_like(x), b.g(), ScatterKind::sum)};
}

InputCotangents vjp_rule(const GatherAxis& op, const Backward& b) {
  const Places places = along_axis(b.in[1], op.axis);
  return {places.write(zeros_like(b.in[0]), b.g(), ScatterKind::sum), std::nullopt};
}

InputCotangents vjp_rule(const ScatterAxis& op, const Backward& b) {
  return scatter_vjp(along_axis(b.in[1], op.axis), op.kind, b);
}

InputCotangents vjp_rule(const Pad& op, const Backward& b) {
  const Array& x = b.in[0];
  if (op.mode == Pad::Mode::edge) {
    const ArraysFunction parts = [&](const std::vector<Array>& in) {
      Array padded = in[0];
      for (std::size_t i = 0; i < op.low.size(); ++i) {
        padded = pad_with_edges(padded, static_cast<std::int64_t>(i), op.low[i], op.high[i]);
      }
      return std::vector<Array>{padded};
    };
    return vjp_of_parts(parts, b);
  }
  Dims stop = op.low;
  for (std::size_t i = 0; i < stop.size(); ++i) stop[i] += x.shape()[i];
  const Array g = b.g();
  const Array inside = slice(g, op.low, stop);
  return {inside, b.wanted[1] ? std::optional(sum(g) - sum(inside)) : std::nullopt};
}

InputCotangents vjp_rule(const TopK&, const Backward& b) {
  const Places places = along_axis(b.out[1], static_cast<std::int64_t>(b.in[0].ndim()) - 1);
  return {places.write(zeros_like(b.in[0]), b.g(), ScatterKind::sum)};
}

}  // namespace heddle
