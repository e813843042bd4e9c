#include "text/grammar/automaton.h"

#include "base/check.h"
#include "text/grammar/analysis.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostNodes = 2'000'000;
constexpr std::size_t kMostMachineStates = 1'000'000;  // of UTF-8 machines
/// Repetitions up to here are written out; longer ones are made of blocks.
constexpr std::uint32_t kWrittenOut = 128;
constexpr std::uint32_t kBlock = 64;
/// What is longer than this becomes a rule before it is repeated.
constexpr std::size_t kCopiedNodes = 8;

/// Nodes that `expr` takes; may stop counting beyond kCopiedNodes.
std::size_t node_count(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::text:
      return expr.text.size();
    case Expr::Kind::chars:
    case Expr::Kind::rule:
      return 1;
    case Expr::Kind::repeat:
      return kCopiedNodes + 1;
    default:
      break;
  }
  std::size_t count = expr.parts.size();
  for (const Expr& part : expr.parts) {
    if (count > kCopiedNodes) break;
    count += node_count(part);
  }
  return count;
}

}  // namespace

class AutomatonBuilder {
 public:
  explicit AutomatonBuilder(Automaton& automaton) : a_(automaton) {
    dead_ = add({Automaton::Kind::chars});
    end_ = add({Automaton::Kind::end});
    a_.nodes_[dead_].arg = kPartNone;
  }

  void build(const Rules& rules) {
    a_.rules_.resize(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto* machine = std::get_if<Machine>(&rules[i].body);
      a_.rules_[i].start =
          machine != nullptr ? emit_machine(*machine) : emit(std::get<Expr>(rules[i].body), end_);
    }
  }

 private:
  NodeId add(const Automaton::Node& node) {
    require(a_.nodes_.size() < kMostNodes, ErrorCode::invalid_argument,
            "the grammar is too large: it takes more than {} nodes", kMostNodes);
    a_.nodes_.push_back(node);
    return static_cast<NodeId>(a_.nodes_.size() - 1);
  }

  NodeId add_chars(const CharSet& chars, NodeId next) {
    if (chars.empty()) return dead_;
    const PartId start = a_.chars_.add(chars);
    require(a_.chars_.size() < kMostMachineStates, ErrorCode::invalid_argument,
            "the grammar is too large: its character classes take more than {} states",
            kMostMachineStates);
    return add({Automaton::Kind::chars, false, start, next});
  }
  NodeId add_split(NodeId first, NodeId second) {
    return add({Automaton::Kind::split, false, second, first});
  }

  /// Adds what reads `expr` and goes on at `next`; returns where it begins.
  NodeId emit(const Expr& expr, NodeId next) {
    switch (expr.kind) {
      case Expr::Kind::text:
        for (auto c = expr.text.rbegin(); c != expr.text.rend(); ++c)
          next = add_chars(CharSet(*c), next);
        return next;
      case Expr::Kind::chars:
        return add_chars(expr.chars, next);
      case Expr::Kind::rule:
        return add({Automaton::Kind::call, false, expr.rule, next});
      case Expr::Kind::sequence:
        for (auto part = expr.parts.rbegin(); part != expr.parts.rend(); ++part)
          next = emit(*part, next);
        return next;
      case Expr::Kind::choice:
        return emit_choice(expr.parts, next);
      case Expr::Kind::repeat:
        return emit_repeat(expr, next);
    }
    return dead_;
  }

  NodeId emit_choice(const std::vector<Expr>& parts, NodeId next) {
    NodeId choice = dead_;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const NodeId start = emit(*part, next);
      choice = part == parts.rbegin() ? start : add_split(start, choice);
    }
    return choice;
  }

  NodeId emit_repeat(const Expr& expr, NodeId next) {
    const Expr& part = expr.parts.front();
    const bool copied = expr.min > 1 || (expr.max > 1 && expr.max != Expr::kUnbounded) ||
                        (expr.min > 0 && expr.max == Expr::kUnbounded);
    Expr wrapped;
    if (copied && node_count(part) > kCopiedNodes) wrapped = as_rule(part, 1);
    const Expr& small = wrapped.kind == Expr::Kind::rule ? wrapped : part;
    if (expr.max == Expr::kUnbounded) {
      const NodeId loop = add_split(dead_, next);
      const NodeId body = emit(small, loop);
      a_.nodes_[loop].next = body;
      return exactly(small, expr.min, loop);
    }
    return exactly(small, expr.min, at_most(small, expr.max - expr.min, next));
  }

  Expr as_rule(const Expr& part, std::uint32_t times) {
    const NodeId start = exactly(part, times, end_);
    a_.rules_.push_back({start, false, 0});
    return make_rule(static_cast<RuleId>(a_.rules_.size() - 1));
  }

  NodeId exactly(const Expr& part, std::uint32_t times, NodeId next) {
    if (times <= kWrittenOut) {
      for (std::uint32_t i = 0; i < times; ++i) next = emit(part, next);
      return next;
    }
    next = exactly(part, times % kBlock, next);
    return exactly(as_rule(part, kBlock), times / kBlock, next);
  }

  NodeId at_most(const Expr& part, std::uint32_t times, NodeId next) {
    if (times <= kWrittenOut) {
      const NodeId leave = next;
      for (std::uint32_t i = 0; i < times; ++i) next = add_split(emit(part, next), leave);
      return next;
    }
    // Full blocks and what is less than one; or as many blocks as there may be, and the rest.
    const Expr block = as_rule(part, kBlock);
    const std::uint32_t blocks = times / kBlock;
    const NodeId fewer = at_most(block, blocks - 1, at_most(part, kBlock - 1, next));
    const NodeId all = exactly(block, blocks, at_most(part, times % kBlock, next));
    return add_split(fewer, all);
  }

  NodeId emit_machine(const Machine& machine) {
    std::vector<NodeId> starts;
    for (std::size_t i = 0; i < machine.states.size(); ++i)
      starts.push_back(add_split(dead_, dead_));
    for (std::size_t i = 0; i < machine.states.size(); ++i) {
      NodeId choice = machine.states[i].accepts ? end_ : dead_;
      for (const Machine::Edge& edge : machine.states[i].edges)
        choice = add_split(emit(edge.label, starts[edge.target]), choice);
      a_.nodes_[starts[i]].next = choice;
    }
    return starts.front();
  }

  Automaton& a_;
  NodeId dead_, end_;
};

Automaton::Automaton(const Rules& rules) {
  AutomatonBuilder(*this).build(rules);
  byte_classes_ = chars_.byte_classes();
  const Analysis found = analyse(*this, rules_, nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].live = found.live[i];
  require(nodes_[rules_.front().start].live, ErrorCode::invalid_argument,
          "the grammar has no finite text: rule \"{}\" never comes to an end", rules.front().name);
  const auto name = [&](RuleId id) {
    return id < rules.size() ? rules[id].name : std::string("(a repetition)");
  };
  for (std::size_t i = 0; i < rules_.size(); ++i) rules_[i].nullable = found.nullable[i];
  const std::vector<std::uint32_t> ranks = rank_rules(*this, rules_, name);
  for (std::size_t i = 0; i < rules_.size(); ++i) rules_[i].rank = ranks[i];
}

}  // namespace heddle::text::grammar
