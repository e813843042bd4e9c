// Adapters of low rank: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models".
#include "heddle/nn.h"
#include "heddle/ops.h"
#include "nn/check_sizes.h"

namespace heddle::nn {

namespace {

constexpr const char* kName = "nn::LoRALinear";

std::variant<Linear, QuantizedLinear> without_adapter(const AnyLinear& linear) {
  if (const auto* plain = std::get_if<Linear>(&linear.layer)) return *plain;
  const auto* quantized = std::get_if<QuantizedLinear>(&linear.layer);
  require(quantized != nullptr, ErrorCode::invalid_argument,
          "{}: the layer has an adapter already; fuse it first", kName);
  return *quantized;
}

/// [out, in], which for codes is not the weight's shape.
Shape layer_shape(const std::variant<Linear, QuantizedLinear>& linear) {
  if (const auto* plain = std::get_if<Linear>(&linear)) return plain->weight.shape();
  return std::get<QuantizedLinear>(linear).dequantized_weight().shape();
}

}  // namespace

LoRALinear::LoRALinear(const AnyLinear& from, int rank, const Array& key, float factor, float p,
                       Where where)
    : linear(without_adapter(from)), lora_a(0), lora_b(0), scale(factor), dropout(p) {
  within(kName, where, [&] {
    require_positive(kName, {{"rank", rank}});
    require(std::isfinite(scale), ErrorCode::invalid_argument, "scale is {}; it must be finite",
            scale);
    const Shape shape = layer_shape(linear);
    lora_a = uniform_for({shape[1], rank}, shape[1], key);
    lora_b = zeros({rank, shape[0]});
  });
}

Array LoRALinear::operator()(const Arg& x, const random::Key& key) const {
  return within(kName, x, [&] {
    const Array y = std::visit([&](const auto& layer) { return layer(x); }, linear);
    const Array z = matmul(matmul(dropout(x, key), lora_a), lora_b);
    return astype(y + scale * z, y.dtype());
  });
}

Linear LoRALinear::fuse() const {
  return within(kName, [&] {
    const Array delta = scale * transpose(matmul(lora_a, lora_b));
    if (const auto* plain = std::get_if<Linear>(&linear)) {
      return Linear(astype(plain->weight + delta, plain->weight.dtype()), plain->bias);
    }
    const auto& quantized = std::get<QuantizedLinear>(linear);
    return Linear(quantized.dequantized_weight() + delta, quantized.bias);
  });
}

bool is_adapter(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "lora_a" || last == "lora_b";
}

Array AnyLinear::operator()(const Arg& x, const random::Key& key) const {
  if (const auto* plain = std::get_if<Linear>(&layer)) return (*plain)(x);
  if (const auto* quantized = std::get_if<QuantizedLinear>(&layer)) return (*quantized)(x);
  return std::get<LoRALinear>(layer)(x, key);
}

}  // namespace heddle::nn
