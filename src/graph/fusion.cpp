#include "graph/fusion.h"

#include <algorithm>

#include "graph/choose_device.h"
#include "graph/versions.h"
#include "heddle/device.h"
#include "heddle/error.h"

namespace heddle {

namespace {

std::optional<std::vector<TensorSpec>> try_infer(const Op& op, std::span<const TensorSpec> inputs) {
  try {
    return infer(op, inputs);
  } catch (const Error&) {
    return std::nullopt;  // the fused op is stricter than its parts
  }
}

std::size_t copies(const Legal& legal) {
  return static_cast<std::size_t>(std::ranges::count(legal.copy, true));
}

bool has_kernel(const Legal& legal) {
  return legal.how == Legal::How::direct || legal.how == Legal::How::contiguous;
}

}  // namespace

Fusion::Fusion(Graph graph, const PassOptions& options)
    : graph_(std::move(graph)),
      candidates_(options),
      layouts_(value_layouts(graph_)),
      uses_(count_uses(graph_)),
      overwritten_(graph_.nodes.size(), kNoNode),
      fixed_(graph_.nodes.size(), 0),
      replaced_(graph_.nodes.size(), ValueId{kNoNode, 0}) {
  const Versions versions(graph_);
  for (NodeId id = 0; id < size(); ++id) {
    const GraphNode& node = graph_.nodes[id];
    for (std::uint32_t i = 0; i < node.outputs.size(); ++i) {
      overwritten_[id] = std::min(overwritten_[id], versions.overwritten_by({id, i}));
    }
    fixed_[id] = is_leaf(node.op) || (is_view(node.op) && fixed_[node.inputs[0].node]);
  }
}

ValueId Fusion::current(ValueId value) const {
  const ValueId first = replaced_[value.node];
  return first.node == kNoNode ? value : ValueId{first.node, first.output + value.output};
}

void Fusion::refresh(NodeId id) {
  for (ValueId& input : graph_.nodes[id].inputs) input = current(input);
}

bool Fusion::can_read_later(NodeId part, NodeId at) const {
  return std::ranges::all_of(node(part).inputs,
                             [&](ValueId input) { return overwritten_[input.node] > at; });
}

bool Fusion::can_read_earlier(NodeId part, std::size_t first, NodeId at) const {
  const auto& inputs = node(part).inputs;
  return std::all_of(inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end(),
                     [&](ValueId input) { return fixed_[input.node] || input.node < at; });
}

std::vector<OperandSpec> Fusion::layouts_of(const std::vector<ValueId>& values) const {
  std::vector<OperandSpec> layouts;
  layouts.reserve(values.size());
  for (const ValueId value : values) layouts.push_back(layouts_[value]);
  return layouts;
}

bool Fusion::is_worthwhile(std::span<const NodeId> parts, const Op& fused,
                           const std::vector<ValueId>& inputs) {
  const GraphNode& first = node(*parts.begin());
  const auto same_pin = [&](NodeId part) { return node(part).pin == first.pin; };
  if (!std::ranges::all_of(parts, same_pin)) return false;
  const std::vector<OperandSpec> layouts = layouts_of(inputs);
  std::vector<TensorSpec> specs;
  for (const OperandSpec& layout : layouts) specs.push_back(layout.spec);
  const auto outputs = try_infer(fused, specs);
  if (!outputs) return false;

  for (Device* device : candidates_.of(first)) {
    const Legal legal = legalize(*device, fused, layouts, *outputs);
    if (legal.how == Legal::How::direct) return true;
    std::size_t copies_of_parts = 0;
    bool runs_parts = true;
    for (const NodeId part : parts) {
      const GraphNode& one = node(part);
      const Legal of_part = legalize(*device, one.op, layouts_of(one.inputs), one.outputs);
      runs_parts = runs_parts && of_part.how != Legal::How::no;
      copies_of_parts += copies(of_part);
    }
    if (has_kernel(legal) && copies(legal) <= copies_of_parts) return true;
    if (runs_parts) return false;
  }
  return false;
}

// ---- Changes

void Fusion::add_uses(NodeId id) {
  for (const ValueId input : node(id).inputs) ++uses_[input];
}

void Fusion::remove_uses(NodeId id) {
  for (const ValueId input : node(id).inputs) --uses_[input];
}

/// For a node that had `before` outputs and may now have more.
void Fusion::keep_uses(NodeId id, std::size_t before) {
  if (node(id).outputs.size() <= before) return;
  std::vector<std::uint32_t> known;
  for (std::uint32_t i = 0; i < before; ++i) known.push_back(uses_[{id, i}]);
  known.resize(node(id).outputs.size(), 0);
  uses_.renew_node(id);
  for (const std::uint32_t uses : known) uses_.add(uses);
}

void Fusion::set(NodeId id, Op op, std::vector<ValueId> inputs) {
  remove_uses(id);
  GraphNode& node = graph_.nodes[id];
  const std::size_t before = node.outputs.size();
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = infer(node.op, input_specs(graph_, node));
  layouts_.renew_node(id);
  for (const TensorSpec& output : node.outputs) layouts_.add(output_operand(node.op, output));
  keep_uses(id, before);
  add_uses(id);
}

void Fusion::set_view_source(NodeId view, ValueId source) {
  remove_uses(view);
  GraphNode& node = graph_.nodes[view];
  node.inputs = {source};
  overwritten_[view] = overwritten_[source.node];
  OperandSpec& layout = layouts_[{view, 0}];
  const auto seen = view_of(node.op, layouts_[source]);
  layout.layout = seen ? seen->layout : Layout::contiguous(layout.spec.shape);
  add_uses(view);
}

void Fusion::drop(NodeId id) {
  remove_uses(id);
  graph_.nodes[id].dead = true;
}

void Fusion::replace(NodeId id, NodeId with, std::uint32_t first) {
  drop(id);
  replaced_[id] = {with, first};
  for (std::uint32_t i = 0; i < node(id).outputs.size(); ++i) {
    uses_[{with, first + i}] += uses_[{id, i}];
  }
  overwritten_[with] = std::min(overwritten_[with], overwritten_[id]);
}

Graph Fusion::finish() {
  for (Graph::Named& output : graph_.outputs) output.value = current(output.value);
  for (Graph::Named& update : graph_.state_updates) update.value = current(update.value);
  return mark_dead(in_source_order(std::move(graph_)));
}

}  // namespace heddle
