#include "graph/passes.h"
#include "graph/values.h"

namespace heddle {

namespace {

/// The one extent of the operands that `counts` picks; none where they have none, or two that
/// differ: then all rows are computed.
template <class Counts>
std::string common_extent(const GraphNode& node, const std::vector<std::string>& of_values,
                          Counts&& counts) {
  std::string common;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string& extent = of_values[node.inputs[i].node];
    if (extent.empty() || !counts(i)) continue;
    if (!common.empty() && common != extent) return {};
    common = extent;
  }
  return common;
}

}  // namespace

std::vector<std::string> propagate_extents(const Graph& graph) {
  std::vector<std::string> of_nodes(graph.nodes.size());
  std::vector<std::string> of_values(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead) continue;
    if (const auto* input = std::get_if<Input>(&node.op)) {
      of_nodes[id] = of_values[id] = input->extent;
    } else if (std::holds_alternative<Feed>(node.op)) {
      continue;  // its extent is an operand
    } else if (!node.inputs.empty()) {
      const std::vector<TensorSpec> specs = input_specs(graph, node);
      of_nodes[id] = common_extent(
          node, of_values, [&](std::size_t i) { return is_row_operand(node.op, i, specs); });
      // The rows that a write is given count or not; those of the state all do.
      if (!writes_state(node.op)) of_values[id] = of_nodes[id];
    }
  }
  return of_nodes;
}

}  // namespace heddle
