// Which operands hold indices, and which the rows that outputs depend on.
#include <algorithm>

#include "base/overloaded.h"
#include "heddle/op.h"

namespace heddle {

namespace {

// ---- Rows. `row_operand(op, i, in)`: see is_row_operand.

using Inputs = std::span<const TensorSpec>;

bool contains(const Dims& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Operand `i` broadcasts into `out` without its rows being repeated or shifted.
bool keeps_rows_in(const Shape& in, const Shape& out) {
  return !out.empty() && in.size() == out.size() && in[0] == out[0];
}

Shape broadcast_of(Inputs in) {
  Shape shape = in[0].shape;
  for (const TensorSpec& spec : in.subspan(1)) shape = broadcast_shapes(shape, spec.shape);
  return shape;
}

bool has_rows(const TensorSpec& spec) {
  return !spec.shape.empty();
}

/// Whether rows survive an op that works along the last axis.
bool has_rows_besides_last(const TensorSpec& spec) {
  return spec.shape.size() >= 2;
}

/// Whether rows survive an op that works on matrices.
bool has_rows_besides_matrix(const TensorSpec& spec) {
  return spec.shape.size() >= 3;
}

bool slice_keeps_rows(const Slice& op, const TensorSpec& in) {
  return has_rows(in) && op.start[0] == 0 && op.stop[0] == in.shape[0] && op.step[0] == 1;
}

/// Along the last axis rows are lost, unless elements keep their size.
bool reinterpret_keeps_rows(const Reinterpret& op, const TensorSpec& in) {
  return has_rows_besides_last(in) || (has_rows(in) && item_size(in.dtype) == item_size(op.dtype));
}

bool matmul_row_operand(std::size_t operand, Inputs in) {
  const std::size_t a = in[0].shape.size();
  const std::size_t b = in[1].shape.size();
  const std::size_t rank = std::max(a, b);
  if (rank == 2) return operand == 0;
  if (in[operand].shape.size() != rank) return false;  // it serves every batch
  const Shape& other = in[1 - operand].shape;
  return other.size() < rank || other[0] == 1 || other[0] == in[operand].shape[0];
}

bool attention_row_operand(const Attention& op, std::size_t operand, Inputs in) {
  if (operand < 3) return true;  // axis 0 is the batch
  if (op.has_sinks && operand + 1 == in.size()) return false;
  return in[3].shape.size() == 4 && in[3].shape[0] == in[0].shape[0];
}

bool rope_write_row_operand(const RopeWriteRows& op, std::size_t operand) {
  const std::size_t pos = op.rope ? 3 + std::size_t{op.has_bias} : 0;
  return operand == 1 || operand == 2 || (op.rope && operand == pos);
}

/// Operands 1, 2, ... are indices into these axes of operand 0, and wrap.
std::vector<IndexBound> bounds_of_axes(const Dims& axes) {
  std::vector<IndexBound> bounds;
  for (const std::int64_t axis : axes) {
    bounds.push_back({.operand = bounds.size() + 1,
                      .minimum = 0,
                      .of = 0,
                      .axis = static_cast<std::size_t>(axis),
                      .wraps = true});
  }
  return bounds;
}

/// Rows of x where one matrix serves all; else those of the indices that choose matrices.
bool group_matmul_row_operand(const GroupMatmul& op, std::size_t operand, Inputs in) {
  if (op.gathers) return operand + 2 >= in.size() && has_rows(in[operand]);
  return operand == 0 && in[1].shape.size() == 2 && has_rows_besides_last(in[0]);
}

}  // namespace

std::vector<IndexBound> index_bounds(const Op& op) {
  using Bounds = std::vector<IndexBound>;
  return std::visit(
      Overloaded{
          [](const GatherRows& o) {
            return Bounds{{.operand = 1, .minimum = 0, .of = 0, .wraps = o.wrap}};
          },
          [](const GatherAxis& o) { return bounds_of_axes({o.axis}); },
          [](const ScatterAxis& o) { return bounds_of_axes({o.axis}); },
          [](const Gather& o) { return bounds_of_axes(o.axes); },
          [](const Scatter& o) { return bounds_of_axes(o.axes); },
          [](const GroupedLinear&) { return Bounds{{.operand = 2, .minimum = -1, .of = 1}}; },
          [](const GroupMatmul& o) {
            const std::size_t first = o.format.mode == QuantMode::affine ? 4 : 3;
            return o.gathers ? Bounds{{.operand = first, .minimum = 0, .of = 0},
                                      {.operand = first + 1, .minimum = 0, .of = 1}}
                             : Bounds{};
          },
          [](const GatherMatmul&) {
            return Bounds{{.operand = 2, .minimum = 0, .of = 0},
                          {.operand = 3, .minimum = 0, .of = 1}};
          },
          [](const SegmentedMatmul&) {
            return Bounds{{.operand = 2, .minimum = 0, .of = 0, .axis = 1, .inclusive = true}};
          },
          [](const NormRopeWriteRows&) { return Bounds{{.operand = 2, .minimum = -1, .of = 0}}; },
          [](const WriteRows&) { return Bounds{{.operand = 2, .minimum = -1, .of = 0}}; },
          [](const RopeWriteRows&) { return Bounds{{.operand = 2, .minimum = -1, .of = 0}}; },
          [](const RopeTable& o) {
            return o.by_position ? Bounds{{.operand = 3, .minimum = 0, .of = 1}} : Bounds{};
          },
          [](const Feed& o) {
            switch (o.kind) {
              case Feed::Kind::prefix:
                return Bounds{{.operand = 2, .minimum = 0, .of = 1, .inclusive = true},
                              {.operand = 2, .minimum = 0, .of = 0, .inclusive = true}};
              case Feed::Kind::row:
                return Bounds{{.operand = 2, .minimum = 0, .of = 1}};
              case Feed::Kind::whole:
                break;
            }
            return Bounds{};
          },
          [](const Attend& o) {
            // Blocks that the states hold whole; then sequences; positions and lengths that a row
            // of the table has blocks for. -1 is an unused block, an idle token, no position.
            const std::int64_t block = o.block_size;
            return Bounds{{.operand = 3, .minimum = -1, .of = 1, .divisor = block},
                          {.operand = 4, .minimum = -1, .of = 3},
                          {.operand = 5, .minimum = -1, .of = 3, .axis = 1, .multiplier = block},
                          {.operand = 6,
                           .minimum = 0,
                           .of = 3,
                           .axis = 1,
                           .multiplier = block,
                           .inclusive = true}};
          },
          [](const auto&) { return Bounds{}; },
      },
      op);
}

bool is_row_operand(const Op& op, std::size_t operand, std::span<const TensorSpec> in) {
  const auto along_rows = [&] { return has_rows(in[0]); };
  const auto broadcasting = [&] { return keeps_rows_in(in[operand].shape, broadcast_of(in)); };
  return std::visit(
      Overloaded{
          [&](const Reshape& o) {
            return has_rows(in[0]) && !o.shape.empty() && o.shape[0] == in[0].shape[0];
          },
          [&](const Transpose& o) { return has_rows(in[0]) && o.axes[0] == 0; },
          [&](const Slice& o) { return slice_keeps_rows(o, in[0]); },
          [&](const Broadcast& o) { return keeps_rows_in(in[0].shape, o.shape); },
          [&](const Squeeze& o) { return has_rows(in[0]) && !contains(o.axes, 0); },
          [&](const ExpandDims& o) { return has_rows(in[0]) && !contains(o.axes, 0); },
          [&](const Contiguous&) { return along_rows(); },
          [&](const Cast&) { return along_rows(); },
          [&](const Reinterpret& o) { return reinterpret_keeps_rows(o, in[0]); },
          [&](const Concatenate& o) { return o.axis != 0; },
          [&](const GatherRows&) { return operand == 1 && has_rows(in[1]); },
          [&](const WriteRows&) { return operand != 0; },
          [&](const GatherAxis& o) { return o.axis != 0; },
          [&](const ScatterAxis& o) { return o.axis != 0; },
          [&](const Gather&) { return operand >= 1 && has_rows(in[1]); },
          [&](const Sort&) { return has_rows_besides_last(in[0]); },
          [&](const SearchSorted&) { return operand == 1 && has_rows(in[1]); },
          [&](const Pad& o) {
            return operand == 0 && has_rows(in[0]) && o.low[0] == 0 && o.high[0] == 0;
          },
          [&](const Unary&) { return along_rows(); },
          [&](const Binary&) { return broadcasting(); },
          [&](const Compare&) { return broadcasting(); },
          [&](const Select&) { return broadcasting(); },
          [&](const Fused&) { return broadcasting(); },
          [&](const GatedMultiply&) { return along_rows(); },
          [&](const Reduce& o) { return has_rows(in[0]) && !contains(o.axes, 0); },
          [&](const Scan& o) { return o.axis != 0; },
          [&](const ArgReduce& o) { return o.axis != 0; },
          [&](const TopK&) { return has_rows_besides_last(in[0]); },
          [&](const Softmax&) { return has_rows_besides_last(in[0]); },
          [&](const CausalSoftmax&) { return true; },
          [&](const GroupQuantize&) { return has_rows_besides_last(in[0]); },
          [&](const GroupDequantize&) { return has_rows_besides_last(in[0]); },
          [&](const Fp8&) { return along_rows(); },
          [&](const RmsNorm&) { return operand == 0 && has_rows_besides_last(in[0]); },
          [&](const AddRmsNorm&) { return operand <= 1 && has_rows_besides_last(in[0]); },
          [&](const LayerNorm&) { return operand == 0 && has_rows_besides_last(in[0]); },
          [&](const ChannelNorm& o) { return operand == 0 && o.axis != 0; },
          [&](const GroupNorm&) { return operand == 0; },
          [&](const Matmul&) { return matmul_row_operand(operand, in); },
          [&](const GroupMatmul& o) { return group_matmul_row_operand(o, operand, in); },
          [&](const GatherMatmul&) { return operand >= 2 && has_rows(in[operand]); },
          [&](const SegmentedMatmul&) { return operand == 2 && has_rows_besides_last(in[2]); },
          [&](const Linear&) { return operand == 0 && has_rows_besides_last(in[0]); },
          [&](const GroupedLinear&) { return operand != 1; },
          [&](const Factor&) { return has_rows_besides_matrix(in[0]); },
          [&](const Solve&) { return has_rows_besides_matrix(in[0]); },
          [&](const Fft& o) { return o.axis != 0; },
          [&](const Hadamard&) { return has_rows_besides_last(in[0]); },
          [&](const Conv&) { return operand == 0; },
          [&](const Im2col&) { return true; },
          [&](const Pool&) { return true; },
          [&](const Resize&) { return true; },
          [&](const Rope& o) { return operand == 0 || operand == 1 + std::size_t{o.has_bias}; },
          [&](const NormRope& o) {
            return operand == 0 || operand == 1 + std::size_t{o.has_weight};
          },
          [&](const NormRopeWriteRows& o) {
            return operand == 1 || operand == 2 || operand == 3 + std::size_t{o.has_weight};
          },
          [&](const RopeTable& o) { return operand == 0 || !o.by_position || operand == 3; },
          [&](const RopeWriteRows& o) { return rope_write_row_operand(o, operand); },
          [&](const Attention& o) { return attention_row_operand(o, operand, in); },
          [&](const Attend&) { return operand == 0 || operand == 4 || operand == 5; },
          [&](const RandomBits&) { return has_rows_besides_last(in[0]); },
          [&](const SelectiveScan& o) { return operand != 2 && (!o.has_d || operand != 5); },
          [](const auto&) {
            return false;
          },  // leaves, as_strided, repack, slice_update, scatter, feed, arange
      },
      op);
}

}  // namespace heddle
