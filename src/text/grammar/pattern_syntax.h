// The syntax tree of a regular expression.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/grammar/char_set.h"

namespace heddle::text::grammar {

struct Pattern {
  enum class Kind : std::uint8_t { chars, begin, end, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  CharSet chars;
  std::vector<Pattern> parts;  // of a repeat: one
  std::uint32_t min = 0, max = 0;

  static constexpr std::uint32_t kUnbounded = ~std::uint32_t{0};
};

/// See pattern_dfa.
Pattern parse_pattern(std::string_view pattern, std::string_view where);

}  // namespace heddle::text::grammar
