// A grammar compiled for reading: a network of nodes for each rule, in which rules call each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/grammar/char_bytes.h"
#include "text/grammar/expr.h"

namespace heddle::text::grammar {

using NodeId = std::uint32_t;

/// Immutable once made.
class Automaton {
 public:
  enum class Kind : std::uint8_t {
    chars,  // reads a character by the machine at `arg`, goes on at `next`
    call,   // reads what rule `arg` stands for, goes on at `next`
    split,  // goes on at `next` or at `arg`
    end,    // the rule is complete
  };
  struct Node {
    Kind kind;
    /// Some text leads from here to the end of the rule. Others lead nowhere, and are not entered.
    bool live = false;
    std::uint32_t arg = 0;
    NodeId next = 0;
  };
  struct CompiledRule {
    NodeId start;
    bool nullable;       // stands for the empty text, among others
    std::uint32_t rank;  // higher than that of any rule that calls it before reading a character
  };

  /// Throws invalid_argument for left recursion, for a root that stands for no text, and for
  /// grammars that are too large.
  explicit Automaton(const Rules& rules);

  const Node& node(NodeId id) const noexcept { return nodes_[id]; }
  const CompiledRule& rule(RuleId id) const noexcept { return rules_[id]; }
  bool is_end(NodeId id) const noexcept { return nodes_[id].kind == Kind::end; }
  const CharBytes& chars() const noexcept { return chars_; }
  const CharBytes::ByteClasses& byte_classes() const noexcept { return byte_classes_; }
  std::size_t node_count() const noexcept { return nodes_.size(); }

 private:
  friend class AutomatonBuilder;
  std::vector<Node> nodes_;
  std::vector<CompiledRule> rules_;
  CharBytes chars_;
  CharBytes::ByteClasses byte_classes_;
};

}  // namespace heddle::text::grammar
