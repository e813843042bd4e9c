#include "llm/engine/pace.h"

#include <algorithm>

namespace heddle::llm {

namespace {

constexpr std::int64_t kLeast = 16, kLeastAlone = 128;
constexpr double kMost = 1 << 20;

}  // namespace

/// Keeps a mean of the latest. A step that is far slower counts as twice the mean: the first of its
/// size compiles a plan.
void Pace::note(std::int64_t prompt_tokens, double seconds) {
  constexpr double kWeight = 0.3, kLeastSeconds = 1e-9;
  if (prompt_tokens < kLeast) return;
  const double each = std::max(seconds, kLeastSeconds) / static_cast<double>(prompt_tokens);
  if (!token_seconds_)
    token_seconds_ = each;
  else
    *token_seconds_ += kWeight * (std::min(each, 2 * *token_seconds_) - *token_seconds_);
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
