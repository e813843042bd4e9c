#include "graph/passes.h"
#include "heddle/device.h"

namespace heddle {

std::vector<std::vector<OperandSpec>> value_layouts(const Graph& graph) {
  std::vector<std::vector<OperandSpec>> layouts;
  layouts.reserve(graph.nodes.size());
  for (const GraphNode& node : graph.nodes) {
    layouts.push_back(output_operands(node.op, node.outputs));
    if (!is_view(node.op)) continue;
    const ValueId source = node.inputs[0];
    if (const auto view = view_of(node.op, layouts[source.node][source.output])) {
      layouts.back()[0].layout = view->layout;
    }
  }
  return layouts;
}

}  // namespace heddle
