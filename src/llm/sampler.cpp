#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "heddle/llm.h"
#include "llm/selection.h"

namespace heddle::llm {

namespace {

constexpr float kBan = -100;  // OpenAI's value for a token that must not come

/// exp((logit - most) / temperature), also where both are infinite.
double weight(float logit, float most, double temperature = 1) {
  if (logit == most) return 1;
  return std::exp((static_cast<double>(logit) - most) / temperature);
}

/// Calls visit(id, logit) for every token by rising id, with those of `changed` (by rising id, too)
/// instead of what the logits say. NaN comes through as NaN.
template <class Visit>
void for_each_logit(std::span<const float> logits, std::span<const Candidate> changed,
                    Visit visit) {
  std::size_t id = 0;
  for (const Candidate& c : changed) {
    const auto at = static_cast<std::size_t>(c.id);
    for (; id < at; ++id) visit(static_cast<TokenId>(id), logits[id]);
    visit(c.id, c.logit);
    id = at + 1;
  }
  for (; id < logits.size(); ++id) visit(static_cast<TokenId>(id), logits[id]);
}

float best_of(const std::vector<Candidate>& candidates) {
  float best = kLowest;
  for (const Candidate& c : candidates) best = std::max(best, c.logit);
  return best;
}

void keep_min_p(std::vector<Candidate>& candidates, float best, double min_p) {
  const double lowest = std::log(min_p);
  std::erase_if(candidates, [&](const Candidate& c) {
    return c.logit != best && static_cast<double>(c.logit) - best < lowest;
  });
}

/// Sorts the likeliest of candidates[sorted...] behind the `sorted` that are; returns how many are
/// sorted then. Each call sorts more than the ones before, so that few passes do for any number.
std::size_t sort_more(std::vector<Candidate>& candidates, std::size_t sorted) {
  constexpr std::size_t kFirst = 64, kGrowth = 4;
  const std::size_t upto = std::min(candidates.size(), std::max(kFirst, kGrowth * sorted));
  const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(sorted);
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(upto);
  std::nth_element(begin, end, candidates.end(), likelier);
  std::sort(begin, end, likelier);
  return upto;
}

/// Keeps the likeliest until they have `share` weight between them, and sorts few more than that.
void keep_share(std::vector<Candidate>& candidates, float best, double share) {
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == sorted) sorted = sort_more(candidates, sorted);
    share -= weight(candidates[i].logit, best);
    if (share <= 0) candidates.resize(i + 1);
  }
}

/// A number in [0, 1), made here because std::uniform_real_distribution differs between libraries.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// The candidate at the fraction `at` of their weight.
TokenId draw(const std::vector<Candidate>& candidates, float best, double temperature, double at) {
  std::vector<double> weights;
  weights.reserve(candidates.size());
  double total = 0;
  for (const Candidate& c : candidates) {
    weights.push_back(weight(c.logit, best, temperature));
    total += weights.back();
  }
  double left = at * total;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    left -= weights[i];
    if (left < 0) return candidates[i].id;
  }
  return candidates.front().id;  // only where rounding left nothing over
}

void check(const SamplerOptions& o) {
  const auto invalid = ErrorCode::invalid_argument;
  require(std::isfinite(o.temperature) && o.temperature >= 0, invalid,
          "temperature is {}; expected 0 or more", o.temperature);
  require(o.top_k >= 0, invalid, "top_k is {}; expected 0 (all) or more", o.top_k);
  require(o.top_p >= 0 && o.top_p <= 1, invalid, "top_p is {}; expected 0 to 1", o.top_p);
  require(o.min_p >= 0 && o.min_p <= 1, invalid, "min_p is {}; expected 0 to 1", o.min_p);
  require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, invalid,
          "repeat_penalty is {}; expected a positive number", o.repeat_penalty);
  require(o.repeat_last_n >= 0, invalid, "repeat_last_n is {}; expected 0 or more",
          o.repeat_last_n);
  require(std::isfinite(o.presence_penalty), invalid, "presence_penalty is {}; expected a number",
          o.presence_penalty);
  require(std::isfinite(o.frequency_penalty), invalid, "frequency_penalty is {}; expected a number",
          o.frequency_penalty);
  for (const auto& [id, bias] : o.logit_bias) {
    require(bias < -kLowest, invalid, "logit_bias of token {} is {}; expected a number", id, bias);
  }
}

