#include <limits>

#include "op/infer.h"

namespace heddle {

namespace {

constexpr std::size_t kMostSpatialAxes = 3;
// Of strides, dilations and paddings: products of two of them do not overflow.
constexpr std::int64_t kMostStep = std::numeric_limits<std::int32_t>::max();

/// Operand 0 is [N, spatial..., C]. The number of spatial axes, all of extent 1 or more.
std::size_t check_spatial(const Operands& in) {
  const Shape& x = in[0].shape;
  in.check(x.size() >= 3 && x.size() <= 2 + kMostSpatialAxes,
           "x is {}; it must be [N, spatial..., C] with 1 to 3 spatial axes", in[0]);
  for (std::size_t i = 1; i + 1 < x.size(); ++i) {
    in.check(x[i] > 0, "x {} has nothing along its spatial axis {}", in[0], i);
  }
  return x.size() - 2;
}

void check_entries(const Operands& in, std::string_view what, const Dims& values, std::size_t axes,
                   std::int64_t least) {
  in.check(values.size() == axes, "{} {} has {} entries; x {} has {} spatial axes", what, values,
           values.size(), in[0], axes);
  for (const std::int64_t value : values) {
    in.check(value >= least && value <= kMostStep, "{} {}: entries must lie in [{}, {}]", what,
             values, least, kMostStep);
  }
}

/// The spatial extents over which windows of `taps` taps leave their outputs.
Shape window_outputs(const Operands& in, const Windows& windows, const Dims& taps) {
  const std::size_t axes = check_spatial(in);
  check_entries(in, "stride", windows.stride, axes, 1);
  check_entries(in, "padding_low", windows.padding_low, axes, -kMostStep);
  check_entries(in, "padding_high", windows.padding_high, axes, -kMostStep);
  check_entries(in, "kernel_dilation", windows.kernel_dilation, axes, 1);
  check_entries(in, "input_dilation", windows.input_dilation, axes, 1);
  Shape result;
  for (std::size_t i = 0; i < axes; ++i) {
    std::int64_t padded;
    const bool overflow =
        __builtin_mul_overflow(in[0].shape[i + 1] - 1, windows.input_dilation[i], &padded) ||
        __builtin_add_overflow(padded, windows.padding_low[i] + windows.padding_high[i] + 1,
                               &padded);
    in.check(!overflow, "the padded extent of spatial axis {} of {} overflows", i + 1, in[0]);
    const std::int64_t span = (taps[i] - 1) * windows.kernel_dilation[i] + 1;
    in.check(padded >= span,
             "a window of {} does not fit the {} elements along axis {} of x {} with its padding",
             span, padded, i + 1, in[0]);
    result.push_back((padded - span) / windows.stride[i] + 1);
  }
  return result;
}

Shape spatial_shape(const Shape& x, const Shape& spatial, std::int64_t channels) {
  Shape result{x[0]};
  for (const std::int64_t extent : spatial) result.push_back(extent);
  result.push_back(channels);
  return result;
}

}  // namespace

Specs infer_op(const Conv& op, const Operands& in) {
  in.check_count(2, "x, weights");
  const std::size_t axes = check_spatial(in);
  in.check_floating(0, "x");
  in.check_one_dtype();
  const Shape &x = in[0].shape, &w = in[1].shape;
  in.check(op.groups > 0 && x.back() % op.groups == 0,
           "the {} channels of x {} do not divide into {} groups", x.back(), in[0], op.groups);
  in.check(w.size() == x.size() && w.back() == x.back() / op.groups,
           "weights {} do not fit x {}; in {} group{} they must be [O, spatial..., {}]", in[1],
           in[0], op.groups, op.groups == 1 ? "" : "s", x.back() / op.groups);
  in.check(w[0] % op.groups == 0, "the {} outputs of weights {} do not divide into {} groups", w[0],
           in[1], op.groups);
  const Dims taps(std::span(w.begin() + 1, axes));
  check_entries(in, "the weights' extent", taps, axes, 1);
  return {{in[0].dtype, spatial_shape(x, window_outputs(in, op.windows, taps), w[0])}};
}

Specs infer_op(const Im2col& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t axes = check_spatial(in);
  in.check_plain(0);
  check_entries(in, "window", op.window, axes, 1);
  std::int64_t columns = in[0].shape.back();
  for (const std::int64_t taps : op.window) {
    in.check(!__builtin_mul_overflow(columns, taps, &columns), "windows {} of x {} overflow",
             op.window, in[0]);
  }
  return {{in[0].dtype,
           spatial_shape(in[0].shape, window_outputs(in, op.windows, op.window), columns)}};
}

Specs infer_op(const Pool& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t axes = check_spatial(in);
  in.check_kind(0, op.kind == PoolKind::mean ? kFloat : kReal);
  const auto& [window, stride, low, high] = *op.windows;
  check_entries(in, "window", window, axes, 1);
  check_entries(in, "padding_low", low, axes, 0);
  check_entries(in, "padding_high", high, axes, 0);
  for (std::size_t i = 0; i < axes; ++i) {
    in.check(low[i] < window[i] && high[i] < window[i],
             "padding of {} and {} around spatial axis {}; it must be smaller than the window, {}",
             low[i], high[i], i + 1, window[i]);
  }
  const Dims ones(axes, 1);
  const Shape spatial = window_outputs(in, {stride, low, high, ones, ones}, window);
  return {{in[0].dtype, spatial_shape(in[0].shape, spatial, in[0].shape.back())}};
}

Specs infer_op(const Resize& op, const Operands& in) {
  in.check_count(1, "x");
  const std::size_t axes = check_spatial(in);
  in.check_kind(0, op.kind == ResizeKind::linear ? kFloat : kPlain);
  check_entries(in, "size", op.size, axes, 1);
  for (std::size_t i = 1; i <= axes; ++i) {
    in.check(in[0].shape[i] <= kMostStep, "spatial axis {} of x {} is longer than {}", i, in[0],
             kMostStep);
  }
  return {{in[0].dtype, spatial_shape(in[0].shape, op.size, in[0].shape.back())}};
}

}  // namespace heddle
