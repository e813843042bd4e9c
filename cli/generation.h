// What the commands that generate text share.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/llm.h"

namespace heddle::cli {

std::uint64_t random_seed();

/// 0 if no time has passed.
double tokens_per_second(std::int64_t tokens, double seconds);

/// Makes the plans for such a prompt, and has the weights read and packed, before anything is
/// measured.
void warm_up(llm::Context& context, llm::SequenceId sequence, std::span<const TokenId> prompt);

}  // namespace heddle::cli
