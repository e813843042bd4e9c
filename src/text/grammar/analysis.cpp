#include "text/grammar/analysis.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::text::grammar {
namespace {

using Kind = Automaton::Kind;

/// Which nodes the truth about a node depends on, turned round.
class Dependents {
 public:
  Dependents(const Automaton& automaton, std::span<const Automaton::CompiledRule> rules,
             std::size_t nodes)
      : begins_(nodes + 1) {
    const auto for_each_edge = [&](const auto& visit) {
      for (NodeId id = 0; id < nodes; ++id) {
        const Automaton::Node& node = automaton.node(id);
        if (node.kind == Kind::end) continue;
        visit(node.next, id);
        if (node.kind == Kind::split) visit(node.arg, id);
        if (node.kind == Kind::call) visit(rules[node.arg].start, id);
      }
    };
    for_each_edge([&](NodeId to, NodeId) { ++begins_[to + 1]; });
    for (std::size_t i = 0; i < nodes; ++i) begins_[i + 1] += begins_[i];
    dependents_.resize(begins_.back());
    std::vector<std::uint32_t> at(begins_.begin(), begins_.end() - 1);
    for_each_edge([&](NodeId to, NodeId from) { dependents_[at[to]++] = from; });
  }

  std::span<const NodeId> of(NodeId id) const {
    return std::span(dependents_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
  }

 private:
  std::vector<std::uint32_t> begins_;
  std::vector<NodeId> dependents_;
};

/// The nodes from which the end of their rule can be reached; `reading`: also by way of characters.
std::vector<bool> reaching_end(const Automaton& automaton,
                               std::span<const Automaton::CompiledRule> rules, std::size_t nodes,
                               const Dependents& dependents, bool reading) {
  std::vector<bool> reaches(nodes);
  std::vector<NodeId> work;
  const auto holds = [&](const Automaton::Node& node) {
    switch (node.kind) {
      case Kind::end:
        return true;
      case Kind::chars:
        return reading && node.arg != kPartNone && reaches[node.next];
      case Kind::split:
        return reaches[node.next] || reaches[node.arg];
      case Kind::call:
        return reaches[rules[node.arg].start] && reaches[node.next];
    }
    return false;
  };
  const auto look = [&](NodeId id) {
    if (reaches[id] || !holds(automaton.node(id))) return;
    reaches[id] = true;
    work.push_back(id);
  };
  for (NodeId id = 0; id < nodes; ++id) look(id);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const NodeId dependent : dependents.of(id)) look(dependent);
  }
  return reaches;
}

/// The rules that `start`'s rule calls before it reads a character.
std::vector<RuleId> first_calls(const Automaton& automaton, NodeId start, std::vector<bool>& seen) {
  std::vector<RuleId> calls;
  std::vector<NodeId> work{start};
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    const Automaton::Node& node = automaton.node(id);
    if (seen[id] || !node.live || node.kind == Kind::end) continue;
    seen[id] = true;
    if (node.kind == Kind::split) work.insert(work.end(), {node.next, node.arg});
    if (node.kind != Kind::call) continue;
    calls.push_back(node.arg);
    if (automaton.rule(node.arg).nullable) work.push_back(node.next);
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  return calls;
}

}  // namespace

Analysis analyse(const Automaton& automaton, std::span<const Automaton::CompiledRule> rules,
                 std::size_t nodes) {
  const Dependents dependents(automaton, rules, nodes);
  Analysis found;
  found.live = reaching_end(automaton, rules, nodes, dependents, true);
  const std::vector<bool> empty = reaching_end(automaton, rules, nodes, dependents, false);
  for (const Automaton::CompiledRule& rule : rules) found.nullable.push_back(empty[rule.start]);
  return found;
}

std::vector<std::uint32_t> rank_rules(const Automaton& automaton,
                                      std::span<const Automaton::CompiledRule> rules,
                                      const std::function<std::string(RuleId)>& name) {
  std::vector<std::vector<RuleId>> calls;
  std::vector<bool> seen(automaton.node_count());
  for (const Automaton::CompiledRule& rule : rules)
    calls.push_back(first_calls(automaton, rule.start, seen));

  enum class Mark : std::uint8_t { unseen, open, done };
  std::vector<Mark> marks(rules.size(), Mark::unseen);
  std::vector<std::uint32_t> ranks(rules.size());
  auto next_rank = static_cast<std::uint32_t>(rules.size());
  struct Visit {
    RuleId rule;
    std::size_t next_call;
  };
  for (RuleId root = 0; root < rules.size(); ++root) {
    std::vector<Visit> path;
    if (marks[root] == Mark::unseen) path.push_back({root, 0});
    while (!path.empty()) {
      Visit& visit = path.back();
      marks[visit.rule] = Mark::open;
      if (visit.next_call == calls[visit.rule].size()) {
        marks[visit.rule] = Mark::done;
        ranks[visit.rule] = --next_rank;
        path.pop_back();
        continue;
      }
      const RuleId callee = calls[visit.rule][visit.next_call++];
      if (marks[callee] == Mark::unseen) path.push_back({callee, 0});
      if (marks[callee] != Mark::open) continue;
      constexpr int kNamed = 8;  // of a circle that may have thousands
      std::string circle = name(callee);
      int named = 0;
      for (auto i = path.rbegin(); i != path.rend() && i->rule != callee && named <= kNamed; ++i)
        circle.insert(0, (++named > kNamed ? std::string("...") : name(i->rule)) + " -> ");
      fail(ErrorCode::invalid_argument,
           "the grammar is left-recursive: rule \"{}\" calls itself before it has read a character "
           "({} -> {}); write a repetition, such as ( ... )*, instead",
           name(callee), name(callee), circle);
    }
  }
  return ranks;
}

}  // namespace heddle::text::grammar
