// Which device runs what, and in which form.
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "device/lower.h"
#include "graph/choose_device.h"
#include "graph/passes.h"
#include "graph/values.h"
#include "graph/versions.h"

namespace heddle {

namespace {

class Placer {
 public:
  Placer(const Graph& from, const PassOptions& options)
      : from_(from), options_(options), choices_(from, options), rebuild_(from) {}

  PlacedGraph run() {
    std::vector<NodeId> feeds;
    for (NodeId id = 0; id < from_.nodes.size(); ++id) {
      const GraphNode& node = from_.nodes[id];
      if (node.dead || is_leaf(node.op)) {
        rebuild_.keep(id);
        note(nullptr);
      } else if (std::holds_alternative<Feed>(node.op)) {
        feeds.push_back(id);
      } else {
        place(id);
      }
    }
    place_feeds(feeds);
    choices_.throw_if_refused();
    return {.graph = rebuild_.finish(), .placement = std::move(placement_)};
  }

 private:
  using Values = std::vector<ValueId>;

  std::vector<OperandSpec> layouts_of(const Values& values) const {
    std::vector<OperandSpec> layouts;
    layouts.reserve(values.size());
    for (const ValueId value : values) layouts.push_back(layouts_[value]);
    return layouts;
  }

  // ---- Nodes of the new graph

  /// Keeps the lists beside the new graph's nodes as long as these. Leaves and views run nowhere.
  void note(Device* device) {
    const GraphNode& node = rebuild_.graph().nodes.back();
    add_layouts(layouts_, node);
    placement_.push_back(is_leaf(node.op) || is_view(node.op) ? nullptr : device);
  }

  std::vector<TensorSpec> specs_of(const Values& values) const {
    std::vector<TensorSpec> specs;
    specs.reserve(values.size());
    for (const ValueId value : values) specs.push_back(rebuild_.graph().spec(value));
    return specs;
  }

  Values add(const Op& op, Values inputs, Device* device, Device* pin) {
    std::vector<TensorSpec> outputs = infer(op, specs_of(inputs));
    return add_known(op, std::move(inputs), std::move(outputs), device, pin);
  }

  Values add_known(const Op& op, Values inputs, std::vector<TensorSpec> outputs, Device* device,
                   Device* pin) {
    const NodeId id = rebuild_.add({op, std::move(inputs), std::move(outputs), pin, false});
    note(device);
    Values values;
    for (std::uint32_t i = 0; i < rebuild_.graph().nodes[id].outputs.size(); ++i) {
      values.push_back({id, i});
    }
    return values;
  }

  /// The copy of a strided value that its readers on one device share.
  ValueId contiguous(ValueId value, Device* device, Device* pin) {
    const auto [found, added] = copies_.try_emplace({value, device}, ValueId{});
    if (added) found->second = add(Contiguous{}, {value}, device, pin)[0];
    return found->second;
  }

  // ---- Ops of the old graph

  void place(NodeId id) {
    const GraphNode& node = from_.nodes[id];
    Values inputs = rebuild_.mapped(node.inputs);
    if (is_view(node.op)) {
      map(id, emit_view(node, inputs));
      return;
    }
    const Choice choice = choices_.choose(id, layouts_of(inputs));
    if (!choice.device) {
      map(id, add_known(node.op, std::move(inputs), node.outputs, nullptr, node.pin));
      return;  // refused, as will be said
    }
    if (writes_state(node.op)) inputs[0] = writable(inputs[0], choice.device, node.pin);
    if (choice.legal.how == Legal::How::direct) {
      map(id, add_known(node.op, std::move(inputs), node.outputs, choice.device, node.pin));
    } else {
      map(id, emit(*choice.device, node.pin, node.op, std::move(inputs), choice.legal));
    }
  }

  void map(NodeId id, const Values& values) {
    for (std::uint32_t i = 0; i < values.size(); ++i) rebuild_.map({id, i}, values[i]);
  }

  /// What a write on `device` may write over: states, and what kernels of that device made.
  ValueId writable(ValueId target, Device* device, Device* pin) {
    const Op& op = rebuild_.graph().node(target).op;
    if (std::holds_alternative<StateRef>(op)) return target;
    if (is_writable(rebuild_.graph(), target) && placement_[target.node] == device) return target;
    return add(Contiguous{}, {target}, device, pin)[0];
  }

  Values emit(Device& device, Device* pin, const Op& op, Values inputs, const Legal& legal) {
    switch (legal.how) {
      case Legal::How::direct:
        return add(op, std::move(inputs), &device, pin);
      case Legal::How::contiguous:
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (legal.copy[i]) inputs[i] = contiguous(inputs[i], &device, pin);
        }
        return add(op, std::move(inputs), &device, pin);
      case Legal::How::lowered:
        return emit_lowered(device, pin, inputs, legal.lowered);
      case Legal::How::no:
        break;
    }
    fail(ErrorCode::unsupported, "{}: a step of a lowered op, {}, cannot run: {}", device.name(),
         to_string(op), legal.reason);
  }

