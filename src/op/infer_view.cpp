#include <algorithm>

#include "op/infer.h"

namespace heddle {

namespace {

Specs named_leaf(const Operands& in, const std::string& name, const TensorSpec& spec) {
  in.check_count(0, "");
  in.check(!name.empty(), "{} has no name", to_string(spec));
  return {spec};
}

/// Distinct axes in [0, rank).
void check_axes(const Operands& in, const Dims& axes, std::size_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    in.check(axes[i] >= 0 && axes[i] < static_cast<std::int64_t>(rank),
             "axis {} is outside [0, {})", axes[i], rank);
    in.check(std::find(axes.begin(), axes.begin() + i, axes[i]) == axes.begin() + i,
             "axis {} is named twice in {}", axes[i], to_string(axes));
  }
}

void check_slice_of_axis(const Operands& in, const Slice& op, std::size_t axis) {
  const std::int64_t extent = in[0].shape[axis];
  in.check(op.start[axis] >= 0 && op.start[axis] <= op.stop[axis] && op.stop[axis] <= extent,
           "[{}:{}] is not within axis {} of {}", op.start[axis], op.stop[axis], axis,
           to_string(in[0]));
  in.check(op.step[axis] >= 1, "step {} on axis {}; the least is 1", op.step[axis], axis);
}

void check_slice_of_blocks(const Operands& in, const Slice& op) {
  const std::size_t last = in[0].shape.size() - 1;
  const int block = info(in[0].dtype).block_elements;
  in.check(op.start[last] % block == 0 && op.stop[last] % block == 0 && op.step[last] == 1,
           "[{}:{}:{}] of the last axis of {} does not fall on whole blocks of {}", op.start[last],
           op.stop[last], op.step[last], to_string(in[0]), block);
}

}  // namespace

Specs infer_op(const Constant& op, const Operands& in) {
  in.check_count(0, "");
  in.check(op.data && op.data->size() >= byte_size(op.spec), "{} needs {} bytes of data, not {}",
           to_string(op.spec), byte_size(op.spec), op.data ? op.data->size() : 0);
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
           "{} has {} elements and cannot become {}, which has {}", to_string(in[0]),
           elements(in[0].shape), to_string(op.shape), elements(op.shape));
  return {{in[0].dtype, op.shape}};
}

Specs infer_op(const Transpose& op, const Operands& in) {
  in.check_count(1, "x");
  const Shape& shape = in[0].shape;
  in.check(op.axes.size() == shape.size(), "axes {} do not fit {}", to_string(op.axes),
           to_string(in[0]));
  check_axes(in, op.axes, shape.size());
  in.check(!is_block(in[0].dtype) || op.axes.back() + 1 == static_cast<std::int64_t>(shape.size()),
           "the last axis of {} holds blocks and cannot move", to_string(in[0]));
  Shape result(shape.size(), 0);
  for (std::size_t i = 0; i < shape.size(); ++i) result[i] = shape[op.axes[i]];
  return {{in[0].dtype, result}};
}

Specs infer_op(const Slice& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t rank = in[0].shape.size();
  in.check(op.start.size() == rank && op.stop.size() == rank && op.step.size() == rank,
           "start {}, stop {} and step {} do not fit {}", to_string(op.start), to_string(op.stop),
           to_string(op.step), to_string(in[0]));
  Shape result(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    check_slice_of_axis(in, op, i);
    const std::int64_t length = op.stop[i] - op.start[i];
    result[i] = length / op.step[i] + (length % op.step[i] != 0);
  }
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
  in.check(fits, "{} does not broadcast to {}", to_string(in[0]), to_string(op.shape));
  return {{in[0].dtype, op.shape}};
}

Specs infer_op(const Squeeze& op, const Operands& in) {
  in.check_count(1, "x");
  const Shape& shape = in[0].shape;
  check_axes(in, op.axes, shape.size());
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool removed = std::find(op.axes.begin(), op.axes.end(), i) != op.axes.end();
    in.check(!removed || shape[i] == 1, "axis {} of {} is not of extent 1", i, to_string(in[0]));
    if (!removed) result.push_back(shape[i]);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const ExpandDims& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t rank = in[0].shape.size() + op.axes.size();
  in.check(rank <= kMaxRank, "{} with axes {} has {} dimensions; at most {} are supported",
           to_string(in[0]), to_string(op.axes), rank, kMaxRank);
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
           "{} values of {} inputs ({})", op.values, in.size(), to_string(in.all()));
  return {in.all().begin(), in.all().begin() + op.values};
}

}  // namespace heddle
