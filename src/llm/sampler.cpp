#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "heddle/llm.h"

namespace heddle::llm {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Candidate {
  float logit;
  TokenId id;
};

/// The likelier first; of equals, the lower id. A total order, so that every selection is unique.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// exp((logit - most) / temperature), also where both are infinite.
double weight(float logit, float most, double temperature = 1) {
  if (logit == most) return 1;
  return std::exp((static_cast<double>(logit) - most) / temperature);
}

/// Calls visit(id, logit) for every token by rising id, with the penalty of recent ones applied.
/// NaN comes through as NaN.
template <class Visit>
void for_each_logit(std::span<const float> logits, std::span<const TokenId> recent, float penalty,
                    Visit visit) {
  std::size_t id = 0;
  for (const TokenId token : recent) {
    const auto at = static_cast<std::size_t>(token);
    for (; id < at; ++id) visit(static_cast<TokenId>(id), logits[id]);
    visit(token, logits[at] > 0 ? logits[at] / penalty : logits[at] * penalty);
    id = at + 1;
  }
  for (; id < logits.size(); ++id) visit(static_cast<TokenId>(id), logits[id]);
}

/// Keeps the `most` likeliest of what it is given, or all, in no order.
class Selection {
 public:
  Selection(std::size_t most, std::size_t of) : most_(most) {
    // Cutting back at twice the number makes it linear, and a cut a rare event.
    room_ = most < of / 2 ? 2 * most : of;
    candidates_.reserve(room_);
  }

  void add(TokenId id, float logit) {
    if (!(logit > threshold_)) return;  // NaN, too
    candidates_.push_back({logit, id});
    if (candidates_.size() == room_ && room_ > most_) cut();
  }

  /// The likeliest first if some were left out, by id if not: never as the library's selection
  /// happened to leave them, so that sums over them are the same everywhere.
  std::vector<Candidate> take() {
    cut();
    if (threshold_ > kLowest) std::sort(candidates_.begin(), candidates_.end(), likelier);
    return std::move(candidates_);
  }

 private:
  void cut() {
    if (candidates_.size() <= most_) return;
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(most_) - 1;
    std::nth_element(candidates_.begin(), last, candidates_.end(), likelier);
    // A later token that equals the last one kept has a higher id, and so loses.
    threshold_ = last->logit;
    candidates_.resize(most_);
  }

  std::size_t most_, room_ = 0;
  float threshold_ = kLowest;
  std::vector<Candidate> candidates_;
};

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
}

/// The recent tokens that a vocabulary of `size` has, each once, by rising id.
std::vector<TokenId> penalised(const std::vector<TokenId>& recent, const SamplerOptions& options,
                               std::size_t size) {
  if (options.repeat_penalty == 1) return {};
  std::vector<TokenId> ids = recent;
  std::erase_if(ids, [size](TokenId id) { return id < 0 || static_cast<std::size_t>(id) >= size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
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
  const std::vector<TokenId> recent = penalised(recent_, options_, all);
  for_each_logit(logits, recent, options_.repeat_penalty,
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
  const auto last_n = static_cast<std::size_t>(options_.repeat_last_n);
  if (last_n == 0) return;
  if (recent_.size() == last_n) recent_.erase(recent_.begin());
  recent_.push_back(token);
}

}  // namespace heddle::llm
