#include "cli/generation.h"

#include <algorithm>
#include <random>

namespace heddle::cli {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

double tokens_per_second(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void warm_up(llm::Context& context, llm::SequenceId sequence, std::span<const TokenId> prompt) {
  if (prompt.empty()) return;
  if (!context.options().lazy) {
    const auto tokens = static_cast<std::int64_t>(prompt.size());
    context.plan_for(std::min(tokens, context.options().chunk));
  }
  context.step(sequence, prompt.first(1));
  context.truncate(sequence, 0);
}

}  // namespace heddle::cli
