// Lowering of padding, convolution, and of norms that are not along the last axis.
#include <algorithm>
#include <numeric>

#include "device/lower_build.h"

namespace heddle {

namespace {

using Value = LoweredBuilder::Value;

/// Transposed in memory.
Value moved(LoweredBuilder& b, Value x, const Dims& axes) {
  if (std::ranges::is_sorted(axes)) return x;
  return b.contiguous(b.add(Transpose{axes}, {x}));
}

/// The number of elements of axes [first, last).
std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

/// The weights' taps backwards on every spatial axis.
Value flipped(LoweredBuilder& b, Value w) {
  const Shape& shape = b.shape(w);
  Slice op{Dims(shape.size(), 0), shape, Dims(shape.size(), 1)};
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) {
    op.start[i] = shape[i] - 1;
    op.stop[i] = op.step[i] = -1;
  }
  return b.contiguous(b.add(op, {w}));
}

}  // namespace

// x put into as much of the value as the result has.
MaybeLowered lower_op(const Pad& op, LowerInputs in) {
  if (op.mode != Pad::Mode::constant) return std::nullopt;
  LoweredBuilder b(in);
  const Shape result = infer(op, in)[0].shape;
  const Value base = b.contiguous(b.add(Broadcast{result}, {LoweredBuilder::input(1)}));
  SliceUpdate update{op.low, op.low, Dims(result.size(), 1)};
  for (std::size_t i = 0; i < result.size(); ++i) update.stop[i] += in[0].shape[i];
  return b.finish({b.add(update, {base, LoweredBuilder::input(0)})});
}

// What the windows read, as a matrix, or one for each group, times the weights.
MaybeLowered lower_op(const Conv& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape &x = in[0].shape, &w = in[1].shape, result = infer(op, in)[0].shape;
  const std::int64_t rows = product(result, 0, result.size() - 1);
  const std::int64_t taps = product(w, 1, w.size() - 1);
  const std::int64_t depth = taps * w.back(), outputs = w[0] / op.groups;
  const Dims window(std::span(w.begin() + 1, w.size() - 2));
  Value columns = b.add(Im2col{window, op.windows}, {LoweredBuilder::input(0)});
  Value weights = LoweredBuilder::input(1);
  if (op.flip) weights = flipped(b, weights);
  if (op.groups == 1) {
    columns = b.reshape(columns, {rows, depth});
    weights = b.add(Transpose{{1, 0}}, {b.reshape(weights, {w[0], depth})});
    return b.finish({b.reshape(b.add(Matmul{}, {columns, weights}), result)});
  }
  columns = b.reshape(columns, {rows, taps, op.groups, x.back() / op.groups});
  columns = b.reshape(moved(b, columns, {2, 0, 1, 3}), {op.groups, rows, depth});
  weights = b.add(Transpose{{0, 2, 1}}, {b.reshape(weights, {op.groups, outputs, depth})});
  const Value products = b.add(Matmul{}, {columns, weights});
  return b.finish({b.reshape(moved(b, products, {1, 0, 2}), result)});
}

// With the axis moved to the end and back.
MaybeLowered lower_op(const ChannelNorm& op, LowerInputs in) {
  LoweredBuilder b(in);
  Dims there(in[0].shape.size(), 0);
  std::iota(there.begin(), there.end(), 0);
  there.erase(static_cast<std::size_t>(op.axis));
  there.push_back(op.axis);
  Dims back(there.size(), 0);
  for (std::size_t i = 0; i < there.size(); ++i) {
    back[static_cast<std::size_t>(there[i])] = static_cast<std::int64_t>(i);
  }
  std::vector<Value> operands{moved(b, LoweredBuilder::input(0), there)};
  for (std::size_t i = 1; i < in.size(); ++i) operands.push_back(LoweredBuilder::input(i));
  const Value normal = b.add(LayerNorm{op.eps, op.has_weight, op.has_bias}, operands);
  return b.finish({moved(b, normal, back)});
}

// Each group as a row.
MaybeLowered lower_op(const GroupNorm& op, LowerInputs in) {
  LoweredBuilder b(in);
  const Shape& shape = in[0].shape;
  const DType compute = compute_dtype(in[0].dtype);
  const std::int64_t positions = product(shape, 1, shape.size() - 1);
  const std::int64_t width = shape.back() / op.groups;
  Value x = b.cast(LoweredBuilder::input(0), compute);
  x = moved(b, b.reshape(x, {shape[0], positions, op.groups, width}), {0, 2, 1, 3});
  x = b.reshape(x, {shape[0] * op.groups, positions * width});
  x = b.add(LayerNorm{op.eps, false, false}, {x});
  x = moved(b, b.reshape(x, {shape[0], op.groups, positions, width}), {0, 2, 1, 3});
  x = b.reshape(x, shape);
  std::size_t next = 1;
  if (op.has_weight) {
    const Value weight = b.cast(LoweredBuilder::input(next++), compute);
    x = b.binary(BinaryKind::multiply, x, weight);
  }
  if (op.has_bias) {
    x = b.binary(BinaryKind::add, x, b.cast(LoweredBuilder::input(next), compute));
  }
  return b.finish({b.cast(x, in[0].dtype)});
}

}  // namespace heddle