bool penalises_counts(const SamplerOptions& options) {
  return options.presence_penalty != 0 || options.frequency_penalty != 0;
}

/// The tokens whose logits something changes, of those that a vocabulary of `size` has, each once,
/// by rising id.
std::vector<TokenId> tokens_to_change(const SamplerOptions& options,
                                      const std::vector<TokenId>& recent,
                                      const std::map<TokenId, std::int64_t>& counts,
                                      std::size_t size) {
  std::vector<TokenId> ids;
  if (options.repeat_penalty != 1) ids = recent;
  if (penalises_counts(options)) {
    for (const auto& [id, count] : counts) ids.push_back(id);
  }
  for (const auto& [id, bias] : options.logit_bias) ids.push_back(id);
  std::erase_if(ids, [size](TokenId id) { return id < 0 || static_cast<std::size_t>(id) >= size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

float biased(float logit, TokenId id, const std::map<TokenId, float>& bias) {
  const auto known = bias.find(id);
  if (known == bias.end()) return logit;
  return known->second <= kBan ? kLowest : logit + known->second;
}

/// In llama.cpp's order: biases, then penalties.
std::vector<Candidate> changed_logits(std::span<const float> logits, const SamplerOptions& options,
                                      const std::vector<TokenId>& recent,
                                      const std::map<TokenId, std::int64_t>& counts) {
  std::vector<Candidate> changed;
  for (const TokenId id : tokens_to_change(options, recent, counts, logits.size())) {
    float logit = biased(logits[static_cast<std::size_t>(id)], id, options.logit_bias);
    if (options.repeat_penalty != 1 && std::ranges::find(recent, id) != recent.end())
      logit = logit > 0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    if (const auto used = counts.find(id); used != counts.end()) {
      logit -=
          options.presence_penalty + options.frequency_penalty * static_cast<float>(used->second);
    }
    changed.push_back({logit, id});
  }
  return changed;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
  check(options);
}

TokenId Sampler::sample(std::span<const float> logits) {
  const auto all = logits.size();
  auto most = options_.top_k > 0 ? std::min(static_cast<std::size_t>(options_.top_k), all) : all;
  if (options_.temperature == 0) most = std::min<std::size_t>(most, 1);
  Selection selection(most, all);
  for_each_logit(logits, changed_logits(logits, options_, recent_, counts_),
                 [&](TokenId id, float logit) { selection.add(id, logit); });
  std::vector<Candidate> candidates = selection.take();
  require(!candidates.empty(), ErrorCode::backend,
          "none of {} logits can be sampled: each is NaN or -inf", all);
  if (candidates.size() == 1) return candidates.front().id;

  // min-p goes first although top-p is named first: both keep the likeliest, so their cuts commute
  // as long as top-p's share is of everything, and top-p then has less to sort.
  const float best = best_of(candidates);
  double total = 0;
  if (options_.top_p < 1) {
    for (const Candidate& c : candidates) total += weight(c.logit, best);
  }
  keep_min_p(candidates, best, options_.min_p);
  if (options_.top_p < 1) keep_share(candidates, best, options_.top_p * total);
  return draw(candidates, best, options_.temperature, uniform(random_));
}

void Sampler::accept(TokenId token) {
  remember(token);
  if (penalises_counts(options_)) ++counts_[token];
}

void Sampler::accept_prompt(std::span<const TokenId> tokens) {
  const auto last_n = static_cast<std::size_t>(options_.repeat_last_n);
  for (const TokenId token : tokens.last(std::min(tokens.size(), last_n))) remember(token);
}

void Sampler::remember(TokenId token) {
  const auto last_n = static_cast<std::size_t>(options_.repeat_last_n);
  if (last_n == 0) return;
  if (recent_.size() == last_n) recent_.erase(recent_.begin());
  recent_.push_back(token);
}

}  // namespace heddle::llm
