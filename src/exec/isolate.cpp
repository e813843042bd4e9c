// Copies of states for readers outside their chain, made before anything is planned.
#include <algorithm>
#include <map>
#include <set>

#include "exec/planner.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

class Isolation {
 public:
  explicit Isolation(PlacedGraph placed)
      : old_(std::move(placed)), memory_(trace_memory(old_.graph)) {}

  Isolated apply() {
    find_homes();
    find_written();
    find_versions_to_copy();
    if (to_copy_.empty()) return {std::move(old_), std::move(memory_)};
    rebuild();
    auto memory = trace_memory(new_.graph);
    return {std::move(new_), std::move(memory)};
  }

 private:
  const Graph& graph() const { return old_.graph; }
  const Memory& memory(ValueId v) const { return memory_[v]; }

  /// A state, or an input that may be bound to one.
  bool is_shared_leaf(ValueId root) const {
    const Op& op = graph().node(root).op;
    if (std::holds_alternative<StateRef>(op)) return true;
    const auto* input = std::get_if<Input>(&op);
    return input && std::find(graph().fed_inputs.begin(), graph().fed_inputs.end(), input->name) !=
                        graph().fed_inputs.end();
  }

  /// A state lives where it is first written, or else first read.
  void find_homes() {
    for (const bool writers : {true, false}) {
      for (NodeId n = 0; n < graph().nodes.size(); ++n) {
        const GraphNode& node = graph().nodes[n];
        Device* device = old_.placement[n];
        if (node.dead || !device || (writers && !writes_state(node.op))) continue;
        for (const ValueId input : node.inputs) {
          const ValueId root = memory(input).root;
          if (is_shared_leaf(root)) homes_.try_emplace(root, device);
        }
      }
    }
  }

  /// What a kernel made lives where that ran.
  Device* home(ValueId root) const {
    if (!is_leaf(graph().node(root).op)) return old_.placement[root.node];
    const auto it = homes_.find(root);
    return it == homes_.end() ? &cpu_device() : it->second;
  }

  bool reads_from_afar(NodeId reader, ValueId input) const {
    const ValueId root = memory(input).root;
    const bool changes =
        std::holds_alternative<StateRef>(graph().node(root).op) || written_.contains(root);
    return changes && old_.placement[reader] && old_.placement[reader] != home(root);
  }

  /// Values that kernels made, and that writes change in place.
  void find_written() {
    for (const GraphNode& node : graph().nodes) {
      if (node.dead || !writes_state(node.op)) continue;
      const ValueId root = memory(node.inputs[0]).root;
      if (!is_leaf(graph().node(root).op)) written_.insert(root);
    }
  }

  void find_versions_to_copy() {
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      if (graph().nodes[n].dead) continue;
      for (const ValueId input : graph().nodes[n].inputs) {
        if (reads_from_afar(n, input)) to_copy_.insert(memory(input).source);
      }
    }
    for (const Graph::Named& output : graph().outputs) {
      if (is_shared_leaf(memory(output.value).root)) to_copy_.insert(memory(output.value).source);
    }
  }

  NodeId append(GraphNode node, Device* device, std::string extent) {
    new_.graph.nodes.push_back(std::move(node));
    new_.placement.push_back(device);
    new_.extents.push_back(std::move(extent));
    return static_cast<NodeId>(new_.graph.nodes.size() - 1);
  }

  void rebuild() {
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      GraphNode node = graph().nodes[n];
      for (ValueId& input : node.inputs) {
        input = !node.dead && reads_from_afar(n, input) ? on_copy(input) : moved(input);
      }
      moved_.push_back(append(std::move(node), old_.placement[n], old_.extents[n]));
      for (std::uint32_t o = 0; o < graph().nodes[n].outputs.size(); ++o) {
        if (to_copy_.contains({n, o})) copy({n, o});
      }
    }
    new_.graph.fed_inputs = graph().fed_inputs;
    for (const Graph::Named& output : graph().outputs) {
      const bool shared = is_shared_leaf(memory(output.value).root);
      new_.graph.outputs.push_back(
          {output.name, shared ? on_copy(output.value) : moved(output.value)});
    }
    for (const Graph::Named& update : graph().state_updates) {
      new_.graph.state_updates.push_back({update.name, moved(update.value)});
    }
  }

  ValueId moved(ValueId v) const { return {moved_[v.node], v.output}; }

  void copy(ValueId version) {
    const TensorSpec& spec = graph().spec(version);
    copies_[version] = {
        append({Contiguous{}, {moved(version)}, {spec}}, home(memory(version).root), ""), 0};
  }

  /// The value (a version, or views of one) as seen on the version's copy.
  ValueId on_copy(ValueId value) {
    const auto found = copies_.find(value);
    if (found != copies_.end()) return found->second;
    GraphNode view = graph().node(value);  // a view: versions themselves are in copies_
    view.inputs[0] = on_copy(view.inputs[0]);
    return copies_[value] = {append(std::move(view), nullptr, ""), 0};
  }

  PlacedGraph old_, new_;
  PerValue<Memory> memory_;
  std::map<ValueId, Device*> homes_;  // by root
  std::set<ValueId> written_;         // roots
  std::set<ValueId> to_copy_;
  std::vector<NodeId> moved_;
  std::map<ValueId, ValueId> copies_;
};

}  // namespace

Isolated isolate_states(PlacedGraph placed) {
  return Isolation(std::move(placed)).apply();
}

}  // namespace heddle
