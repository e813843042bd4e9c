// Weights in the layouts that their readers like best.
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/passes.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

class Repacker {
 public:
  explicit Repacker(const PlacedGraph& placed)
      : from_(placed), layouts_(value_layouts(placed.graph)) {}

  PlacedGraph run() {
    for (NodeId id = 0; id < from_.graph.nodes.size(); ++id) find_wanted(id);
    if (wanted_.empty()) return from_;
    for (NodeId id = 0; id < from_.graph.nodes.size(); ++id) choose(id);
    return rebuild();
  }

 private:
  struct Packed {  // one form of one parameter on one device
    NodeId parameter;
    Device* device;
    LayoutKind layout;
    auto operator<=>(const Packed&) const = default;
  };

  bool is_parameter(ValueId value) const {
    return std::holds_alternative<Parameter>(from_.graph.node(value).op);
  }

  bool reads_parameters(NodeId id) const {
    const GraphNode& node = from_.graph.nodes[id];
    return from_.placement[id] && !std::holds_alternative<Repack>(node.op);
  }

  /// Which packed forms any reader prefers.
  void find_wanted(NodeId id) {
    if (!reads_parameters(id)) return;
    const GraphNode& node = from_.graph.nodes[id];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!is_parameter(input)) continue;
      const auto layout = preferred(id, i);
      if (!layout || !can_repack(*from_.placement[id], input, *layout)) continue;
      wanted_.try_emplace({input.node, from_.placement[id]}, *layout);
    }
  }

  std::optional<LayoutKind> preferred(NodeId id, std::size_t operand) const {
    const GraphNode& node = from_.graph.nodes[id];
    return from_.placement[id]->preferred_layout(node.op, operand, input_specs(from_.graph, node));
  }

  bool can_repack(Device& device, ValueId parameter, LayoutKind layout) const {
    const TensorSpec& spec = from_.graph.spec(parameter);
    const OperandSpec plain = OperandSpec::contiguous(spec);
    const OperandSpec packed{spec, Layout::packed(layout)};
    return static_cast<bool>(
        device.prepare_cached(Repack{layout}, std::span(&plain, 1), std::span(&packed, 1)));
  }

  /// Lets the node read packed forms: of every parameter that has one if its kernel can, else of as
  /// many as it can, from the first on.
  void choose(NodeId id) {
    if (!reads_parameters(id)) return;
    const GraphNode& node = from_.graph.nodes[id];
    std::vector<OperandSpec> operands;
    for (const ValueId input : node.inputs) operands.push_back(layouts_[input.node][input.output]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_parameter(node.inputs[i])) continue;
      const auto layout = layout_for(id, i);
      if (!layout) continue;
      const Layout plain = std::exchange(operands[i].layout, Layout::packed(*layout));
      if (can_run(id, operands)) {
        const Packed form{node.inputs[i].node, from_.placement[id], *layout};
        packed_inputs_[id].emplace_back(i, form);
        forms_[form.parameter].emplace(form, ValueId{});
      } else {
        operands[i].layout = plain;
      }
    }
  }

  /// What the reader itself prefers, else the form that is there for others.
  std::optional<LayoutKind> layout_for(NodeId id, std::size_t operand) const {
    const ValueId input = from_.graph.nodes[id].inputs[operand];
    const auto there = wanted_.find({input.node, from_.placement[id]});
    if (there == wanted_.end()) return std::nullopt;
    const auto layout = preferred(id, operand);
    if (layout && can_repack(*from_.placement[id], input, *layout)) return layout;
    return there->second;
  }

  bool can_run(NodeId id, const std::vector<OperandSpec>& operands) const {
    const GraphNode& node = from_.graph.nodes[id];
    const std::vector<OperandSpec> outputs = output_operands(node.op, node.outputs);
    return static_cast<bool>(from_.placement[id]->prepare_cached(node.op, operands, outputs));
  }

  PlacedGraph rebuild() {
    Rebuild rebuild(from_.graph);
    Placement placement;
    for (NodeId id = 0; id < from_.graph.nodes.size(); ++id) {
      const NodeId kept = rebuild.keep(id);
      placement.push_back(from_.placement[id]);
      if (const auto found = packed_inputs_.find(id); found != packed_inputs_.end()) {
        for (const auto& [operand, form] : found->second) {
          rebuild.graph().nodes[kept].inputs[operand] = forms_[form.parameter][form];
        }
      }
      if (const auto found = forms_.find(id); found != forms_.end()) {
        for (auto& [form, value] : found->second) {
          const TensorSpec& spec = from_.graph.nodes[id].outputs[0];
          value = {rebuild.add({Repack{form.layout}, {{kept, 0}}, {spec}}), 0};
          placement.push_back(form.device);
        }
      }
    }
    return {rebuild.finish(), std::move(placement), {}};
  }

  const PlacedGraph& from_;
  std::vector<std::vector<OperandSpec>> layouts_;
  std::map<std::pair<NodeId, Device*>, LayoutKind> wanted_;  // the first form that a reader prefers
  std::unordered_map<NodeId, std::vector<std::pair<std::size_t, Packed>>> packed_inputs_;
  std::unordered_map<NodeId, std::map<Packed, ValueId>> forms_;  // by parameter
};

}  // namespace

PlacedGraph repack_parameters(PlacedGraph graph) {
  return Repacker(graph).run();
}

}  // namespace heddle
