#include "graph/passes.h"
#include "heddle/device.h"

namespace heddle {

void add_layouts(PerValue<OperandSpec>& layouts, const GraphNode& node) {
  layouts.add_node();
  if (is_view(node.op)) {
    auto view = view_of(node.op, layouts[node.inputs[0]]);
    layouts.add(view ? OperandSpec{node.outputs[0], std::move(view->layout)}
                     : OperandSpec::contiguous(node.outputs[0]));
  } else {
    for (const TensorSpec& output : node.outputs) layouts.add(output_operand(node.op, output));
  }
}

PerValue<OperandSpec> value_layouts(const Graph& graph) {
  PerValue<OperandSpec> layouts;
  layouts.reserve(graph);
  for (const GraphNode& node : graph.nodes) add_layouts(layouts, node);
  return layouts;
}

}  // namespace heddle
