// View ops as strides.
#include <algorithm>

#include "base/check.h"
#include "heddle/op.h"

namespace heddle {

namespace {

/// Strides, and the way from the input's first element to the output's; in elements.
struct Strides {
  std::int64_t offset = 0;
  Dims strides;
};

struct Axis {
  std::int64_t extent, stride;
};

/// Axes of extent 1 left out and axes that lie without a gap joined, so that only real steps are
/// left.
std::vector<Axis> joined_axes(const Shape& shape, const Dims& strides) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (!axes.empty() && axes.back().stride == shape[i] * strides[i]) {
      axes.back() = {axes.back().extent * shape[i], strides[i]};
    } else {
      axes.push_back({shape[i], strides[i]});
    }
  }
  return axes;
}

/// Splits the joined axes of the input, innermost first, into the axes of the new shape. An axis of
/// the new shape that would span two of them has no single stride.
std::optional<Dims> reshaped_strides(const Shape& from, const Dims& strides, const Shape& to) {
  if (elements(to) == 0) return contiguous_strides(to);
  const std::vector<Axis> axes = joined_axes(from, strides);
  Dims result(to.size(), 1);
  auto axis = axes.rbegin();
  std::int64_t stride = axis == axes.rend() ? 1 : axis->stride;
  std::int64_t left = axis == axes.rend() ? 1 : axis->extent;
  for (std::size_t i = to.size(); i-- > 0;) {
    if (to[i] == 1) {
      result[i] = stride;
      continue;
    }
    if (left == 1) {
      ++axis;  // the counts agree, so there is one
      stride = axis->stride;
      left = axis->extent;
    }
    if (left % to[i] != 0) return std::nullopt;
    result[i] = stride;
    stride *= to[i];
    left /= to[i];
  }
  return result;
}

std::optional<Strides> strides_of(const Reshape& op, const OperandSpec& in, const Shape&) {
  std::optional<Dims> strides = reshaped_strides(in.spec.shape, in.layout.strides, op.shape);
  if (!strides) return std::nullopt;
  return Strides{0, *strides};
}

std::optional<Strides> strides_of(const Transpose& op, const OperandSpec& in, const Shape&) {
  Strides result{0, in.layout.strides};
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    result.strides[i] = in.layout.strides[op.axes[i]];
  }
  return result;
}

std::optional<Strides> strides_of(const Slice& op, const OperandSpec& in, const Shape& out) {
  Strides result{0, in.layout.strides};
  if (elements(out) == 0) return result;  // its start may lie beyond the memory
  for (std::size_t i = 0; i < out.size(); ++i) {
    result.offset += op.start[i] * in.layout.strides[i];
    const bool steps = out[i] > 1;
    result.strides[i] = steps ? in.layout.strides[i] * op.step[i] : in.layout.strides[i];
  }
  return result;
}

std::optional<Strides> strides_of(const Broadcast&, const OperandSpec& in, const Shape& out) {
  Strides result{0, Dims(out.size(), 0)};
  const std::size_t lead = out.size() - in.spec.shape.size();
  for (std::size_t i = 0; i < in.spec.shape.size(); ++i) {
    if (in.spec.shape[i] == out[lead + i]) result.strides[lead + i] = in.layout.strides[i];
  }
  return result;
}

bool contains(const Dims& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

std::optional<Strides> strides_of(const Squeeze& op, const OperandSpec& in, const Shape&) {
  Strides result;
  for (std::size_t i = 0; i < in.spec.shape.size(); ++i) {
    if (!contains(op.axes, i)) result.strides.push_back(in.layout.strides[i]);
  }
  return result;
}

std::optional<Strides> strides_of(const ExpandDims& op, const OperandSpec& in, const Shape& out) {
  Strides result{0, Dims(out.size(), 1)};
  std::size_t from = in.spec.shape.size();
  for (std::size_t i = out.size(); i-- > 0;) {
    if (!contains(op.axes, i)) {
      --from;
      result.strides[i] = in.layout.strides[from];
    } else if (i + 1 < out.size()) {
      result.strides[i] = result.strides[i + 1] * std::max<std::int64_t>(out[i + 1], 1);
    }
  }
  return result;
}

std::optional<Strides> strides_of(const AsStrided& op, const OperandSpec& in, const Shape& out) {
  if (!is_contiguous(in)) return std::nullopt;
  if (elements(out) == 0) return Strides{0, contiguous_strides(out)};
  Strides result{op.offset, op.strides};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 1) result.strides[i] = 1;  // rather than a number of any size
  }
  return result;
}

template <class T>
std::optional<Strides> strides_of(const T& op, const OperandSpec&, const Shape&) {
  fail(ErrorCode::invalid_argument, "{} is not a view", name(Op(op)));
}

}  // namespace

std::optional<ViewOf> view_of(const Op& view_op, const OperandSpec& input) {
  const std::vector<TensorSpec> outputs = infer(view_op, std::span(&input.spec, 1));
  if (input.layout.kind != LayoutKind::strided) return std::nullopt;
  const TensorSpec& out = outputs.at(0);
  std::optional<Strides> strides =
      std::visit([&](const auto& op) { return strides_of(op, input, out.shape); }, view_op);
  if (!strides) return std::nullopt;
  const Layout layout{LayoutKind::strided, strides->strides};
  if (elements(out.shape) == 0) return ViewOf{0, layout};
  const std::int64_t offset = first_element(input) + strides->offset - first_element({out, layout});
  // Slices of blocks begin at whole blocks, and so do rows: the division is exact.
  const DTypeInfo& type = info(input.spec.dtype);
  return ViewOf{offset / type.block_elements * type.block_bytes, layout};
}

std::optional<ViewOf> reinterpreted_view(DType to, const OperandSpec& input,
                                         std::size_t offset_bytes) {
  const TensorSpec out = infer(Reinterpret{to}, std::span(&input.spec, 1)).at(0);
  const auto from_size = static_cast<std::int64_t>(item_size(input.spec.dtype));
  const auto to_size = static_cast<std::int64_t>(item_size(to));
  if (input.layout.kind != LayoutKind::strided || offset_bytes % item_size(to) != 0) {
    return std::nullopt;
  }
  if (from_size == to_size) return ViewOf{0, input.layout};
  const Shape& shape = input.spec.shape;
  if (elements(shape) == 0) return ViewOf{0, Layout::contiguous(out.shape)};
  const std::size_t last = shape.size() - 1;
  if (shape[last] > 1 && input.layout.strides[last] != 1) return std::nullopt;
  Layout layout = Layout::contiguous(out.shape);
  for (std::size_t i = 0; i < last; ++i) {
    if (shape[i] <= 1) continue;
    const std::int64_t bytes = input.layout.strides[i] * from_size;
    if (bytes % to_size != 0) return std::nullopt;
    layout.strides[i] = bytes / to_size;
  }
  return ViewOf{0, layout};
}

}  // namespace heddle
