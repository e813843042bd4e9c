// The tensors that a model's file must have, by name.
#pragma once

#include <string>
#include <vector>

#include "heddle/llm.h"

namespace heddle::llm {

/// What a place in the model takes.
enum class TensorUse {
  matrix,  // f32, f16, bf16 or any block type: read by products and row lookups
  vector,  // f32, f16 or bf16: norms, biases, factors
};

struct ExpectedTensor {
  std::string name;
  Shape shape;
  TensorUse use;
};

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// "blk.3.attn_q.weight"
std::string layer_tensor(std::int64_t layer, std::string_view name);

}  // namespace heddle::llm
