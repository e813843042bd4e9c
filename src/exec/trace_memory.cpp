#include "base/check.h"
#include "exec/planner.h"
#include "heddle/device.h"
#include "op/format.h"

namespace heddle {

namespace {

/// A view's memory is its source's. A dead one need be none: nobody asks for it, but for other dead
/// views.
Memory memory_of_view(const GraphNode& node, NodeId id, const Memory& base) {
  std::optional<ViewOf> view = view_of(node.op, base.operand);
  if (node.dead && !view) return {{id, 0}, {id, 0}, 0, OperandSpec::contiguous(node.outputs[0])};
  require(view.has_value(), ErrorCode::backend, "planner: node {} {} cannot be a view of {}", id,
          node.op, base.operand);
  return {base.root,
          base.source,
          base.offset + static_cast<std::size_t>(view->offset_bytes),
          {node.outputs[0], std::move(view->layout)}};
}

}  // namespace

PerValue<Memory> trace_memory(const Graph& graph) {
  PerValue<Memory> memory;
  memory.reserve(graph);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes[n];
    memory.add_node();
    if (is_view(node.op)) {
      memory.add(memory_of_view(node, n, memory[node.inputs[0]]));
      continue;
    }
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o) {
      memory.add({{n, o}, {n, o}, 0, output_operand(node.op, node.outputs[o])});
    }
    if (writes_state(node.op)) memory[{n, 0}].root = memory[node.inputs[0]].root;
  }
  return memory;
}

}  // namespace heddle
