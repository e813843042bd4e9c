// Convolutions, windows and resizing backwards: convolutions again.
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// Extents along one spatial axis once dilated.
std::int64_t spread(std::int64_t extent, std::int64_t dilation) {
  return (extent - 1) * dilation + 1;
}

Dims spatial_of(const Shape& shape) {
  return Dims(std::span(shape.begin() + 1, shape.size() - 2));
}

/// Swaps the groups' inputs and outputs: [O, K..., C/groups] to [C, K..., O/groups].
Array exchanged(const Array& weight, std::int64_t groups) {
  const Shape shape = weight.shape();
  Shape apart{groups, shape[0] / groups};
  for (std::size_t i = 1; i < shape.size(); ++i) apart.push_back(shape[i]);
  Shape together = shape;
  together[0] = shape.back() * groups;
  together[shape.size() - 1] = shape[0] / groups;
  return reshape(swapaxes(reshape(weight, apart), 1, -1), together);
}

/// By x: what each output gave goes back to where it was read, so g is spread by the stride and
/// read with the weights the other way round.
Array conv_input_vjp(const Conv& op, const Backward& b) {
  const Windows& w = op.windows;
  const Dims kernel = spatial_of(b.in[1].shape()), in = spatial_of(b.in[0].shape());
  const Dims out = spatial_of(b.out[0].shape());
  Windows back{w.input_dilation, Dims(in.size(), 0), Dims(in.size(), 0), w.kernel_dilation,
               w.stride};
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::int64_t taps = spread(kernel[i], w.kernel_dilation[i]);
    back.padding_low[i] = taps - 1 - w.padding_low[i];
    back.padding_high[i] = (in[i] - 1) * w.input_dilation[i] + taps - spread(out[i], w.stride[i]) -
                           back.padding_low[i];
  }
  return heddle::apply(Conv{back, op.groups, !op.flip}, {b.g(), exchanged(b.in[1], op.groups)});
}

