// A model's gradients as a file, for programs that compute them in another way.
#pragma once

#include <string>

#include "model.h"

namespace fable {

/// .safetensors with `tokens`, `loss`, the weights by name, each one's gradient as gradient.NAME,
/// and the shape as metadata: layers, heads, kv_heads, eps, rope_base.
void write_gradients(const std::string& file, const Model& model, const heddle::Array& tokens,
                     const heddle::Array& loss, const heddle::nn::NamedArrays& gradients);

}  // namespace fable
