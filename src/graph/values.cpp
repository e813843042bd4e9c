#include "graph/values.h"

#include <utility>

#include "base/check.h"

namespace heddle {

std::string describe(const Graph& graph, NodeId id) {
  return fmt::format("%{} {}", id, name(graph.nodes[id].op));
}

std::string describe(ValueId value) {
  return value.output == 0 ? fmt::format("%{}", value.node)
                           : fmt::format("%{}.{}", value.node, value.output);
}

const std::string& leaf_name(const Op& op) noexcept {
  static const std::string none;
  if (const auto* input = std::get_if<Input>(&op)) return input->name;
  if (const auto* parameter = std::get_if<Parameter>(&op)) return parameter->name;
  if (const auto* state = std::get_if<StateRef>(&op)) return state->name;
  return none;
}

std::vector<TensorSpec> input_specs(const Graph& graph, const GraphNode& node) {
  std::vector<TensorSpec> specs;
  specs.reserve(node.inputs.size());
  for (const ValueId input : node.inputs) specs.push_back(graph.spec(input));
  return specs;
}

PerValue<std::uint32_t> count_uses(const Graph& graph) {
  PerValue<std::uint32_t> uses(graph, 0);
  for (const GraphNode& node : graph.nodes) {
    if (node.dead) continue;
    for (const ValueId input : node.inputs) ++uses[input];
  }
  for (const Graph::Named& output : graph.outputs) ++uses[output.value];
  for (const Graph::Named& update : graph.state_updates) ++uses[update.value];
  return uses;
}

namespace {

/// Old nodes in the order of in_source_order.
std::vector<NodeId> source_order(const Graph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  std::vector<char> placed(graph.nodes.size(), 0);
  struct Visit {
    NodeId node;
    std::size_t next_input = 0;
  };
  std::vector<Visit> stack;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!placed[id]) stack.push_back({id});
    while (!stack.empty()) {
      Visit& top = stack.back();
      const auto& inputs = graph.nodes[top.node].inputs;
      if (top.next_input < inputs.size()) {
        const NodeId source = inputs[top.next_input++].node;
        if (!placed[source]) stack.push_back({source});
      } else {
        if (!std::exchange(placed[top.node], 1)) order.push_back(top.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

Graph in_source_order(Graph graph) {
  const std::vector<NodeId> order = source_order(graph);
  std::vector<NodeId> place(order.size());
  for (NodeId i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<GraphNode> nodes;
  nodes.reserve(order.size());
  for (const NodeId id : order) nodes.push_back(std::move(graph.nodes[id]));
  graph.nodes = std::move(nodes);
  for (GraphNode& node : graph.nodes) {
    for (ValueId& input : node.inputs) input.node = place[input.node];
  }
  for (Graph::Named& output : graph.outputs) output.value.node = place[output.value.node];
  for (Graph::Named& update : graph.state_updates) update.value.node = place[update.value.node];
  return graph;
}

std::vector<ValueId> Rebuild::mapped(const std::vector<ValueId>& old) const {
  std::vector<ValueId> values;
  values.reserve(old.size());
  for (const ValueId value : old) values.push_back(map_[value]);
  return values;
}

NodeId Rebuild::add(GraphNode node) {
  to_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(to_.nodes.size() - 1);
}

NodeId Rebuild::keep(NodeId old, GraphNode node) {
  for (ValueId& input : node.inputs) input = map_[input];
  const auto outputs = static_cast<std::uint32_t>(node.outputs.size());
  const NodeId id = add(std::move(node));
  for (std::uint32_t i = 0; i < outputs; ++i) map_[{old, i}] = {id, i};
  return id;
}

Graph Rebuild::finish() {
  to_.outputs = from_.outputs;
  to_.state_updates = from_.state_updates;
  to_.fed_inputs = from_.fed_inputs;
  for (Graph::Named& output : to_.outputs) output.value = map_[output.value];
  for (Graph::Named& update : to_.state_updates) update.value = map_[update.value];
  return std::move(to_);
}

}  // namespace heddle
