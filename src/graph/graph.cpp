#include "heddle/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "graph/versions.h"
#include "op/infer.h"

namespace heddle {

namespace {

constexpr ErrorCode kInvalid = ErrorCode::invalid_argument;

bool exists(const Graph& graph, ValueId value) {
  return value.node < graph.nodes.size() && value.output < graph.node(value).outputs.size();
}

// Messages are put together only once something is wrong: a graph can have many nodes.

void check_inputs(const Graph& graph, NodeId id) {
  const GraphNode& node = graph.nodes[id];
  for (const ValueId input : node.inputs) {
    if (input.node >= id) {
      fail(kInvalid, "{} reads {}, which does not come before it", describe(graph, id),
           describe(input));
    }
    if (!exists(graph, input)) {
      fail(kInvalid, "{} reads {}, but {} has {} outputs", describe(graph, id), describe(input),
           describe(graph, input.node), graph.node(input).outputs.size());
    }
    if (!node.dead && graph.node(input).dead) {
      fail(kInvalid, "{} reads {}, which is dead", describe(graph, id),
           describe(graph, input.node));
    }
  }
}

/// `inputs` is room for the specs of the node's inputs.
void check_specs(const Graph& graph, NodeId id, std::vector<TensorSpec>& inputs) {
  const GraphNode& node = graph.nodes[id];
  inputs.clear();
  for (const ValueId input : node.inputs) inputs.push_back(graph.spec(input));
  Specs inferred;
  try {
    inferred = infer_specs(node.op, inputs);
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", describe(graph, id), error.what());
  }
  if (std::ranges::equal(inferred, node.outputs)) return;
  fail(kInvalid, "{} gives {}, but the graph says {}", describe(graph, id),
       to_string(std::span<const TensorSpec>(inferred.begin(), inferred.size())),
       to_string(std::span<const TensorSpec>(node.outputs)));
}

void check_constant(const Graph& graph, NodeId id) {
  const auto* constant = std::get_if<Constant>(&graph.nodes[id].op);
  if (!constant) return;
  require(constant->data && constant->data->host(), kInvalid, "{} has no data in host memory",
          describe(graph, id));
}

// ---- Names

class Leaves {
 public:
  explicit Leaves(const Graph& graph) : graph_(graph) {
    for (const std::string& fed : graph.fed_inputs) {
      require(fed_.insert(fed).second, kInvalid, "input \"{}\" is fed twice", fed);
    }
    for (NodeId id = 0; id < graph.nodes.size(); ++id) add(id);
  }

  void check_extents() const {
    for (const auto& [name, id] : named_) {
      const auto* input = std::get_if<Input>(&graph_.nodes[id].op);
      if (!input || input->extent.empty()) continue;
      const auto extent = named_.find(input->extent);
      require(extent != named_.end() && is_extent(graph_.nodes[extent->second]), kInvalid,
              "the extent of input \"{}\" names \"{}\", which is not an i32 scalar input", name,
              input->extent);
    }
  }

  void check_fed(const Versions& versions) const {
    for (const std::string& fed : graph_.fed_inputs) {
      const auto input = named_.find(fed);
      const auto state = states_.find(fed);
      require(
          input != named_.end() && std::holds_alternative<Input>(graph_.nodes[input->second].op),
          kInvalid, "\"{}\" is fed, but no input has that name", fed);
      require(state != states_.end(), kInvalid, "input \"{}\" is fed, but has no state", fed);
      require(graph_.nodes[input->second].outputs == graph_.nodes[state->second].outputs, kInvalid,
              "input \"{}\" is {}, but its state {}", fed,
              to_string(graph_.nodes[input->second].outputs[0]),
              to_string(graph_.nodes[state->second].outputs[0]));
      const NodeId writer = versions.writer[{state->second, 0}];
      require(writer != kNoNode && std::holds_alternative<Feed>(graph_.nodes[writer].op), kInvalid,
              "input \"{}\" is fed, but no feed writes its state", fed);
    }
  }

 private:
  void add(NodeId id) {
    const Op& op = graph_.nodes[id].op;
    if (!is_leaf(op) || std::holds_alternative<Constant>(op)) return;
    const std::string_view name = leaf_name(op);
    if (name.empty()) fail(kInvalid, "{} has no name", describe(graph_, id));
    const bool is_fed_state = std::holds_alternative<StateRef>(op) && fed_.contains(name);
    auto& names = is_fed_state ? states_ : named_;
    const auto [found, added] = names.try_emplace(name, id);
    if (!added) {
      fail(kInvalid, "{} and {} are both called \"{}\"", describe(graph_, found->second),
           describe(graph_, id), name);
    }
  }