  Values emit_lowered(Device& device, Device* pin, const Values& inputs, const Lowered& lowered) {
    std::vector<Values> steps;
    const auto value_of = [&](const LoweredStep::Source& source) {
      return source.from_input ? inputs[source.index] : steps[source.index][source.output];
    };
    for (const LoweredStep& step : lowered.steps) {
      Values operands;
      for (const auto& source : step.sources) operands.push_back(value_of(source));
      if (is_view(step.op)) {
        steps.push_back({emit_view(step.op, operands[0], &device, pin)});
      } else {
        const Legal legal = legalize(device, step.op, layouts_of(operands));
        steps.push_back(emit(device, pin, step.op, std::move(operands), legal));
      }
    }
    Values outputs;
    for (const auto& source : lowered.outputs) outputs.push_back(value_of(source));
    return outputs;
  }

  Values emit_view(const GraphNode& node, const Values& inputs) {
    const ValueId source = inputs[0];
    if (view_of(node.op, layouts_[source])) {
      return add_known(node.op, inputs, node.outputs, nullptr, node.pin);
    }
    const GraphNode copy{Contiguous{}, node.inputs, {rebuild_.graph().spec(source)}, node.pin};
    Device* device = choices_.choose_for_copy(copy, layouts_of(inputs)[0], maker_device(source));
    return {emit_view(node.op, source, device, node.pin)};
  }

  /// A view, of a copy on `device` where strides cannot express it.
  ValueId emit_view(const Op& op, ValueId source, Device* device, Device* pin) {
    const OperandSpec& layout = layouts_[source];
    if (!view_of(op, layout)) source = contiguous(source, device, pin);
    return add(op, {source}, nullptr, pin)[0];
  }

  /// The device that makes what `value` is a view of; null for leaves.
  Device* maker_device(ValueId value) const {
    while (is_view(rebuild_.graph().node(value).op)) value = rebuild_.graph().node(value).inputs[0];
    return placement_[value.node];
  }

  /// Feeds come last, so all the copies that they need come before the first.
  void place_feeds(const std::vector<NodeId>& feeds) {
    std::vector<std::pair<Choice, Values>> ready;
    for (const NodeId id : feeds) {
      Values inputs = rebuild_.mapped(from_.nodes[id].inputs);
      Choice choice = choices_.choose(id, layouts_of(inputs));
      for (std::size_t i = 0; choice.device && i < choice.legal.copy.size(); ++i) {
        if (choice.legal.copy[i]) inputs[i] = contiguous(inputs[i], choice.device, {});
      }
      ready.emplace_back(std::move(choice), std::move(inputs));
    }
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      auto& [choice, inputs] = ready[i];
      map(feeds[i], add(from_.nodes[feeds[i]].op, std::move(inputs), choice.device, {}));
    }
  }

  const Graph& from_;
  const PassOptions& options_;
  DeviceChoices choices_;
  Rebuild rebuild_;
  Placement placement_;
  PerValue<OperandSpec> layouts_;  // of the new graph's values
  std::map<std::pair<ValueId, Device*>, ValueId> copies_;
};

std::map<Device*, std::uint64_t> generations_now(const Graph& graph, const PassOptions& options) {
  std::map<Device*, std::uint64_t> generations;
  const auto note = [&](Device* device) {
    if (device && !generations.contains(device)) generations[device] = device->generation();
  };
  for (Device* device : options.devices) note(device);
  for (const GraphNode& node : graph.nodes) note(node.pin);
  note(options.pin);
  note(&cpu_device());
  return generations;
}

/// Places a graph that needs neither copies nor simpler ops, as nearly every graph on devices that
/// were made for it. False for others.
bool place_as_it_stands(PlacedGraph& placed, const PassOptions& options) {
  const Graph& graph = placed.graph;
  placed.generations = generations_now(graph, options);
  placed.placement.assign(graph.nodes.size(), nullptr);
  placed.kernels.resize(graph.nodes.size());
  DeviceChoices choices(graph, options);
  const PerValue<OperandSpec>& layouts = choices.layouts();
  std::vector<OperandSpec> operands;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead || is_leaf(node.op)) continue;
    if (is_view(node.op)) {
      if (!view_of(node.op, layouts[node.inputs[0]])) return false;
      continue;
    }
    operands.clear();
    for (const ValueId input : node.inputs) operands.push_back(layouts[input]);
    Choice choice = choices.choose(id, operands);
    if (!choice.device || choice.legal.how != Legal::How::direct) return false;
    if (writes_state(node.op)) {
      const ValueId target = node.inputs[0];
      const bool is_state = std::holds_alternative<StateRef>(graph.node(target).op);
      if (!is_state && placed.placement[target.node] != choice.device) return false;
    }
    placed.placement[id] = choice.device;
    placed.kernels[id] = std::move(choice.legal.kernel);
  }
  return true;
}

}  // namespace

PlacedGraph place_and_legalize(Graph graph, const PassOptions& options) {
  PlacedGraph placed{.graph = std::move(graph)};
  if (place_as_it_stands(placed, options)) return placed;
  return Placer(placed.graph, options).run();
}

}  // namespace heddle
