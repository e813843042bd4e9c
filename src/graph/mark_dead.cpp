#include "graph/passes.h"

namespace heddle {

namespace {

bool is_signature(const Op& op) {
  return std::holds_alternative<Input>(op) || std::holds_alternative<StateRef>(op);
}

}  // namespace

Graph mark_dead(Graph graph) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const Graph::Named& output : graph.outputs) needed[output.value.node] = 1;
  for (const Graph::Named& update : graph.state_updates) needed[update.value.node] = 1;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    GraphNode& node = graph.nodes[id];
    if (node.dead) continue;
    node.dead = !needed[id] && !is_signature(node.op);
    if (node.dead) continue;
    for (const ValueId input : node.inputs) needed[input.node] = 1;
  }
  return graph;
}

}  // namespace heddle
