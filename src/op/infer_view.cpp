#include <algorithm>

#include "op/infer.h"

namespace heddle {

namespace {

Specs named_leaf(const Operands& in, const std::string& name, const TensorSpec& spec) {
  in.check_count(0, "");
  in.check(!name.empty(), "{} has no name", spec);
  return {spec};
}

/// Distinct axes in [0, rank).
void check_axes(const Operands& in, const Dims& axes, std::size_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    in.check(axes[i] >= 0 && axes[i] < static_cast<std::int64_t>(rank),
             "axis {} is outside [0, {})", axes[i], rank);
    in.check(std::find(axes.begin(), axes.begin() + i, axes[i]) == axes.begin() + i,
             "axis {} is named twice in {}", axes[i], axes);
  }
}

void check_slice_of_axis(const Operands& in, const Dims& start, const Dims& stop, const Dims& step,
                         std::size_t axis) {
  const std::int64_t extent = in[0].shape[axis];
  const std::int64_t from = start[axis], to = stop[axis];
  in.check(step[axis] != 0, "the step of axis {} is 0", axis);
  const bool within = step[axis] > 0 ? 0 <= from && from <= to && to <= extent
                                     : -1 <= to && to <= from && from < extent;
  in.check(within, "[{}:{}:{}] is not within axis {} of {}", from, to, step[axis], axis, in[0]);
}

/// Elements of an axis that from:to:step has, once checked.
std::int64_t slice_length(std::int64_t from, std::int64_t to, std::int64_t step) {
  // Towards minus infinity, where every step can be written.
  const std::int64_t distance = from < to ? from - to : to - from;
  const std::int64_t stride = step < 0 ? step : -step;
  return distance / stride + (distance % stride != 0);
}

void check_slice_of_blocks(const Operands& in, const Slice& op) {
  const std::size_t last = in[0].shape.size() - 1;
  const int block = info(in[0].dtype).block_elements;
  in.check(op.start[last] % block == 0 && op.stop[last] % block == 0 && op.step[last] == 1,
           "[{}:{}:{}] of the last axis of {} does not fall on whole blocks of {}", op.start[last],
           op.stop[last], op.step[last], in[0], block);
}

}  // namespace

Specs infer_op(const Constant& op, const Operands& in) {
  in.check_count(0, "");
  in.check(op.data && op.data->size() >= byte_size(op.spec), "{} needs {} bytes of data, not {}",
           op.spec, byte_size(op.spec), op.data ? op.data->size() : 0);
  return {op.spec};
}

Specs infer_op(const Parameter& op, const Operands& in) {
  return named_leaf(in, op.name, op.spec);
}

Specs infer_op(const Input& op, const Operands& in) {
  in.check(op.extent.empty() || !op.spec.shape.empty(),
           "\"{}\" is a scalar and has no rows for extent \"{}\" to count", op.name, op.extent);
  return named_leaf(in, op.name, op.spec);
}

Specs infer_op(const StateRef& op, const Operands& in) {
  return named_leaf(in, op.name, op.spec);
}

Specs infer_op(const Reshape& op, const Operands& in) {
  in.check_count(1, "x");
  in.check(elements(op.shape) == elements(in[0].shape),
           "{} has {} elements and cannot become {}, which has {}", in[0], elements(in[0].shape),
           op.shape, elements(op.shape));
  return {{in[0].dtype, op.shape}};
}

Specs infer_op(const Transpose& op, const Operands& in) {
  in.check_count(1, "x");
  const Shape& shape = in[0].shape;
  in.check(op.axes.size() == shape.size(), "axes {} do not fit {}", op.axes, in[0]);
  check_axes(in, op.axes, shape.size());
  in.check(!is_block(in[0].dtype) || op.axes.back() + 1 == static_cast<std::int64_t>(shape.size()),
           "the last axis of {} holds blocks and cannot move", in[0]);
  Shape result(shape.size(), 0);
  for (std::size_t i = 0; i < shape.size(); ++i) result[i] = shape[op.axes[i]];
  return {{in[0].dtype, result}};
}

Shape slice_shape(const Operands& in, const Dims& start, const Dims& stop, const Dims& step) {
  const std::size_t rank = in[0].shape.size();
  in.check(start.size() == rank && stop.size() == rank && step.size() == rank,
           "start {}, stop {} and step {} do not fit {}", start, stop, step, in[0]);
  Shape result(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    check_slice_of_axis(in, start, stop, step, i);
    result[i] = slice_length(start[i], stop[i], step[i]);
  }
  return result;
}

Specs infer_op(const Slice& op, const Operands& in) {
  in.check_count(1, "x");
  const Shape result = slice_shape(in, op.start, op.stop, op.step);
  if (is_block(in[0].dtype)) check_slice_of_blocks(in, op);
  return {{in[0].dtype, result}};
}

Specs infer_op(const Broadcast& op, const Operands& in) {
  in.check_count(1, "x");
  const bool fits = [&] {
    const std::size_t rank = in[0].shape.size();
    if (rank > op.shape.size()) return false;
    const std::size_t lead = op.shape.size() - rank;
    for (std::size_t i = 0; i < rank; ++i) {
      if (in[0].shape[i] != 1 && in[0].shape[i] != op.shape[lead + i]) return false;
    }
    return true;
  }();
  in.check(fits, "{} does not broadcast to {}", in[0], op.shape);
  return {{in[0].dtype, op.shape}};
}

Specs infer_op(const Squeeze& op, const Operands& in) {
  in.check_count(1, "x");
  const Shape& shape = in[0].shape;
  check_axes(in, op.axes, shape.size());
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool removed = std::find(op.axes.begin(), op.axes.end(), i) != op.axes.end();
    in.check(!removed || shape[i] == 1, "axis {} of {} is not of extent 1", i, in[0]);
    if (!removed) result.push_back(shape[i]);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const ExpandDims& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t rank = in[0].shape.size() + op.axes.size();
  in.check(rank <= kMaxRank, "{} with axes {} has {} dimensions; at most {} are supported", in[0],
           op.axes, rank, kMaxRank);
  check_axes(in, op.axes, rank);
  Shape result;
  for (std::size_t i = 0, from = 0; i < rank; ++i) {
    const bool added = std::find(op.axes.begin(), op.axes.end(), i) != op.axes.end();
    result.push_back(added ? 1 : in[0].shape[from++]);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const Depends& op, const Operands& in) {
  in.check(op.values >= 1 && op.values <= static_cast<std::int64_t>(in.size()),
           "{} values of {} inputs ({})", op.values, in.size(), in.all());
  return Specs(in.all().first(static_cast<std::size_t>(op.values)));
}

Specs infer_op(const AsStrided& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_plain(0);
  in.check(op.strides.size() == op.shape.size(), "strides {} do not fit shape {}", op.strides,
           op.shape);
  const TensorSpec result{in[0].dtype, op.shape};
  if (elements(op.shape) == 0) return {result};
  const std::int64_t count = elements(in[0].shape);
  std::int64_t lowest = op.offset, highest = op.offset;
  bool overflow = false;
  for (std::size_t i = 0; i < op.shape.size(); ++i) {
    std::int64_t reach;
    std::int64_t& bound = op.strides[i] < 0 ? lowest : highest;
    overflow = overflow || __builtin_mul_overflow(op.shape[i] - 1, op.strides[i], &reach) ||
               __builtin_add_overflow(bound, reach, &bound);
  }
  in.check(!overflow && lowest >= 0 && highest < count,
           "shape {} with strides {} from element {} reaches beyond the {} elements of {}",
           op.shape, op.strides, op.offset, count, in[0]);
  return {result};
}

}  // namespace heddle
