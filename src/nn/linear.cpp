// Linear layers with weights that are plain or quantised.
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "nn/checks.h"
#include "nn/product.h"
#include "tensor/quantize.h"

namespace heddle::nn {

namespace {

/// Up to so many rows, a product waits for the weights, which `linear` reads as fast as memory
/// gives them; beyond, what matmul makes of them first pays.
constexpr std::int64_t kFewRows = 32;

bool is_of_few_rows(const Array& x) {
  return x.ndim() > 0 && elements(x.shape()) <= kFewRows * x.shape(-1);
}

}  // namespace

Array product(const Array& x, const Array& weight) {
  const bool is_f32 = x.dtype() == DType::f32 && weight.dtype() == DType::f32;
  const bool is_linear = is_block(weight.dtype()) || (is_f32 && is_of_few_rows(x));
  return is_linear ? linear(x, weight) : matmul(x, transpose(weight));
}

namespace {

Array with_bias(const Array& y, const std::optional<Array>& bias) {
  return bias ? y + *bias : y;
}

void require_bias(std::string_view module, const Array& weight, const std::optional<Array>& bias) {
  require(!bias || (is_floating(bias->dtype()) && bias->shape() == Shape{weight.shape(0)}),
          ErrorCode::invalid_argument,
          "{}: the bias is {}; for the weight {} it must be floating [{}]", module,
          bias ? to_string(bias->spec()) : "", weight.spec(), weight.shape(0));
}

/// `weight` in a block type.
Array in_blocks(const Array& weight, DType type) {
  const Array values = contiguous(astype(weight, DType::f32));
  const std::int64_t rows = values.shape(0), width = values.shape(1);
  const std::size_t bytes = row_bytes(type, width);
  const std::vector<float> from = values.to_vector<float>();
  std::vector<std::byte> blocks(bytes * static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    quantize_row(type, from.data() + row * width,
                 blocks.data() + static_cast<std::size_t>(row) * bytes, width);
  }
  return Array::from_bytes({type, weight.shape()}, blocks);
}

}  // namespace

Linear::Linear(int input_dims, int output_dims, const Array& key, bool has_bias, Where where)
    : weight(0), bias(std::nullopt) {
  within("nn::Linear", where, [&] {
    require_positive("nn::Linear", {{"input_dims", input_dims}, {"output_dims", output_dims}});
    const auto [weight_key, bias_key] = random::split(key);
    weight = uniform_for({output_dims, input_dims}, input_dims, weight_key);
    if (has_bias) bias = uniform_for({output_dims}, input_dims, bias_key);
  });
}

Linear::Linear(Array w, std::optional<Array> b) : weight(std::move(w)), bias(std::move(b)) {
  require(weight.ndim() == 2 && is_floating(weight.dtype()), ErrorCode::invalid_argument,
          "nn::Linear: the weight is {}; it must be floating [out, in]", weight.spec());
  require_bias("nn::Linear", weight, bias);
}

Array Linear::operator()(const Arg& x) const {
  return within("nn::Linear", x, [&] {
    require_width("nn::Linear", x, weight.shape(-1));
    return with_bias(product(x, weight), bias);
  });
}

QuantizedLinear::QuantizedLinear(const Linear& linear, DType block_type, Where where)
    : weight(linear.weight), bias(linear.bias) {
  within("nn::QuantizedLinear", where, [&] {
    require(is_block(block_type), ErrorCode::invalid_argument,
            "{} is no block type, as q4_K and q8_0 are", block_type);
    weight = in_blocks(linear.weight, block_type);
  });
}

QuantizedLinear::QuantizedLinear(const Linear& linear, std::optional<int> size,
                                 std::optional<int> width, const std::string& how, Where where)
    : weight(linear.weight), bias(linear.bias), group_size(size), bits(width), mode(how) {
  within("nn::QuantizedLinear", where, [&] {
    const std::vector<Array> parts = quantize(linear.weight, group_size, bits, mode);
    weight = parts[0];
    scales = parts[1];
    if (parts.size() > 2) biases = parts[2];
  });
}

QuantizedLinear::QuantizedLinear(Array w, std::optional<Array> b)
    : weight(std::move(w)), bias(std::move(b)) {
  require(weight.ndim() == 2 && is_block(weight.dtype()), ErrorCode::invalid_argument,
          "nn::QuantizedLinear: the weight is {}; it must be [out, in] of a block type",
          weight.spec());
  require_bias("nn::QuantizedLinear", weight, bias);
}

Array QuantizedLinear::dequantized_weight() const {
  return within("nn::QuantizedLinear", [&] {
    if (!scales) return dequantize(weight);
    return dequantize(weight, *scales, biases, group_size, bits, mode, std::nullopt, DType::f32);
  });
}

Array QuantizedLinear::operator()(const Arg& x) const {
  return within("nn::QuantizedLinear", x, [&] {
    if (!scales) {
      require_width("nn::QuantizedLinear", x, weight.shape(-1));
      return with_bias(linear(x, weight), bias);
    }
    return with_bias(quantized_matmul(x, weight, *scales, biases, true, group_size, bits, mode),
                     bias);
  });
}

}  // namespace heddle::nn
