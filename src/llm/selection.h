// The likeliest of many tokens, found in one pass without sorting them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "heddle/tokenizer.h"

namespace heddle::llm {

inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct Candidate {
  float logit;
  TokenId id;
};

/// The likelier first; of equals, the lower id. A total order, so that every selection is unique.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
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

}  // namespace heddle::llm
