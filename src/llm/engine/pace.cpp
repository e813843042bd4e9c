#include "llm/engine/pace.h"

#include <algorithm>

namespace heddle::llm {

namespace {

constexpr std::int64_t kLeast = 16, kLeastAlone = 128;
constexpr double kMost = 1 << 20;

/// A mean of the latest values. One that is far above them counts as twice the mean: the first step
/// of its size compiles a plan.
void learn(std::optional<double>& mean, double value) {
  constexpr double kWeight = 0.3;
  if (!mean)
    mean = value;
  else
    *mean += kWeight * (std::min(value, 2 * *mean) - *mean);
}

}  // namespace

void Pace::note(std::int64_t prompt_tokens, std::int64_t written, double seconds) {
  if (prompt_tokens == 0) return learn(writing_seconds_, seconds);
  if (prompt_tokens < kLeast) return;
  const double beside = written > 0 ? writing_seconds_.value_or(0) : 0;
  learn(token_seconds_, std::max(seconds - beside, 1e-9) / static_cast<double>(prompt_tokens));
}

std::int64_t Pace::prompt_tokens() const {
  return token_seconds_ ? std::max(kLeast, tokens_in(step_seconds_)) : 2 * kLeast;
}

std::int64_t Pace::prompt_tokens_alone() const {
  constexpr double kSteps = 10;
  return token_seconds_ ? std::max(kLeastAlone, tokens_in(kSteps * step_seconds_)) : kLeastAlone;
}

std::int64_t Pace::tokens_in(double seconds) const {
  return static_cast<std::int64_t>(std::min(seconds / *token_seconds_, kMost));
}

}  // namespace heddle::llm
