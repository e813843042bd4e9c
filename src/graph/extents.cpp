#include <algorithm>

#include "graph/passes.h"
#include "graph/values.h"

namespace heddle {

namespace {

/// Carries extents through nodes, as numbers: 0 is none, others count the names from 1.
class Extents {
 public:
  explicit Extents(const Graph& graph)
      : graph_(graph), of_nodes_(graph.nodes.size(), 0), of_values_(graph.nodes.size(), 0) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (!graph.nodes[id].dead) visit(id);
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all(of_nodes_.size());
    for (std::size_t id = 0; id < all.size(); ++id) {
      if (of_nodes_[id] > 0) all[id] = names_[of_nodes_[id] - 1];
    }
    return all;
  }

 private:
  void visit(NodeId id) {
    const GraphNode& node = graph_.nodes[id];
    if (const auto* input = std::get_if<Input>(&node.op)) {
      of_nodes_[id] = of_values_[id] = number_of(input->extent);
    } else if (!std::holds_alternative<Feed>(node.op)) {  // a feed's extent is an operand
      of_nodes_[id] = common(node);
      // The rows that a write is given count or not; those of the state all do.
      if (!writes_state(node.op)) of_values_[id] = of_nodes_[id];
    }
  }

  /// The one extent of the operands whose rows are the node's; none where they have none, or two
  /// that differ: then all rows are computed.
  std::uint32_t common(const GraphNode& node) {
    std::uint32_t one = 0;
    specs_.clear();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint32_t extent = of_values_[node.inputs[i].node];
      if (extent == 0) continue;
      if (specs_.empty()) {
        for (const ValueId input : node.inputs) specs_.push_back(graph_.spec(input));
      }
      if (!is_row_operand(node.op, i, specs_)) continue;
      if (one != 0 && one != extent) return 0;
      one = extent;
    }
    return one;
  }

  std::uint32_t number_of(const std::string& name) {
    if (name.empty()) return 0;
    const auto known = std::ranges::find(names_, name);
    if (known == names_.end()) {
      names_.push_back(name);
      return static_cast<std::uint32_t>(names_.size());
    }
    return static_cast<std::uint32_t>(known - names_.begin() + 1);
  }

  const Graph& graph_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> of_nodes_, of_values_;
  std::vector<TensorSpec> specs_;  // of a node's inputs
};

}  // namespace

std::vector<std::string> propagate_extents(const Graph& graph) {
  return Extents(graph).names();
}

}  // namespace heddle
