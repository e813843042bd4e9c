// How likely a model thought its tokens.
#pragma once

#include <span>

#include "heddle/engine.h"

namespace heddle::llm {

/// Of `chosen`, and of the `top` likeliest, under softmax(logits). Sums are in float64, by rising
/// id. NaN counts as -inf.
SampledToken logprobs_of(std::span<const float> logits, TokenId chosen, std::int64_t top);

}  // namespace heddle::llm
