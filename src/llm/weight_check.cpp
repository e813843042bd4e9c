#include "llm/weight_check.h"

#include <optional>
#include <string>

#include "base/check.h"
#include "device/lower.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle::llm {

namespace {

/// The parameter that the value is, plain, packed or seen through views; null if it is none.
const Parameter* parameter_of(const Graph& graph, ValueId value) {
  const GraphNode* node = &graph.node(value);
  while (is_view(node->op) || std::holds_alternative<Repack>(node->op)) {
    node = &graph.node(node->inputs[0]);
  }
  return std::get_if<Parameter>(&node->op);
}

/// The operand as it was before it was packed for the device that took the op.
OperandSpec plain_operand(const Graph& graph, const PerValue<OperandSpec>& layouts, ValueId value) {
  const GraphNode& node = graph.node(value);
  if (std::holds_alternative<Repack>(node.op)) return OperandSpec::contiguous(node.outputs[0]);
  return layouts[value];
}

std::string why_not(Device& device, const Graph& graph, const PerValue<OperandSpec>& layouts,
                    const GraphNode& node) {
  std::vector<OperandSpec> operands;
  for (const ValueId input : node.inputs) operands.push_back(plain_operand(graph, layouts, input));
  return legalize(device, node.op, operands).reason;
}

/// "blk.7.attn_q.weight" is of layer 7.
std::optional<std::int64_t> layer_of(const std::string& tensor) {
  if (!tensor.starts_with("blk.")) return std::nullopt;
  return std::stoll(tensor.substr(4));
}

std::string advice(const std::string& tensor) {
  const auto layer = layer_of(tensor);
  return layer ? fmt::format("--gpu-layers {} leaves it to the CPU", *layer)
               : std::string("--gpu-layers, with no more than the model has, leaves it to the CPU");
}

}  // namespace

void check_weights_have_kernels(const Plan& plan) {
  const Graph& graph = plan.placed.graph;
  const PerValue<OperandSpec> layouts = value_layouts(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    Device* device = plan.placed.placement[id];
    if (node.dead || !device || !node.pin || node.pin == device) continue;
    for (const ValueId input : node.inputs) {
      const Parameter* weight = parameter_of(graph, input);
      if (!weight) continue;
      fail(ErrorCode::unsupported,
           "{} does not take the model: it has no kernel for {}, which reads tensor '{}' ({}): {}; "
           "{}",
           node.pin->name(), name(node.op), weight->name, to_string(weight->spec),
           why_not(*node.pin, graph, layouts, node), advice(weight->name));
    }
  }
}

}  // namespace heddle::llm
