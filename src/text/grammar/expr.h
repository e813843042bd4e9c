// A grammar as its front ends (GBNF, JSON schema) write it down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/grammar/char_set.h"

namespace heddle::text::grammar {

using RuleId = std::uint32_t;

/// What a part of a rule stands for. Front ends bound how deep these nest.
struct Expr {
  enum class Kind : std::uint8_t { text, chars, rule, sequence, choice, repeat };

  Kind kind = Kind::text;
  std::u32string text;      // text: these characters
  CharSet chars;            // chars: one of them
  RuleId rule = 0;          // rule
  std::uint32_t min = 0;    // repeat
  std::uint32_t max = 0;    // repeat; kUnbounded: no limit
  std::vector<Expr> parts;  // sequence, choice, repeat (one)

  static constexpr std::uint32_t kUnbounded = ~std::uint32_t{0};
  /// No more than this, so that counting never overflows.
  static constexpr std::uint32_t kMostRepetitions = 1'000'000'000;
};

Expr make_text(std::string_view utf8);
Expr make_chars(CharSet chars);
Expr make_rule(RuleId rule);
Expr make_sequence(std::vector<Expr> parts);
/// Of nothing: what no text is.
Expr make_choice(std::vector<Expr> parts);
Expr make_repeat(Expr part, std::uint32_t min, std::uint32_t max);
Expr make_optional(Expr part);

/// A state machine: state 0 begins.
struct Machine {
  struct Edge {
    Expr label;
    std::uint32_t target;
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges;
  };
  std::vector<State> states;
};

struct Rule {
  std::string name;  // for errors
  std::variant<Expr, Machine> body;
};

/// Rule 0 is the root.
using Rules = std::vector<Rule>;

}  // namespace heddle::text::grammar
