// Softmax and the normalisations backwards. Half types are computed in f32.
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

/// What all normalisations are: of a view of x, over some of its axes, with a weight and a bias
/// along one axis of x.
struct Normalised {
  Dims axes;  // of the view
  double eps;
  bool centred;
  Shape view, weight_view;  // the latter stretches to the former
  std::int64_t weight_axis;
  bool has_weight, has_bias;

  /// Of a's products with b, of the view's shape or one that stretches to it.
  Array mean_of_products(const Array& a, const Array& b) const {
    const bool along_rows = axes.size() == 1 && axes[0] + 1 == static_cast<std::int64_t>(a.ndim());
    if (!along_rows) return mean(a * b, axes, true);
    return sum_of_products(a, b) / scalar(static_cast<double>(a.shape(-1)), a.dtype());
  }
  Array inverse_deviation(const Array& centred_x) const {
    return rsqrt(mean_of_products(centred_x, centred_x) + scalar(eps, centred_x.dtype()));
  }
  Array centre(const Array& x) const { return centred ? x - mean(x, axes, true) : x; }
};

Dims all_but(std::size_t rank, std::int64_t axis) {
  Dims axes;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

/// With c = x less its mean, s one over its deviation, n = c s, u = g weight:
///   dx = s (u less its mean) - c s s mean(u n),  dweight = sum(g n)
/// Of what is as large as x, only g n is needed twice.
InputCotangents norm_vjp(const Normalised& norm, const Backward& b) {
  const Array x = reshape(widened(b.in[0]), norm.view), g = reshape(widened(b.g()), norm.view);
  std::optional<Array> weight;
  if (norm.has_weight) weight = reshape(widened(b.in[1]), norm.weight_view);
  const Array centred = norm.centre(x), scale = norm.inverse_deviation(centred);
  const Array g_normalised = g * (centred * scale);
  const Array along =
      weight ? norm.mean_of_products(g_normalised, *weight) : mean(g_normalised, norm.axes, true);
  const Array to_x =
      scale * norm.centre(weight ? g * *weight : g) - centred * (scale * along * scale);
  const Shape& shape = b.in[0].shape();
  InputCotangents found{astype(reshape(to_x, shape), b.in[0].dtype())};
  const Dims others = all_but(shape.size(), norm.weight_axis);
  const auto along_axis = [&](const Array& all) {
    const Array& like = b.in[found.size()];
    return astype(others.empty() ? all : sum(all, others), like.dtype());
  };
  if (norm.has_weight) found.push_back(along_axis(reshape(g_normalised, shape)));
  if (norm.has_bias) found.push_back(along_axis(widened(b.g())));
  return found;
}

InputCotangents softmax_vjp(const Backward& b) {
  const Array y = widened(b.out[0]), g = widened(b.g());
  return {astype(y * (g - sum_of_products(g, y)), b.in[0].dtype())};
}

std::int64_t last_axis(const Array& x) {
  return static_cast<std::int64_t>(x.ndim()) - 1;
}

/// Over one axis, along which the weight lies too.
template <class Norm>
Normalised of_axis(const Norm& op, std::int64_t axis, bool centred, const Backward& b) {
  const Shape& shape = b.in[0].shape();
  Shape line(shape.size(), 1);
  line[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
  return {.axes = {axis},
          .eps = op.eps,
          .centred = centred,
          .view = shape,
          .weight_view = line,
          .weight_axis = axis,
          .has_weight = op.has_weight,
          .has_bias = op.has_bias};
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
  return norm_vjp(of_axis(op, last_axis(b.in[0]), false, b), b);
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
  return norm_vjp(of_axis(op, last_axis(b.in[0]), true, b), b);
}

InputCotangents vjp_rule(const ChannelNorm& op, const Backward& b) {
  return norm_vjp(of_axis(op, op.axis, true, b), b);
}

InputCotangents vjp_rule(const GroupNorm& op, const Backward& b) {
  const Shape& shape = b.in[0].shape();
  const std::int64_t channels = shape.back();
  std::int64_t positions = 1;
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) positions *= shape[i];
  const std::int64_t in_group = channels / op.groups;
  return norm_vjp({.axes = {1, 3},
                   .eps = op.eps,
                   .centred = true,
                   .view = {shape[0], positions, op.groups, in_group},
                   .weight_view = {1, 1, op.groups, in_group},
                   .weight_axis = last_axis(b.in[0]),
                   .has_weight = op.has_weight,
                   .has_bias = op.has_bias},
                  b);
}

}  // namespace heddle