/// x [N, S..., C] as [C/groups, S..., groups*N]: batch and channels change places.
Array channels_as_batch(const Array& x, std::int64_t groups) {
  const Shape shape = x.shape();
  Shape apart = shape;
  apart[shape.size() - 1] = groups;
  apart.push_back(shape.back() / groups);
  Dims order{static_cast<std::int64_t>(shape.size())};
  for (std::size_t i = 1; i < shape.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(0);
  Shape together = shape;
  together[0] = shape.back() / groups;
  together[shape.size() - 1] = groups * shape[0];
  return reshape(transpose(reshape(x, apart), order), together);
}

/// By the weights: each tap is the sum, over all outputs and the batch, of what it read times g.
Array conv_weight_vjp(const Conv& op, const Backward& b) {
  const Windows& w = op.windows;
  const Array &x = b.in[0], &weight = b.in[1];
  const Dims kernel = spatial_of(weight.shape()), in = spatial_of(x.shape());
  const Dims out = spatial_of(b.out[0].shape());
  Windows taps{w.kernel_dilation, w.padding_low, Dims(in.size(), 0), w.stride, w.input_dilation};
  for (std::size_t i = 0; i < in.size(); ++i) {
    taps.padding_high[i] = (kernel[i] - 1) * w.kernel_dilation[i] + spread(out[i], w.stride[i]) -
                           spread(in[i], w.input_dilation[i]) - w.padding_low[i];
  }
  const Array found = heddle::apply(Conv{taps, op.groups, false},
                                    {channels_as_batch(x, op.groups), swapaxes(b.g(), 0, -1)});
  const Array ordered = swapaxes(found, 0, -1);
  if (!op.flip) return ordered;
  Dims spatial;
  for (std::size_t i = 0; i < in.size(); ++i) spatial.push_back(static_cast<std::int64_t>(i) + 1);
  return flip(ordered, spatial);
}

/// The columns' cotangents [N, out..., K*C] added up where they were read: a channel at a time, the
/// transpose of a convolution whose weights pick one tap each.
Array columns_vjp(const Im2col& op, const Array& x, const Array& g) {
  const Shape shape = x.shape(), outputs = g.shape();
  const std::int64_t channels = shape.back();
  std::int64_t taps = 1;
  for (const std::int64_t extent : op.window) taps *= extent;
  Shape apart = outputs, lone_out = outputs, lone_in = shape, picks{taps};
  apart[outputs.size() - 1] = taps;
  apart.push_back(channels);
  lone_out[0] = lone_in[0] = shape[0] * channels;
  lone_out[outputs.size() - 1] = taps;
  lone_in[shape.size() - 1] = 1;
  for (const std::int64_t extent : op.window) picks.push_back(extent);
  picks.push_back(1);
  const Array alone = reshape(moveaxis(reshape(g, apart), -1, 1), lone_out);
  const Array weight = reshape(eye(static_cast<int>(taps), g.dtype()), picks);
  const std::vector<Array> in{zeros(lone_in, g.dtype()), weight}, out{alone};
  const std::vector<std::optional<Array>> cotangents{alone};
  const Array back = conv_input_vjp(Conv{op.windows, 1, false}, {in, out, cotangents, {}});
  Shape by_channel = shape;
  by_channel.insert(1, channels);
  by_channel.erase(by_channel.size() - 1);
  return moveaxis(reshape(back, by_channel), 1, -1);
}

Im2col columns_of(const Pool& op) {
  const auto& [window, stride, low, high] = *op.windows;
  const Dims ones(window.size(), 1);
  return {window, Windows{stride, low, high, ones, ones}};
}

/// [N, out..., taps, C]
Array by_tap(const Array& columns, std::int64_t channels) {
  Shape apart = columns.shape();
  apart[apart.size() - 1] = apart.back() / channels;
  apart.push_back(channels);
  return reshape(columns, apart);
}

/// The first of the largest elements of a window gets everything.
Array max_pool_vjp(const Pool& op, const Array& x, const Array& g) {
  const Im2col columns = columns_of(op);
  const std::int64_t channels = x.shape().back();
  const Array inside = heddle::apply(columns, {ones(x.shape(), DType::bool_)});
  const Array lowest = scalar(-std::numeric_limits<double>::infinity(), x.dtype());
  const Array read = where(inside, heddle::apply(columns, {x}), lowest);
  const Array taps = by_tap(read, channels);
  const Array winner = argmax(taps, -2, true);
  const Array number = heddle::apply(Arange{0, 1, taps.shape(-2), DType::u32}, {});
  const Array wins = reshape(number, {taps.shape(-2), 1}) == winner;
  const Array shares = where(wins, expand_dims(g, -2), scalar(0, g.dtype()));
  return columns_vjp(columns, x, reshape(shares, read.shape()));
}

/// Each element of a window gets as much: g over their number.
Array mean_pool_vjp(const Pool& op, const Array& x, const Array& g) {
  const Im2col columns = columns_of(op);
  std::int64_t taps = 1;
  for (const std::int64_t extent : op.windows->window) taps *= extent;
  // The share of a window that lies inside, which the mean's divisor leaves out of count.
  Pool counting = op;
  counting.count_padding = true;
  const Array share = op.count_padding ? scalar(1, g.dtype())
                                       : heddle::apply(counting, {ones(x.shape(), g.dtype())});
  const Array each = g / (share * scalar(static_cast<double>(taps), g.dtype()));
  Shape wide = g.shape();
  wide.insert(wide.size() - 1, taps);
  Shape flat = g.shape();
  flat[flat.size() - 1] *= taps;
  return columns_vjp(columns, x, reshape(broadcast_to(expand_dims(each, -2), wide), flat));
}

/// What resizing does along one axis, as a matrix [to, from]: the resized unit vectors.
Array resizing_matrix(const Resize& op, std::size_t axis, std::int64_t from, DType dtype) {
  const Array units = reshape(eye(static_cast<int>(from), dtype), {from, from, 1});
  const Resize along{op.kind, {op.size[axis]}, op.align_corners};
  return transpose(squeeze(heddle::apply(along, {units}), Dims{2}));
}

}  // namespace

InputCotangents vjp_rule(const Conv& op, const Backward& b) {
  InputCotangents found(2);
  if (b.wanted[0]) found[0] = conv_input_vjp(op, b);
  if (b.wanted[1]) found[1] = conv_weight_vjp(op, b);
  return found;
}

InputCotangents vjp_rule(const Im2col& op, const Backward& b) {
  return {columns_vjp(op, b.in[0], b.g())};
}

InputCotangents vjp_rule(const Pool& op, const Backward& b) {
  const Array x = widened(b.in[0]), g = widened(b.g());
  const Array found = op.kind == PoolKind::max ? max_pool_vjp(op, x, g) : mean_pool_vjp(op, x, g);
  return {astype(found, b.in[0].dtype())};
}

InputCotangents vjp_rule(const Resize& op, const Backward& b) {
  if (!is_differentiable(b.out[0].dtype())) return {std::nullopt};
  Array g = widened(b.g());
  for (std::size_t i = 0; i < op.size.size(); ++i) {
    const auto axis = static_cast<int>(i) + 1;
    const Array matrix = resizing_matrix(op, i, b.in[0].shape(axis), g.dtype());
    g = moveaxis(matmul(moveaxis(g, axis, -1), matrix), -1, axis);
  }
  return {astype(g, b.in[0].dtype())};
}

}  // namespace heddle
