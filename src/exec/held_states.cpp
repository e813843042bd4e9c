#include "exec/held_states.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace heddle {

namespace {

using UsersByName = std::map<std::string, StateUser, std::less<>>;

bool chooses_rows_by_data(const Op& op, std::size_t input) {
  const bool writes = std::holds_alternative<WriteRows>(op) ||
                      std::holds_alternative<RopeWriteRows>(op) ||
                      std::holds_alternative<NormRopeWriteRows>(op);
  return std::holds_alternative<Attend>(op) || (writes && input == 0);
}

/// Per node, whose memory its first output is, or is a part of: views and writes have their
/// source's.
std::vector<NodeId> roots_of(const Graph& graph) {
  std::vector<NodeId> roots(graph.nodes.size());
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes[n];
    roots[n] = is_view(node.op) || writes_state(node.op) ? roots[node.inputs[0].node] : n;
  }
  return roots;
}

/// Clears `by_data` of states that some op reads or writes as a whole.
void find_whole_uses(const Graph& graph, UsersByName& users) {
  const std::vector<NodeId> roots = roots_of(graph);
  for (const GraphNode& node : graph.nodes) {
    if (node.dead) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto* ref = std::get_if<StateRef>(&graph.nodes[roots[node.inputs[i].node]].op);
      if (!ref || chooses_rows_by_data(node.op, i)) continue;
      const auto user = users.find(ref->name);
      if (user != users.end()) user->second.by_data = false;
    }
  }
}

}  // namespace

std::vector<StateUser> state_users(const Plan& plan) {
  const Graph& graph = plan.placed.graph;
  UsersByName users;
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.kind != SlotKind::state) continue;
    StateUser& user = users[slot.name];
    user.name = slot.name;
    user.spec = slot.operand.spec;
    user.device = slot.device;
    user.slots.push_back(s);
  }
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].kind != SlotKind::input) continue;
    const auto fed = users.find(plan.slots[s].name);
    if (fed != users.end()) fed->second.fed_slots.push_back(s);
  }
  for (const Graph::Named& update : graph.state_updates) {
    const auto user = users.find(update.name);
    if (user != users.end()) user->second.is_written = true;
  }
  find_whole_uses(graph, users);
  std::vector<StateUser> list;
  list.reserve(users.size());
  for (auto& [name, user] : users) list.push_back(std::move(user));
  return list;
}

HeldStates::HeldStates(std::span<const StateUser> users, std::span<const Ref<State>> states) {
  std::vector<std::pair<State*, std::size_t>> order;
  order.reserve(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) order.emplace_back(states[i].get(), i);
  std::ranges::sort(order);
  held_.reserve(users.size());
  rows_.assign(users.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [state, index] = order[i];
    const StateUser& user = users[index];
    require(i == 0 || order[i - 1].first != state, ErrorCode::invalid_argument,
            "states '{}' and '{}' are bound to one object: each needs its own",
            users[order[i - (i > 0)].second].name, user.name);
    const Held& held = held_.emplace_back(&user, StateUse(states[index]));
    const Shape& shape = held.use.spec().shape;
    if (user.by_data && !shape.empty()) rows_[index] = shape[0];
  }
}

void HeldStates::order_before(Stream& stream) const {
  // Most states were last used by one and the same run: it is asked once.
  std::vector<Ref<Completion>> waited, ended;
  const auto is_in = [](const auto& list, const Ref<Completion>& use) {
    return std::ranges::find(list, use) != list.end();
  };
  for (const Held& held : held_) {
    if (held.user->device != &stream.device()) continue;
    for (const Ref<Completion>& use : held.use.last_uses()) {
      if (is_in(waited, use)) continue;
      if (held.use.keeps_on_failure()) {
        if (is_in(ended, use)) continue;
        if (use->done()) {
          ended.push_back(use);
          continue;
        }
      }
      stream.wait_for(use);
      waited.push_back(use);
    }
  }
}

}  // namespace heddle
