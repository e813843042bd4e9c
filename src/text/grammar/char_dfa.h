// Deterministic machines over characters: languages that can be intersected.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/char_set.h"

namespace heddle::text::grammar {

/// State 0 begins. A state's edges have no character in common; where there is none, the text is
/// not in the language.
struct CharDfa {
  struct Edge {
    CharSet chars;
    std::uint32_t target;
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges;
  };
  std::vector<State> states;

  bool accepts(std::string_view utf8) const;
};

inline constexpr std::size_t kMostDfaStates = 20'000;

/// Throw unsupported, saying that `what` is too large, beyond kMostDfaStates.
CharDfa intersection(const CharDfa& a, const CharDfa& b, std::string_view what);
CharDfa of_length(std::uint32_t min, std::uint32_t max, std::string_view what);
/// The texts that are not among `names`.
CharDfa other_than(std::span<const std::string> names);

/// The number of characters of UTF-8.
std::size_t char_count(std::string_view utf8) noexcept;

}  // namespace heddle::text::grammar
