// Embeddings, norms, convolutions and dropout.
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "nn/check_sizes.h"
#include "nn/product.h"

namespace heddle::nn {

namespace {

void require_eps(std::string_view module, float eps) {
  require(std::isfinite(eps) && eps >= 0, ErrorCode::invalid_argument,
          "{}: eps is {}; it must be finite and not negative", module, eps);
}

/// [out, window..., in / groups], and zeros [out] for the bias.
Array conv_weight(std::string_view module, int in, int out, const Shape& window, int groups,
                  const Array& key) {
  require(in % groups == 0 && out % groups == 0, ErrorCode::invalid_argument,
          "{}: {} groups do not divide {} channels in and {} out", module, groups, in, out);
  Shape shape{out};
  for (const std::int64_t extent : window) shape.push_back(extent);
  shape.push_back(in / groups);
  return uniform_for(shape, elements(shape) / out, key);
}

void require_padding(std::string_view module, int padding) {
  require(padding >= 0, ErrorCode::invalid_argument, "{}: padding is {}; it must not be negative",
          module, padding);
}

}  // namespace

Dropout::Dropout(float probability) : p(probability) {
  require(p >= 0 && p < 1, ErrorCode::invalid_argument,
          "nn::Dropout: p is {}; it must be in [0, 1)", p);
}

Array Dropout::operator()(const Arg& x, const random::Key& key) const {
  return within("nn::Dropout", x, [&]() -> Array {
    require(is_floating(x.dtype()), ErrorCode::invalid_argument, "x is {}; it must be floating",
            x.spec());
    if (!key || p == 0) return x;
    const Array kept = random::bernoulli(1 - p, x.shape(), key);
    return astype(where(kept, x * (1 / (1 - p)), zeros_like(x)), x.dtype());
  });
}

Embedding::Embedding(int num_embeddings, int dims, const Array& key, Where where) : weight(0) {
  within("nn::Embedding", where, [&] {
    require_positive("nn::Embedding", {{"num_embeddings", num_embeddings}, {"dims", dims}});
    weight = random::normal({num_embeddings, dims}, 0.0f,
                            1.0f / std::sqrt(static_cast<float>(dims)), key);
  });
}

Embedding::Embedding(Array w) : weight(std::move(w)) {
  require(weight.ndim() == 2 && (is_floating(weight.dtype()) || is_block(weight.dtype())),
          ErrorCode::invalid_argument,
          "nn::Embedding: the weight is {}; it must be [num_embeddings, dims], floating or of a "
          "block type",
          weight.spec());
}

Array Embedding::operator()(const Arg& ids) const {
  return within("nn::Embedding", ids, [&] { return take(weight, ids, 0); });
}

Array Embedding::as_linear(const Arg& x) const {
  return within("nn::Embedding", x, [&] {
    require_width("nn::Embedding", x, weight.shape(-1));
    return product(x, weight);
  });
}

RMSNorm::RMSNorm(int dims, float epsilon) : weight(0), eps(epsilon) {
  require_positive("nn::RMSNorm", {{"dims", dims}});
  require_eps("nn::RMSNorm", eps);
  weight = ones({dims});
}

Array RMSNorm::operator()(const Arg& x) const {
  return within("nn::RMSNorm", x, [&] { return fast::rms_norm(x, weight, eps); });
}

LayerNorm::LayerNorm(int width, float epsilon, bool affine, bool with_bias)
    : eps(epsilon), dims(width) {
  require_positive("nn::LayerNorm", {{"dims", dims}});
  require_eps("nn::LayerNorm", eps);
  if (affine) weight = ones({dims});
  if (affine && with_bias) bias = zeros({dims});
}

Array LayerNorm::operator()(const Arg& x) const {
  return within("nn::LayerNorm", x, [&] {
    require_width("nn::LayerNorm", x, dims);
    return fast::layer_norm(x, weight, bias, eps);
  });
}

GroupNorm::GroupNorm(int groups, int width, float epsilon, bool affine)
    : eps(epsilon), num_groups(groups), dims(width) {
  require_positive("nn::GroupNorm", {{"num_groups", num_groups}, {"dims", dims}});
  require_eps("nn::GroupNorm", eps);
  require(dims % num_groups == 0, ErrorCode::invalid_argument,
          "nn::GroupNorm: {} groups do not divide {} channels", num_groups, dims);
  if (affine) weight = ones({dims});
  if (affine) bias = zeros({dims});
}

Array GroupNorm::operator()(const Arg& x) const {
  return within("nn::GroupNorm", x, [&] {
    require(x.ndim() >= 2, ErrorCode::invalid_argument, "x is {}; it must be [N, ..., {}]",
            x.spec(), dims);
    require_width("nn::GroupNorm", x, dims);
    return fast::group_norm(x, num_groups, weight, bias, eps);
  });
}

InstanceNorm::InstanceNorm(int width, float epsilon, bool affine)
    : GroupNorm(width, width, epsilon, affine) {}

Conv1d::Conv1d(int in_channels, int out_channels, int kernel_size, const Array& key,
               const Conv1dOptions& given, Where where)
    : weight(0), options(given) {
  within("nn::Conv1d", where, [&] {
    require_positive("nn::Conv1d", {{"in_channels", in_channels},
                                    {"out_channels", out_channels},
                                    {"kernel_size", kernel_size},
                                    {"stride", options.stride},
                                    {"dilation", options.dilation},
                                    {"groups", options.groups}});
    require_padding("nn::Conv1d", options.padding);
    weight =
        conv_weight("nn::Conv1d", in_channels, out_channels, {kernel_size}, options.groups, key);
    if (options.bias) bias = zeros({out_channels});
  });
}

Array Conv1d::operator()(const Arg& x) const {
  return within("nn::Conv1d", x, [&] {
    const Array y =
        conv1d(x, weight, options.stride, options.padding, options.dilation, options.groups);
    return bias ? y + *bias : y;
  });
}

Conv2d::Conv2d(int in_channels, int out_channels, const std::pair<int, int>& kernel_size,
               const Array& key, const Conv2dOptions& given, Where where)
    : weight(0), options(given) {
  within("nn::Conv2d", where, [&] {
    const auto smaller = [](const std::pair<int, int>& both) {
      return std::min(both.first, both.second);
    };
    require_positive("nn::Conv2d", {{"in_channels", in_channels},
                                    {"out_channels", out_channels},
                                    {"kernel_size", smaller(kernel_size)},
                                    {"stride", smaller(options.stride)},
                                    {"dilation", smaller(options.dilation)},
                                    {"groups", options.groups}});
    require_padding("nn::Conv2d", smaller(options.padding));
    weight = conv_weight("nn::Conv2d", in_channels, out_channels,
                         {kernel_size.first, kernel_size.second}, options.groups, key);
    if (options.bias) bias = zeros({out_channels});
  });
}

Array Conv2d::operator()(const Arg& x) const {
  return within("nn::Conv2d", x, [&] {
    const Array y =
        conv2d(x, weight, options.stride, options.padding, options.dilation, options.groups);
    return bias ? y + *bias : y;
  });
}

}  // namespace heddle::nn
