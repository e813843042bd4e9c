#include "base/check.h"
#include "exec/planner.h"
#include "heddle/device.h"
#include "op/format.h"

namespace heddle {

std::vector<std::vector<Memory>> trace_memory(const Graph& graph) {
  std::vector<std::vector<Memory>> memory(graph.nodes.size());
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes[n];
    if (is_view(node.op)) {
      const Memory& base = memory[node.inputs[0].node][node.inputs[0].output];
      const std::optional<ViewOf> view = view_of(node.op, base.operand);
      if (node.dead && !view) {  // nobody asks for it, but for other dead views
        memory[n].push_back({{n, 0}, {n, 0}, 0, OperandSpec::contiguous(node.outputs[0])});
        continue;
      }
      require(view.has_value(), ErrorCode::backend, "planner: node {} {} cannot be a view of {}", n,
              node.op, base.operand);
      memory[n].push_back({base.root,
                           base.source,
                           base.offset + static_cast<std::size_t>(view->offset_bytes),
                           {node.outputs[0], view->layout}});
      continue;
    }
    const std::vector<OperandSpec> outputs = output_operands(node.op, node.outputs);
    for (std::uint32_t o = 0; o < outputs.size(); ++o)
      memory[n].push_back({{n, o}, {n, o}, 0, outputs[o]});
    if (writes_state(node.op))
      memory[n][0].root = memory[node.inputs[0].node][node.inputs[0].output].root;
  }
  return memory;
}

}  // namespace heddle
