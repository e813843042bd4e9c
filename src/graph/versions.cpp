#include "graph/versions.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace heddle {

namespace {

/// The StateRef behind each fed input, by name.
std::unordered_map<std::string_view, NodeId> fed_states(const Graph& graph) {
  std::unordered_map<std::string_view, NodeId> states;
  for (const std::string& fed : graph.fed_inputs) states[fed] = kNoNode;
  if (states.empty()) return states;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const auto* state = std::get_if<StateRef>(&graph.nodes[id].op);
    if (!state) continue;
    if (const auto found = states.find(state->name); found != states.end()) found->second = id;
  }
  return states;
}

bool writes(const GraphNode& node) {
  return !node.dead && writes_state(node.op);
}

}  // namespace

Versions::Versions(const Graph& graph)
    : version(graph, {kNoNode, 0}), writer(graph, kNoNode), state(graph, kNoNode) {
  const auto fed = fed_states(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    for (std::uint32_t i = 0; i < node.outputs.size(); ++i) version[{id, i}] = {id, i};
    if (is_view(node.op)) {
      version[{id, 0}] = version[node.inputs[0]];
    } else if (const auto* input = std::get_if<Input>(&node.op)) {
      const auto found = fed.find(input->name);
      if (found != fed.end() && found->second != kNoNode) version[{id, 0}] = {found->second, 0};
    } else if (std::holds_alternative<StateRef>(node.op)) {
      state[{id, 0}] = id;
    } else if (writes(node)) {
      const ValueId target = node.inputs[0];
      if (version[target] != target) continue;
      state[{id, 0}] = state[target];
      if (writer[target] == kNoNode && is_writable(graph, target)) writer[target] = id;
    }
  }
}

bool is_writable(const Graph& graph, ValueId value) {
  const Op& op = graph.node(value).op;
  return std::holds_alternative<StateRef>(op) || (!is_leaf(op) && !is_view(op));
}

void require_single_writes(const Graph& graph, const Versions& versions) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (!writes(node)) continue;
    const ValueId target = node.inputs[0];
    const NodeId state = versions.state[target];
    const NodeId first = versions.writer[target];
    if (state == kNoNode || first == id) continue;
    fail(ErrorCode::invalid_argument,
         "state \"{}\" is written twice from one version: {} and {} both write over {}; the second "
         "write must take what the first returned",
         leaf_name(graph.nodes[state].op), describe(graph, first), describe(graph, id),
         describe(target));
  }
}

// ---- Copies of what is read too late

namespace {

/// Finds the copies that are needed. Nothing is changed until all are known.
class LateReads {
 public:
  struct Copy {
    ValueId of;
    NodeId before;
    NodeId id = kNoNode;  // in the new graph
  };

  explicit LateReads(const Graph& graph) : graph_(graph), versions_(graph) {
    require_single_writes(graph, versions_);
    for (NodeId id = 0; id < graph.nodes.size() && first_feed_ == kNoNode; ++id) {
      if (!graph.nodes[id].dead && std::holds_alternative<Feed>(graph.nodes[id].op)) {
        first_feed_ = id;
      }
    }
    for (NodeId id = 0; id < graph.nodes.size(); ++id) visit(id);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) visit_output(i);
  }
  bool none() const noexcept { return copies_.empty(); }

  Graph apply() {
    std::unordered_map<NodeId, std::vector<std::size_t>> before;
    for (std::size_t i = 0; i < copies_.size(); ++i) before[copies_[i].before].push_back(i);
    Rebuild rebuild(graph_);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (const auto found = before.find(id); found != before.end()) {
        for (const std::size_t i : found->second) add_copy(rebuild, copies_[i]);
      }
      const NodeId kept = rebuild.keep(id);
      if (const auto found = rewired_.find(id); found != rewired_.end()) {
        for (const auto& [operand, copy] : found->second) {
          rebuild.graph().nodes[kept].inputs[operand] = {copies_[copy].id, 0};
        }
      }
    }
    Graph result = rebuild.finish();
    for (const auto& [output, copy] : rewired_outputs_) {
      result.outputs[output].value = {copies_[copy].id, 0};
    }
    return result;
  }

 private:
  void visit(NodeId id) {
    const GraphNode& node = graph_.nodes[id];
    if (node.dead) return;
    for (std::size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const ValueId value = node.inputs[operand];
      const bool target = operand == 0 && writes_state(node.op);
      if (target && versions_.writer[value] == id) continue;
      const NodeId writer = writer_of(value);
      const bool late = writer != kNoNode && writer <= id;
      if (!late && !target) continue;
      rewired_[id].emplace_back(operand, copy_of(value, late ? writer : id, target ? id : kNoNode));
    }
    if (!is_view(node.op)) return;
    // A view of a copy looks at memory that nobody overwrites.
    const bool of_copy = rewired_.contains(id);
    versions_.version[{id, 0}] = of_copy ? ValueId{kNoNode, 0} : versions_.version[node.inputs[0]];
  }

  void visit_output(std::size_t index) {
    const ValueId value = graph_.outputs[index].value;
    const NodeId writer = writer_of(value);
    if (writer != kNoNode) rewired_outputs_.emplace_back(index, copy_of(value, writer, kNoNode));
  }

  NodeId writer_of(ValueId value) const {
    const ValueId version = versions_.version[value];
    return version.node == kNoNode ? kNoNode : versions_.writer[version];
  }

  /// The copy of `value` made before node `before`; for a write, one of its own to write over.
  std::size_t copy_of(ValueId value, NodeId before, NodeId own) {
    if (first_feed_ < before && value.node < first_feed_) before = first_feed_;
    const auto [found, added] = index_.try_emplace({before, value, own}, copies_.size());
    if (added) copies_.push_back({value, before});
    return found->second;
  }

  void add_copy(Rebuild& rebuild, Copy& copy) {
    const ValueId source = rebuild[copy.of];
    copy.id = rebuild.add(
        {Contiguous{}, {source}, {graph_.spec(copy.of)}, graph_.nodes[copy.before].pin, false});
  }

  const Graph& graph_;
  Versions versions_;
  NodeId first_feed_ = kNoNode;
  std::vector<Copy> copies_;
  std::map<std::tuple<NodeId, ValueId, NodeId>, std::size_t> index_;
  std::unordered_map<NodeId, std::vector<std::pair<std::size_t, std::size_t>>> rewired_;
  std::vector<std::pair<std::size_t, std::size_t>> rewired_outputs_;
};

}  // namespace

Graph keep_old_versions(Graph graph) {
  LateReads late(graph);
  return late.none() ? std::move(graph) : late.apply();
}

}  // namespace heddle
