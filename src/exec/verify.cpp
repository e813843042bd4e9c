#include "exec/verify.h"

#include <algorithm>

#include "base/check.h"

namespace heddle {

void verify(const Plan& plan) {
  const verifier::ValueTrace trace(plan.placed.graph);
  verifier::check_slots(plan, trace);
  verifier::check_order(plan, trace);
  verifier::check_memory(plan, trace);
  verifier::check_overwrites(plan);
}

namespace verifier {

ValueTrace::ValueTrace(const Graph& graph)
    : values_(graph, {}),
      chain_(graph, {kNoNode, 0}),
      writer_(graph, kNoNode),
      fed_(graph.fed_inputs) {
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (const auto* state = std::get_if<StateRef>(&graph.nodes[n].op)) {
      const bool is_new = states_.emplace(state->name, ValueId{n, 0}).second;
      require(is_new, ErrorCode::backend, "plan: state '{}' is in the graph twice, at {} and {}",
              state->name, describe(states_.at(state->name)), describe(ValueId{n, 0}));
    } else if (const auto* input = std::get_if<Input>(&graph.nodes[n].op)) {
      inputs_.emplace(input->name, ValueId{n, 0});
    }
  }
  for (NodeId n = 0; n < graph.nodes.size(); ++n) trace(graph, n);
}

void ValueTrace::trace(const Graph& graph, NodeId n) {
  const GraphNode& node = graph.nodes[n];
  for (const ValueId input : node.inputs) {
    require(input.node < n && input.output < graph.nodes[input.node].outputs.size(),
            ErrorCode::backend, "plan: {} reads {}, which does not come before it",
            describe(graph, n), describe(input));
  }
  if (is_view(node.op)) {
    const TracedValue& base = values_[node.inputs[0]];
    const std::optional<ViewOf> view = view_of(node.op, base.operand);
    if (node.dead && !view) {  // but for other dead views, nobody looks at it
      values_[{n, 0}] = {{n, 0}, 0, OperandSpec::contiguous(node.outputs[0])};
      return;
    }
    require(view.has_value(), ErrorCode::backend,
            "plan: {} is no view of {}, whose bytes it would have to move", describe(graph, n),
            heddle::to_string(base.operand));
    values_[{n, 0}] = {base.version,
                       base.offset + static_cast<std::size_t>(view->offset_bytes),
                       {node.outputs[0], view->layout}};
    return;
  }
  const std::vector<OperandSpec> operands = output_operands(node.op, node.outputs);
  for (std::uint32_t o = 0; o < operands.size(); ++o) {
    values_[{n, o}] = {{n, o}, 0, operands[o]};
    chain_[{n, o}] = {n, o};
  }
  const auto* input = std::get_if<Input>(&node.op);
  if (input && is_fed(input->name)) {
    const auto found = state(input->name);
    require(found.has_value(), ErrorCode::backend, "plan: input '{}' is fed but has no state",
            input->name);
    values_[{n, 0}].version = *found;
  }
  if (!writes_state(node.op) || node.dead) return;
  const TracedValue& target = values_[node.inputs[0]];
  NodeId& writer = writer_[target.version];
  require(writer == kNoNode, ErrorCode::backend,
          "plan: {} and {} both write over {}; a version is written over once",
          writer == kNoNode ? "" : describe(graph, writer), describe(graph, n),
          describe(target.version));
  writer = n;
  chain_[{n, 0}] = chain_[target.version];
}

std::optional<ValueId> ValueTrace::state(const std::string& name) const {
  const auto it = states_.find(name);
  return it == states_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<ValueId> ValueTrace::input(const std::string& name) const {
  const auto it = inputs_.find(name);
  return it == inputs_.end() ? std::nullopt : std::optional(it->second);
}

bool ValueTrace::is_fed(const std::string& name) const {
  return std::find(fed_.begin(), fed_.end(), name) != fed_.end();
}

bool is_computed(const GraphNode& node) {
  return !node.dead && !is_leaf(node.op) && !is_view(node.op);
}

std::string to_string(const Plan& plan, const Place& place) {
  const auto named = [&](const PlannedStep& step) {
    if (const auto* launch = std::get_if<PlannedLaunch>(&step))
      return describe(plan.placed.graph, launch->node);
    if (const auto* copy = std::get_if<PlannedCopy>(&step))
      return "copy of " + describe(copy->value);
    return std::string("barrier");
  };
  if (place.phase == Place::Phase::load) {
    return fmt::format("load step {} ({})", place.step,
                       describe(plan.placed.graph, plan.load[place.step].node));
  }
  const bool feed = place.phase == Place::Phase::feed;
  const Split& split = (feed ? plan.feeds : plan.splits)[place.split];
  return fmt::format("run {}, {} {} on {}, step {} ({})", place.run, feed ? "feed split" : "split",
                     place.split, split.device->name(), place.step, named(split.steps[place.step]));
}

std::string describe_slot(const Plan& plan, std::uint32_t s) {
  static constexpr const char* kKinds[] = {"arena", "input",  "parameter", "constant",
                                           "state", "output", "staging"};
  const Slot& slot = plan.slots[s];
  return fmt::format("slot {} ({}{}{} on {})", s, kKinds[static_cast<std::size_t>(slot.kind)],
                     slot.name.empty() ? "" : " ", slot.name,
                     slot.device ? slot.device->name() : "no device");
}

}  // namespace verifier
}  // namespace heddle
