// Which ops take a batch as one more axis, and how.
#include <algorithm>
#include <utility>

#include "transform/vmap.h"

namespace heddle {

namespace {

using Mapped = std::optional<std::vector<Array>>;

Mapped one(Array output) {
  return std::vector<Array>{std::move(output)};
}

/// Axes of one example, in the batch.
Dims behind_batch(const Dims& axes) {
  Dims shifted = axes;
  for (std::int64_t& axis : shifted) ++axis;
  return shifted;
}

Dims with_batch(std::int64_t batch, const Dims& dims) {
  Dims all = dims;
  all.insert(0, batch);
  return all;
}

Shape example_shape(const Batched& b, std::size_t i) {
  Shape shape = b.in[i].shape();
  if (b.differs[i]) shape.erase(0);
  return shape;
}

/// The batch and the axis behind it as one, and back.
Array folded(const Array& a) {
  Shape shape = a.shape();
  shape[1] *= shape[0];
  shape.erase(0);
  return reshape(a, shape);
}
Array unfolded(const Array& a, std::int64_t batch) {
  Shape shape = a.shape();
  shape[0] /= batch;
  shape.insert(0, batch);
  return reshape(a, shape);
}

std::vector<Array> aligned_inputs(const Batched& b) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < b.in.size(); ++i) rank = std::max(rank, b.rank(i));
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < b.in.size(); ++i) inputs.push_back(b.aligned(i, rank));
  return inputs;
}

std::vector<Array> all_inputs(const Batched& b) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < b.in.size(); ++i) inputs.push_back(b.all(i));
  return inputs;
}

bool only_first_differs(const Batched& b) {
  return std::count(b.differs.begin() + 1, b.differs.end(), true) == 0;
}

// ---- Views

Mapped map(const Reshape& op, const Batched& b) {
  return one(heddle::apply(Reshape{with_batch(b.size, op.shape)}, {b.in[0]}));
}
Mapped map(const Transpose& op, const Batched& b) {
  return one(heddle::apply(Transpose{with_batch(0, behind_batch(op.axes))}, {b.in[0]}));
}
Mapped map(const Slice& op, const Batched& b) {
  return one(heddle::apply(
      Slice{with_batch(0, op.start), with_batch(b.size, op.stop), with_batch(1, op.step)},
      {b.in[0]}));
}
Mapped map(const Broadcast& op, const Batched& b) {
  const Array x = b.aligned(0, op.shape.size());
  return one(heddle::apply(Broadcast{with_batch(b.size, op.shape)}, {x}));
}
Mapped map(const Squeeze& op, const Batched& b) {
  return one(heddle::apply(Squeeze{behind_batch(op.axes)}, {b.in[0]}));
}
Mapped map(const ExpandDims& op, const Batched& b) {
  return one(heddle::apply(ExpandDims{behind_batch(op.axes)}, {b.in[0]}));
}
Mapped map(const AsStrided& op, const Batched& b) {
  const std::int64_t each = b.in[0].size() / b.size;
  return one(heddle::apply(
      AsStrided{with_batch(b.size, op.shape), with_batch(each, op.strides), op.offset}, {b.in[0]}));
}

// ---- Moving data

Mapped map(const Concatenate& op, const Batched& b) {
  return one(heddle::apply(Concatenate{op.axis + 1}, all_inputs(b)));
}
Mapped map(const SliceUpdate& op, const Batched& b) {
  return one(heddle::apply(
      SliceUpdate{with_batch(0, op.start), with_batch(b.size, op.stop), with_batch(1, op.step)},
      all_inputs(b)));
}
/// Ids of a table for each example are those of all tables in a row.
Mapped map(const GatherRows& op, const Batched& b) {
  if (!b.differs[0]) return one(heddle::apply(op, {b.in[0], b.in[1]}));
  const std::int64_t rows = b.in[0].shape()[1];
  const Array ids = astype(b.all(1), DType::i64);
  Shape line(ids.ndim(), 1);
  line[0] = b.size;
  const Array first =
      reshape(heddle::apply(Arange{0, static_cast<double>(rows), b.size, DType::i64}, {}), line);
  return one(heddle::apply(op, {folded(b.in[0]), ids + first}));
}
Mapped map(const GatherAxis& op, const Batched& b) {
  return one(heddle::apply(GatherAxis{op.axis + 1}, all_inputs(b)));
}
Mapped map(const ScatterAxis& op, const Batched& b) {
  return one(heddle::apply(ScatterAxis{op.axis + 1, op.kind}, all_inputs(b)));
}
Mapped map(const Pad& op, const Batched& b) {
  if (op.mode == Pad::Mode::constant && b.differs[1]) return std::nullopt;
  std::vector<Array> inputs(b.in.begin(), b.in.end());
  return one(heddle::apply(Pad{op.mode, with_batch(0, op.low), with_batch(0, op.high)},
                           std::move(inputs)));
}

