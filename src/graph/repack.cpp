// Weights in the layouts that their readers like best.
#include <algorithm>
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
  explicit Repacker(PlacedGraph placed)
      : from_(std::move(placed)), layouts_(value_layouts(from_.graph)) {}

  PlacedGraph run() {
    for (NodeId id = 0; id < from_.graph.nodes.size(); ++id) find_wanted(id);
    if (wanted_.empty()) return std::move(from_);
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
    if (std::ranges::none_of(node.inputs, [this](ValueId v) { return is_parameter(v); })) return;
    const std::vector<TensorSpec> specs = input_specs(from_.graph, node);
    Device& device = *from_.placement[id];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!is_parameter(input)) continue;
      const auto layout = device.preferred_layout(node.op, i, specs);
      if (!layout || !can_repack(device, input, *layout)) continue;
      preferred_[id].emplace_back(i, *layout);
      wanted_.try_emplace({input.node, &device}, *layout);
    }
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
    const auto is_packed = [&](ValueId v) {
      return is_parameter(v) && wanted_.contains({v.node, from_.placement[id]});
    };
    if (std::ranges::none_of(node.inputs, is_packed)) return;
    std::vector<OperandSpec> operands;
    operands.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) operands.push_back(layouts_[input]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_parameter(node.inputs[i])) continue;
      const auto layout = layout_for(id, i);
      if (!layout) continue;
      const Layout plain = std::exchange(operands[i].layout, Layout::packed(*layout));
      if (auto kernel = kernel_for(id, operands)) {
        if (!from_.kernels.empty()) from_.kernels[id] = std::move(kernel);
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
    if (const auto own = preferred_.find(id); own != preferred_.end()) {
      for (const auto& [i, layout] : own->second) {
        if (i == operand) return layout;
      }
    }
    return there->second;
  }

  std::shared_ptr<const Kernel> kernel_for(NodeId id,
                                           const std::vector<OperandSpec>& operands) const {
    const GraphNode& node = from_.graph.nodes[id];
    const std::vector<OperandSpec> outputs = output_operands(node.op, node.outputs);
    return from_.placement[id]->prepare_cached(node.op, operands, outputs).kernel;
  }

  PlacedGraph rebuild() {
    Rebuild rebuild(from_.graph);
    rebuild.graph().nodes.reserve(from_.graph.nodes.size() + forms_.size());
    PlacedGraph to{.generations = std::move(from_.generations)};
    to.placement.reserve(from_.placement.size() + forms_.size());
    const bool has_kernels = !from_.kernels.empty();
    for (NodeId id = 0; id < from_.graph.nodes.size(); ++id) {
      const NodeId kept = rebuild.keep(id, std::move(from_.graph.nodes[id]));
      to.placement.push_back(from_.placement[id]);
      if (has_kernels) to.kernels.push_back(std::move(from_.kernels[id]));
      if (const auto found = packed_inputs_.find(id); found != packed_inputs_.end()) {
        for (const auto& [operand, form] : found->second) {
          rebuild.graph().nodes[kept].inputs[operand] = forms_[form.parameter][form];
        }
      }
      if (const auto found = forms_.find(id); found != forms_.end()) {
        for (auto& [form, value] : found->second) {
          const TensorSpec spec = rebuild.graph().nodes[kept].outputs[0];
          value = {rebuild.add({Repack{form.layout}, {{kept, 0}}, {spec}}), 0};
          to.placement.push_back(form.device);
          if (has_kernels) to.kernels.emplace_back();
        }
      }
    }
    to.graph = rebuild.finish();
    return to;
  }

  PlacedGraph from_;
  PerValue<OperandSpec> layouts_;
  std::map<std::pair<NodeId, Device*>, LayoutKind> wanted_;  // the first form that a reader prefers
  /// By reader: its own wishes that can be had, by operand.
  std::unordered_map<NodeId, std::vector<std::pair<std::size_t, LayoutKind>>> preferred_;
  std::unordered_map<NodeId, std::vector<std::pair<std::size_t, Packed>>> packed_inputs_;
  std::unordered_map<NodeId, std::map<Packed, ValueId>> forms_;  // by parameter
};

}  // namespace

PlacedGraph repack_parameters(PlacedGraph graph) {
  return Repacker(std::move(graph)).run();
}

}  // namespace heddle
