#include "exec/observed_plan.h"

#include <fmt/format.h>

#include <atomic>
#include <map>

#include "graph/values.h"

namespace heddle {

namespace {

ValueId without_views(const Graph& graph, ValueId value) {
  while (is_view(graph.node(value).op)) value = graph.node(value).inputs[0];
  return value;
}

/// What each node is called after: the parameter or state that it reads, else what its latest
/// operand is called after, else an input. None of them depends on the device.
class Anchors {
 public:
  explicit Anchors(const Graph& graph) : graph_(graph), anchors_(graph.nodes.size()) {
    for (NodeId n = 0; n < graph.nodes.size(); ++n) {
      if (!graph.nodes[n].dead) anchors_[n] = find(n);
    }
  }
  const std::string& of(NodeId node) const { return anchors_[node]; }

 private:
  std::string find(NodeId n) const {
    const GraphNode& node = graph_.nodes[n];
    if (is_leaf(node.op)) return leaf_name(node.op);
    std::string state;
    for (const ValueId input : node.inputs) {
      const Op& leaf = graph_.node(source(input)).op;
      if (std::holds_alternative<Parameter>(leaf)) return leaf_name(leaf);
      if (state.empty() && std::holds_alternative<StateRef>(leaf)) state = leaf_name(leaf);
    }
    return state.empty() ? inherited(node) : state;
  }

  std::string inherited(const GraphNode& node) const {
    const NodeId none = kNoNode;
    NodeId latest = none;
    std::string input_name;
    for (const ValueId input : node.inputs) {
      const NodeId n = without_views(graph_, input).node;
      if (is_leaf(graph_.nodes[n].op)) {
        if (input_name.empty()) input_name = anchors_[n];
      } else if (!anchors_[n].empty() && (latest == none || n > latest)) {
        latest = n;
      }
    }
    return latest == none ? input_name : anchors_[latest];
  }

  /// Past all that only says the same in other words.
  ValueId source(ValueId value) const {
    while (true) {
      const GraphNode& node = graph_.node(value);
      const bool same = is_view(node.op) || std::holds_alternative<Repack>(node.op) ||
                        std::holds_alternative<Contiguous>(node.op) ||
                        std::holds_alternative<Cast>(node.op) ||
                        (writes_state(node.op) && value.output == 0);
      if (!same) return value;
      value = node.inputs[0];
    }
  }

  const Graph& graph_;
  std::vector<std::string> anchors_;
};

class Description {
 public:
  explicit Description(const Plan& plan) : plan_(plan), anchors_(plan.placed.graph) {}

  ObservedPlan make() {
    static std::atomic<std::uint64_t> last{0};
    out_.id = ++last;
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      if (std::holds_alternative<Input>(graph().nodes[n].op)) leaf(n);
    }
    for (const ArenaReport& arena : plan_.arenas) {
      arena_of_[arena.slot] = out_.arenas.size();
      out_.arenas.push_back(
          {std::string(arena.device->name()), arena.bytes, arena.lower_bound, {}});
    }
    for (const Split& split : plan_.splits) add(split, false);
    for (const Split& split : plan_.feeds) add(split, true);
    return std::move(out_);
  }

 private:
  const Graph& graph() const { return plan_.placed.graph; }

  void add(const Split& split, bool feeds) {
    out_.splits.push_back({std::string(split.device->name()), feeds, {}});
    for (const PlannedStep& step : split.steps) {
      if (const auto* launch = std::get_if<PlannedLaunch>(&step)) {
        add(*launch);
      } else if (const auto* copy = std::get_if<PlannedCopy>(&step)) {
        add(*copy);
      }
    }
  }

  std::uint32_t append(ObservedNode node) {
    const int uses = ++names_[node.name];
    if (uses > 1) node.name += fmt::format("#{}", uses);
    out_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(out_.nodes.size() - 1);
  }

  void append_step(ObservedNode node) {
    node.split = static_cast<std::int32_t>(out_.splits.size()) - 1;
    node.device = out_.splits.back().device;
    out_.splits.back().nodes.push_back(append(std::move(node)));
    ++steps_;
  }

  /// Names the node after its anchor.
  ObservedNode named(NodeId n) const {
    const Op& op = graph().nodes[n].op;
    ObservedNode out;
    out.op = name(op);
    out.family = family_name(op);
    const std::string& anchor = anchors_.of(n);
    out.name = anchor.empty() ? out.op : anchor + "/" + out.op;
    out.text = to_string(op);
    out.id = n;
    out.outputs = graph().nodes[n].outputs;
    return out;
  }