  static bool is_extent(const GraphNode& node) {
    return !node.dead && std::holds_alternative<Input>(node.op) &&
           node.outputs[0] == TensorSpec{DType::i32, {}};
  }

  const Graph& graph_;
  std::unordered_set<std::string_view> fed_;
  std::unordered_map<std::string_view, NodeId> named_, states_;
};

void check_results(const Graph& graph, const std::vector<Graph::Named>& results, const char* what) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : results) {
    require(!name.empty(), kInvalid, "an {} has no name", what);
    require(names.insert(name).second, kInvalid, "two {}s are called \"{}\"", what, name);
    require(exists(graph, value), kInvalid, "{} \"{}\" is {}, which the graph does not have", what,
            name, describe(value));
    require(!graph.node(value).dead, kInvalid, "{} \"{}\" is {}, which is dead", what, name,
            describe(graph, value.node));
  }
}

// ---- States

void check_reads(const Graph& graph, const Versions& versions) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead) continue;
    for (std::size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const ValueId value = node.inputs[operand];
      const bool target = operand == 0 && writes_state(node.op);
      if (target && !is_writable(graph, value)) {
        fail(kInvalid,
             "{} writes over {}, which is neither a state nor made by a kernel; it needs a copy",
             describe(graph, id), describe(graph, value.node));
      }
      const NodeId writer = versions.overwritten_by(value);
      if (writer > id || (writer == id && target)) continue;
      fail(kInvalid, "{} reads {}, over which {} has written; it needs a copy made before that",
           describe(graph, id), describe(value), describe(graph, writer));
    }
  }
  for (const auto& [name, value] : graph.outputs) {
    const NodeId writer = versions.overwritten_by(value);
    if (writer == kNoNode) continue;
    fail(kInvalid, "output \"{}\" is {}, over which {} writes; it needs a copy made before that",
         name, describe(value), describe(graph, writer));
  }
}

void check_updates(const Graph& graph, const Versions& versions) {
  std::unordered_set<NodeId> updated;
  for (const auto& [name, value] : graph.state_updates) {
    const NodeId state = versions.state[value];
    const bool chained = state != kNoNode && state != value.node;
    if (!chained || leaf_name(graph.nodes[state].op) != name) {
      fail(kInvalid, "the update of state \"{}\" is {}, which does not come from it through writes",
           name, describe(graph, value.node));
    }
    if (const NodeId writer = versions.writer[value]; writer != kNoNode) {
      fail(kInvalid, "the update of state \"{}\" is {}, but {} writes the version after it", name,
           describe(graph, value.node), describe(graph, writer));
    }
    updated.insert(state);
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!std::holds_alternative<StateRef>(graph.nodes[id].op)) continue;
    const NodeId writer = versions.writer[{id, 0}];
    if (writer == kNoNode || updated.contains(id)) continue;
    fail(kInvalid,
         "state \"{0}\" is written by {1}, but has no update: say which version is its last with "
         "update(\"{0}\", ...)",
         leaf_name(graph.nodes[id].op), describe(graph, writer));
  }
}

void check_feed(const Graph& graph, NodeId id) {
  const NodeId target = graph.nodes[id].inputs[0].node;
  const auto* state = std::get_if<StateRef>(&graph.nodes[target].op);
  require(state != nullptr, kInvalid, "{} must write over a state, not over {}",
          describe(graph, id), describe(graph, target));
  require(std::ranges::find(graph.fed_inputs, state->name) != graph.fed_inputs.end(), kInvalid,
          "{} writes state \"{}\", which is no fed input's", describe(graph, id), state->name);
}

void check_feeds_last(const Graph& graph) {
  NodeId feed = kNoNode;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.dead) continue;
    if (std::holds_alternative<Feed>(node.op)) {
      feed = id;
      check_feed(graph, id);
    } else if (feed != kNoNode) {
      fail(kInvalid, "{} comes after {}: feeds come last", describe(graph, id),
           describe(graph, feed));
    }
  }
}

}  // namespace

void validate(const Graph& graph) {
  require(graph.nodes.size() < kNoNode, kInvalid, "a graph of {} nodes is too large",
          graph.nodes.size());
  std::vector<TensorSpec> specs;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    check_inputs(graph, id);
    check_specs(graph, id, specs);
    check_constant(graph, id);
  }
  validate_names_and_states(graph);
}

void validate_names_and_states(const Graph& graph) {
  const Leaves leaves(graph);
  leaves.check_extents();
  check_results(graph, graph.outputs, "output");
  check_results(graph, graph.state_updates, "update");
  const Versions versions(graph);
  require_single_writes(graph, versions);
  check_reads(graph, versions);
  check_updates(graph, versions);
  check_feeds_last(graph);
  leaves.check_fed(versions);
}

}  // namespace heddle