// ---- Element-wise

template <class T>
concept ElementWise = std::is_same_v<T, Unary> || std::is_same_v<T, Binary> ||
    std::is_same_v<T, Compare> || std::is_same_v<T, Select> || std::is_same_v<T, Cast> ||
    std::is_same_v<T, Contiguous> || std::is_same_v<T, Fused>;

template <ElementWise T>
Mapped map(const T& op, const Batched& b) {
  return one(heddle::apply(op, aligned_inputs(b)));
}
Mapped map(const GatedMultiply& op, const Batched& b) {
  return one(heddle::apply(op, all_inputs(b)));
}

// ---- Along axes

Mapped map(const Reduce& op, const Batched& b) {
  return one(heddle::apply(Reduce{op.kind, behind_batch(op.axes), op.keepdims}, {b.in[0]}));
}
Mapped map(const Scan& op, const Batched& b) {
  return one(heddle::apply(Scan{op.kind, op.axis + 1, op.reverse, op.exclusive}, {b.in[0]}));
}
Mapped map(const ArgReduce& op, const Batched& b) {
  return one(heddle::apply(ArgReduce{op.kind, op.axis + 1, op.keepdims}, {b.in[0]}));
}
Mapped map(const Fft& op, const Batched& b) {
  return one(heddle::apply(Fft{op.kind, op.axis + 1, op.n}, {b.in[0]}));
}
Mapped map(const TopK& op, const Batched& b) {
  return heddle::apply_multi(op, {b.in[0]});
}
template <class T>
concept OfRowsOrMatrices = std::is_same_v<T, Softmax> || std::is_same_v<T, CausalSoftmax> ||
    std::is_same_v<T, Sort> || std::is_same_v<T, Hadamard> || std::is_same_v<T, RandomBits>;
template <OfRowsOrMatrices T>
Mapped map(const T& op, const Batched& b) {
  return one(heddle::apply(op, {b.in[0]}));
}

/// A norm over the last axis of x, whose weight and bias may differ too.
template <class Norm>
Mapped map_norm(Norm op, const Batched& b) {
  std::vector<Array> inputs(b.in.begin(), b.in.end());
  inputs[0] = b.all(0);
  if (only_first_differs(b)) return one(heddle::apply(op, std::move(inputs)));
  const bool has_weight = op.has_weight, has_bias = op.has_bias;
  op.has_weight = op.has_bias = false;
  Array result = heddle::apply(op, {inputs[0]});
  const std::size_t rank = b.rank(0);
  const auto along = [&](std::size_t i) { return b.differs[i] ? b.aligned(i, rank) : b.in[i]; };
  std::size_t next = 1;
  if (has_weight) result = result * along(next++);
  if (has_bias) result = result + along(next);
  return one(astype(result, b.in[0].dtype()));
}
Mapped map(const RmsNorm& op, const Batched& b) {
  return map_norm(op, b);
}
Mapped map(const LayerNorm& op, const Batched& b) {
  return map_norm(op, b);
}

Mapped map(const Factor& op, const Batched& b) {
  return heddle::apply_multi(op, {b.in[0]});
}
Mapped map(const Solve& op, const Batched& b) {
  return one(heddle::apply(op, all_inputs(b)));
}

// ---- Products

