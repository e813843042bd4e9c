#include "llm/logprobs.h"

#include <algorithm>
#include <cmath>

#include "llm/selection.h"

namespace heddle::llm {

namespace {

/// log(sum(exp(logits))), less `best`.
double log_sum(std::span<const float> logits, float best) {
  double sum = 0;
  for (const float logit : logits) {
    if (logit == best)
      sum += 1;  // also where both are infinite
    else if (logit > kLowest)
      sum += std::exp(static_cast<double>(logit) - best);
  }
  return std::log(sum);
}

}  // namespace

SampledToken logprobs_of(std::span<const float> logits, TokenId chosen, std::int64_t top) {
  float best = kLowest;
  for (const float logit : logits) best = logit > best ? logit : best;
  const double total = log_sum(logits, best);
  const auto logprob = [&](float logit) -> double {
    if (!(logit > kLowest)) return kLowest;
    return logit == best ? -total : static_cast<double>(logit) - best - total;
  };
  SampledToken token;
  token.chosen = {chosen, logprob(logits[static_cast<std::size_t>(chosen)])};
  if (top == 0) return token;
  Selection selection(std::min(static_cast<std::size_t>(top), logits.size()), logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id)
    selection.add(static_cast<TokenId>(id), logits[id]);
  std::vector<Candidate> likeliest = selection.take();
  std::ranges::sort(likeliest, likelier);
  for (const Candidate& c : likeliest) token.top.push_back({c.id, logprob(c.logit)});
  return token;
}

}  // namespace heddle::llm
