// Softmax and the normalisations backwards. Half types are computed in f32.
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// What all normalisations are: of a view of x with some axes to normalise over.
struct Normalised {
  Dims axes;
  double eps;
  bool centred;

  Array inverse_deviation(const Array& centred_x) const {
    return rsqrt(mean(square(centred_x), axes, true) + scalar(eps, centred_x.dtype()));
  }
  Array centre(const Array& x) const { return centred ? x - mean(x, axes, true) : x; }
};

struct Slopes {
  Array to_x;        // of u, the cotangent of what was normalised
  Array normalised;  // for the weight's
};

Slopes normalised_vjp(const Normalised& norm, const Array& x, const Array& u) {
  const Array middle = norm.centre(x);
  const Array scale = norm.inverse_deviation(middle);
  const Array normalised = middle * scale;
  const Array along = mean(u * normalised, norm.axes, true);
  return {scale * (norm.centre(u) - normalised * along), normalised};
}

Dims all_but(std::size_t rank, std::int64_t axis) {
  Dims axes;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

/// Of x whose weight and bias lie along `axis`; `view` is x's shape to normalise in.
InputCotangents norm_vjp(const Normalised& norm, const Shape& view, std::int64_t axis,
                         bool has_weight, bool has_bias, const Backward& b) {
  const Array x = widened(b.in[0]), g = widened(b.g());
  Shape line(x.ndim(), 1);
  line[static_cast<std::size_t>(axis)] = x.shape(axis);
  const Array u = has_weight ? g * reshape(widened(b.in[1]), line) : g;
  const Slopes slopes = normalised_vjp(norm, reshape(x, view), reshape(u, view));
  InputCotangents found{astype(reshape(slopes.to_x, x.shape()), b.in[0].dtype())};
  const Dims others = all_but(x.ndim(), axis);
  const auto along_axis = [&](const Array& all) {
    const Array& like = b.in[found.size()];
    return astype(others.empty() ? all : sum(all, others), like.dtype());
  };
  if (has_weight) found.push_back(along_axis(g * reshape(slopes.normalised, x.shape())));
  if (has_bias) found.push_back(along_axis(g));
  return found;
}

InputCotangents softmax_vjp(const Backward& b) {
  const Array y = widened(b.out[0]), g = widened(b.g());
  return {astype(y * (g - sum(g * y, -1, true)), b.in[0].dtype())};
}

std::int64_t last_axis(const Array& x) {
  return static_cast<std::int64_t>(x.ndim()) - 1;
}

}  // namespace

InputCotangents vjp_rule(const Softmax&, const Backward& b) {
  return softmax_vjp(b);
}

// What a row does not see has a result of 0, and so a cotangent of 0.
InputCotangents vjp_rule(const CausalSoftmax&, const Backward& b) {
  return softmax_vjp(b);
}

InputCotangents vjp_rule(const RmsNorm& op, const Backward& b) {
  const std::int64_t axis = last_axis(b.in[0]);
  return norm_vjp({{axis}, op.eps, false}, b.in[0].shape(), axis, op.has_weight, op.has_bias, b);
}

InputCotangents vjp_rule(const AddRmsNorm& op, const Backward& b) {
  const ArraysFunction parts = [&](const std::vector<Array>& in) {
    std::vector<Array> inputs(in.begin() + 1, in.end());
    inputs[0] = in[0] + in[1];
    const Array total = inputs[0];
    return std::vector<Array>{
        total, heddle::apply(RmsNorm{op.eps, op.has_weight, op.has_bias}, std::move(inputs))};
  };
  return vjp_of_parts(parts, b);
}

InputCotangents vjp_rule(const LayerNorm& op, const Backward& b) {
  const std::int64_t axis = last_axis(b.in[0]);
  return norm_vjp({{axis}, op.eps, true}, b.in[0].shape(), axis, op.has_weight, op.has_bias, b);
}

InputCotangents vjp_rule(const ChannelNorm& op, const Backward& b) {
  return norm_vjp({{op.axis}, op.eps, true}, b.in[0].shape(), op.axis, op.has_weight, op.has_bias,
                  b);
}

InputCotangents vjp_rule(const GroupNorm& op, const Backward& b) {
  const Shape& shape = b.in[0].shape();
  const std::int64_t channels = shape.back();
  std::int64_t positions = 1;
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) positions *= shape[i];
  const Shape view{shape[0], positions, op.groups, channels / op.groups};
  return norm_vjp({{1, 3}, op.eps, true}, view, last_axis(b.in[0]), op.has_weight, op.has_bias, b);
}

}  // namespace heddle