Mapped map(const Matmul& op, const Batched& b) {
  return one(heddle::apply(op, aligned_inputs(b)));
}
Mapped map(const Linear& op, const Batched& b) {
  if (only_first_differs(b)) {
    return heddle::apply_multi(op, std::vector<Array>(b.in.begin(), b.in.end()));
  }
  if (b.in.size() > 2 || is_block(b.in[1].dtype())) return std::nullopt;
  const bool is_one_row = b.rank(0) == 1;
  const std::size_t rank = std::max<std::size_t>(2, b.rank(0));
  const Array x = is_one_row ? expand_dims(b.in[0], -2) : b.aligned(0, rank);
  const Array weights = astype(b.aligned(1, rank), DType::f32);
  const Array y = matmul(x, swapaxes(weights, -1, -2));
  return one(is_one_row ? squeeze(y, Dims{-2}) : y);
}

// ---- A batch that the op has already

template <class T>
concept OverImages = std::is_same_v<T, Im2col> || std::is_same_v<T, Pool> ||
    std::is_same_v<T, Resize> || std::is_same_v<T, Conv>;

template <OverImages T>
Mapped map(const T& op, const Batched& b) {
  if (!only_first_differs(b)) return std::nullopt;
  std::vector<Array> inputs(b.in.begin(), b.in.end());
  inputs[0] = folded(b.in[0]);
  return one(unfolded(heddle::apply(op, std::move(inputs)), b.size));
}

Mapped map(const Attention& op, const Batched& b) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs.push_back(folded(b.all(i)));
  if (op.has_sinks) return std::nullopt;
  if (b.in.size() == 4) {
    // As [batch, B, Hq, Sq, Sk], where the mask of each batch of one example was broadcast.
    Shape whole = example_shape(b, 3);
    while (whole.size() < 4) whole.insert(0, 1);
    whole[0] = b.differs[0] ? b.in[0].shape()[1] : b.in[0].shape()[0];
    whole.insert(0, b.size);
    inputs.push_back(folded(broadcast_to(b.aligned(3, 4), whole)));
  }
  return one(unfolded(heddle::apply(op, std::move(inputs)), b.size));
}

/// Tokens of all examples in a row.
Mapped map(const Rope& op, const Batched& b) {
  const std::size_t positions = 1 + std::size_t{op.has_bias};
  std::vector<Array> inputs(b.in.begin(), b.in.end());
  for (std::size_t i = 1; i < b.in.size(); ++i) {
    if (b.differs[i] && i != positions) return std::nullopt;
  }
  inputs[0] = folded(b.all(0));
  inputs[positions] = folded(contiguous(b.all(positions)));
  return one(unfolded(heddle::apply(op, std::move(inputs)), b.size));
}

/// One example after another.
std::vector<Array> map_each(const Op& op, const Batched& b) {
  std::vector<std::vector<Array>> outputs;
  for (std::int64_t at = 0; at < b.size; ++at) {
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < b.in.size(); ++i) {
      if (!b.differs[i]) {
        inputs.push_back(b.in[i]);
        continue;
      }
      Dims start(b.in[i].ndim(), 0), stop = b.in[i].shape();
      start[0] = at;
      stop[0] = at + 1;
      inputs.push_back(squeeze(slice(b.in[i], start, stop), Dims{0}));
    }
    std::vector<Array> results = heddle::apply_multi(op, std::move(inputs));
    outputs.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) outputs[i].push_back(std::move(results[i]));
  }
  std::vector<Array> stacked;
  for (const std::vector<Array>& output : outputs) stacked.push_back(stack(output, 0));
  return stacked;
}

}  // namespace

Array Batched::all(std::size_t i) const {
  if (differs[i]) return in[i];
  Shape shape = in[i].shape();
  shape.insert(0, size);
  return broadcast_to(expand_dims(in[i], 0), shape);
}

Array Batched::aligned(std::size_t i, std::size_t to) const {
  if (!differs[i] || rank(i) == to) return in[i];
  Shape shape = in[i].shape();
  while (shape.size() < to + 1) shape.insert(1, 1);
  return reshape(in[i], shape);
}

std::vector<Array> vmap_of(const Op& op, const Batched& batch) {
  return std::visit(
      [&]<class T>(const T& o) -> std::vector<Array> {
        if constexpr (requires { map(o, batch); }) {
          if (Mapped mapped = map(o, batch)) return std::move(*mapped);
        }
        return map_each(op, batch);
      },
      op);
}

}  // namespace heddle
