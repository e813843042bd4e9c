// What a Grammar holds.
#pragma once

#include "heddle/grammar.h"
#include "text/grammar/automaton.h"

namespace heddle {

struct Grammar::Impl {
  explicit Impl(const text::grammar::Rules& rules) : automaton(rules) {}
  text::grammar::Automaton automaton;
};

}  // namespace heddle
