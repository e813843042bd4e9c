#include "exec/held_states.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "exec/planner.h"

namespace heddle {

namespace {

std::vector<std::uint32_t> slots_of(const Plan& plan, SlotKind kind, const std::string& name) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].kind == kind && plan.slots[s].name == name) found.push_back(s);
  }
  return found;
}

bool chooses_rows_by_data(const Op& op, std::size_t input) {
  const bool writes =
      std::holds_alternative<WriteRows>(op) || std::holds_alternative<RopeWriteRows>(op);
  return std::holds_alternative<Attend>(op) || (writes && input == 0);
}

/// Clears `by_data` of states that some op reads or writes as a whole.
void find_whole_uses(const Graph& graph, std::vector<StateUser>& users) {
  const auto memory = trace_memory(graph);
  for (const GraphNode& node : graph.nodes) {
    if (node.dead) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId root = memory[node.inputs[i].node][node.inputs[i].output].root;
      const auto* ref = std::get_if<StateRef>(&graph.node(root).op);
      if (!ref || chooses_rows_by_data(node.op, i)) continue;
      const auto user = std::ranges::find(users, ref->name, &StateUser::name);
      if (user != users.end()) user->by_data = false;
    }
  }
}

}  // namespace

std::vector<StateUser> state_users(const Plan& plan) {
  const Graph& graph = plan.placed.graph;
  std::vector<StateUser> users;
  for (const Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::state) continue;
    if (std::ranges::find(users, slot.name, &StateUser::name) != users.end()) continue;
    StateUser& user = users.emplace_back();
    user.name = slot.name;
    user.spec = slot.operand.spec;
    user.device = slot.device;
    user.is_written = std::ranges::find(graph.state_updates, slot.name, &Graph::Named::name) !=
                      graph.state_updates.end();
    user.slots = slots_of(plan, SlotKind::state, slot.name);
    user.fed_slots = slots_of(plan, SlotKind::input, slot.name);
  }
  find_whole_uses(graph, users);
  return users;
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
