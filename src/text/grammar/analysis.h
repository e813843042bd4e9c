// What must be known of a grammar before it is read by.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/grammar/automaton.h"

namespace heddle::text::grammar {

struct Analysis {
  std::vector<bool> live;      // of nodes
  std::vector<bool> nullable;  // of rules
};
Analysis analyse(const Automaton& automaton, std::span<const Automaton::CompiledRule> rules,
                 std::size_t nodes);

/// A rank for each rule, above those of the rules that call it before a character is read. Throws
/// invalid_argument, with the names of the rules, where they call each other in a circle.
std::vector<std::uint32_t> rank_rules(const Automaton& automaton,
                                      std::span<const Automaton::CompiledRule> rules,
                                      const std::function<std::string(RuleId)>& name);

}  // namespace heddle::text::grammar