  void add(const PlannedLaunch& launch) {
    const GraphNode& node = graph().nodes[launch.node];
    ObservedNode out = named(launch.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      out.inputs.push_back(source(node.inputs[i], launch.inputs[i]));
    }
    const Cost spent = cost(node.op, input_specs(graph(), node), node.outputs);
    out.bytes = spent.bytes;
    out.operations = spent.operations;
    out.writes_state = writes_state(node.op);
    for (const Location& input : launch.inputs) note_read(input);
    if (launch.extent) note_read(*launch.extent);
    made_[launch.node] = static_cast<std::uint32_t>(out_.nodes.size());
    note_made(launch, made_[launch.node]);
    append_step(std::move(out));
  }

  void add(const PlannedCopy& copy) {
    const Device& to = *plan_.slots[copy.to.slot].device;
    ObservedNode out = named(copy.value.node);
    out.name = fmt::format("{}/copy to {}", out.name, to.name());
    out.kind = ObservedNode::Kind::copy;
    out.op = out.family = "copy";
    out.text = fmt::format("copy to {}", to.name());
    out.outputs = {graph().spec(copy.value)};
    out.inputs = {source(copy.value, copy.from)};
    out.bytes = 2 * static_cast<double>(copy.from.bytes);
    note_read(copy.from);
    staged_[copy.to.slot] = static_cast<std::uint32_t>(out_.nodes.size());
    append_step(std::move(out));
  }

  /// Where an operand comes from: what made it, the copy of that for this device, or a leaf.
  ObservedNode::Source source(ValueId value, const Location& location) {
    const auto staged = staged_.find(location.slot);
    if (staged != staged_.end()) return {staged->second, 0};
    value = without_views(graph(), value);
    const auto made = made_.find(value.node);
    if (made != made_.end()) return {made->second, value.output};
    while (!is_leaf(graph().node(value).op)) {  // packed when it was loaded
      value = without_views(graph(), graph().node(value).inputs[0]);
    }
    return {leaf(value.node), 0};
  }

  std::uint32_t leaf(NodeId n) {
    const auto known = made_.find(n);
    if (known != made_.end()) return known->second;
    const Op& op = graph().nodes[n].op;
    ObservedNode out = named(n);
    out.kind = std::holds_alternative<Input>(op)       ? ObservedNode::Kind::input
               : std::holds_alternative<Parameter>(op) ? ObservedNode::Kind::parameter
               : std::holds_alternative<StateRef>(op)  ? ObservedNode::Kind::state
                                                       : ObservedNode::Kind::constant;
    out.op = out.family = to_string(out.kind);
    out.name = anchors_.of(n).empty() ? out.op : anchors_.of(n);
    return made_[n] = append(std::move(out));
  }

  void note_made(const PlannedLaunch& launch, std::uint32_t node) {
    for (std::size_t o = 0; o < launch.outputs.size(); ++o) {
      const Location& at = launch.outputs[o];
      hold(at.slot, {node, static_cast<std::int32_t>(o), at.offset, at.bytes, steps_, steps_});
    }
    if (launch.workspace_bytes > 0) {
      hold(launch.workspace_slot,
           {node, -1, launch.workspace_offset, launch.workspace_bytes, steps_, steps_});
    }
  }
  void hold(std::uint32_t slot, const ObservedPlan::Item& item) {
    const auto arena = arena_of_.find(slot);
    if (arena != arena_of_.end()) out_.arenas[arena->second].items.push_back(item);
  }
  /// What lies there was written last by the latest item to overlap it.
  void note_read(const Location& at) {
    const auto arena = arena_of_.find(at.slot);
    if (arena == arena_of_.end()) return;
    std::vector<ObservedPlan::Item>& items = out_.arenas[arena->second].items;
    for (auto item = items.rbegin(); item != items.rend(); ++item) {
      const bool overlaps =
          item->offset < at.offset + at.bytes && at.offset < item->offset + item->bytes;
      if (item->output < 0 || !overlaps) continue;
      item->last = steps_;
      return;
    }
  }

  const Plan& plan_;
  const Anchors anchors_;
  ObservedPlan out_;
  std::map<std::string, int> names_;
  std::map<NodeId, std::uint32_t> made_;           // leaves too
  std::map<std::uint32_t, std::uint32_t> staged_;  // by slot, the copy that fills it
  std::map<std::uint32_t, std::size_t> arena_of_;  // by slot
  std::uint32_t steps_ = 0;
};

}  // namespace

ObservedPlan describe(const Plan& plan) {
  return Description(plan).make();
}

std::string family_name(const Op& op) {
  return std::visit(
      [](const auto& alternative) {
        return std::string(std::decay_t<decltype(alternative)>::kName);
      },
      op);
}

}  // namespace heddle
