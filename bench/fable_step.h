// The bundled model as something to train: its parameters, its loss, and a step of AdamW.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "heddle/array.h"
#include "heddle/transforms.h"

namespace heddle::bench {

inline constexpr std::int64_t kSequences = 16, kTokens = 128;

struct FableShape {
  std::int64_t layers, heads, kv_heads;
  float eps, rope_base;
};

/// By GGUF's names, in f32.
using Weights = std::map<std::string, Array>;

struct Fable {
  FableShape shape;
  Weights weights;
};
Fable read_fable(const std::filesystem::path& file);

/// The mean cross-entropy of the tokens [B, T] to come: `targets` [B, T].
Array fable_loss(const FableShape& shape, const Weights& weights, const Array& tokens,
                 const Array& targets);

/// Parameters and moments, as a compiled step keeps them.
struct Training {
  Fable model;
  std::vector<Array> state;  // weights in order, first moments, second moments, steps
  explicit Training(Fable fable);
};

/// (tokens, targets) -> loss: AdamW with gradients clipped to a norm of 1, on `training.state`.
ArraysFunction training_step(Training& training);

}  // namespace heddle::bench
