// Helpers for code that walks graphs and makes new ones.
#pragma once

#include <string>
#include <vector>

#include "heddle/graph.h"

namespace heddle {

inline constexpr NodeId kNoNode = ~NodeId{0};

/// One T for each value of a graph, which may be added node by node.
template <class T>
class PerValue {
 public:
  PerValue() = default;
  PerValue(const Graph& graph, const T& initial) {
    first_.reserve(graph.nodes.size());
    std::uint32_t total = 0;
    for (const GraphNode& node : graph.nodes) {
      first_.push_back(total);
      total += static_cast<std::uint32_t>(node.outputs.size());
    }
    items_.assign(total, initial);
  }
  void reserve(const Graph& graph) {
    first_.reserve(graph.nodes.size());
    items_.reserve(graph.nodes.size());  // nearly all have one output
  }
  /// What is added next belongs to `node` in place of what it had.
  void renew_node(NodeId node) { first_[node] = static_cast<std::uint32_t>(items_.size()); }
  /// What is added next belongs to the next node.
  void add_node() { first_.push_back(static_cast<std::uint32_t>(items_.size())); }
  T& add(T item) { return items_.emplace_back(std::move(item)); }

  T& operator[](ValueId value) { return items_[first_[value.node] + value.output]; }
  const T& operator[](ValueId value) const { return items_[first_[value.node] + value.output]; }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<T> items_;
};

/// "%12 rms_norm", for messages.
std::string describe(const Graph& graph, NodeId id);
/// "%12", or "%12.1" for outputs after the first.
std::string describe(ValueId value);

/// The name of an input, parameter or state; empty for other ops.
const std::string& leaf_name(const Op& op) noexcept;

std::vector<TensorSpec> input_specs(const Graph& graph, const GraphNode& node);

/// What `validate` checks besides each node by itself: names, results, states and feeds. Nodes that
/// were captured are right as they are.
void validate_names_and_states(const Graph& graph);

/// How often each value is read: by live nodes, as an output, as a state's last version.
PerValue<std::uint32_t> count_uses(const Graph& graph);

/// The same nodes, each as early as it stands and no later than just before its first reader. For
/// graphs whose edges have no cycle.
Graph in_source_order(Graph graph);

/// Makes a graph out of another, node by node, and remembers what became of the old values.
class Rebuild {
 public:
  explicit Rebuild(const Graph& from) : from_(from), map_(from, {kNoNode, 0}) {
    to_.nodes.reserve(from.nodes.size());
  }
  ValueId operator[](ValueId old) const { return map_[old]; }
  void map(ValueId old, ValueId value) { map_[old] = value; }
  std::vector<ValueId> mapped(const std::vector<ValueId>& old) const;

  NodeId add(GraphNode node);
  /// The old node, its inputs replaced by what they became.
  NodeId keep(NodeId old) { return keep(old, from_.nodes[old]); }
  /// The same, moved out of the old graph.
  NodeId keep(NodeId old, GraphNode node);
  const Graph& graph() const noexcept { return to_; }
  Graph& graph() noexcept { return to_; }
  /// The new graph, with the old one's outputs, updates and fed inputs.
  Graph finish();

 private:
  const Graph& from_;
  PerValue<ValueId> map_;
  Graph to_;
};

}  // namespace heddle
