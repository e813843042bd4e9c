// A graph while ops in it are joined: what the patterns of `fuse` look at and change.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/choose_device.h"
#include "graph/passes.h"
#include "graph/values.h"

namespace heddle {

/// Nodes keep their ids. A fused op takes the id of one of its parts, the others are marked dead;
/// nodes visited later find what became of their inputs.
class Fusion {
 public:
  Fusion(Graph graph, const PassOptions& options);

  const GraphNode& node(NodeId id) const { return graph_.nodes[id]; }
  const TensorSpec& spec(ValueId value) const { return graph_.spec(value); }
  const OperandSpec& layout(ValueId value) const { return layouts_[value]; }
  std::size_t size() const noexcept { return graph_.nodes.size(); }

  /// Replaces inputs that were joined into other nodes: to be called on each node in order.
  void refresh(NodeId id);

  /// How often the value is read, as an output of the graph too.
  std::uint32_t uses(ValueId value) const { return uses_[value]; }

  /// The node that makes `value`, if it is a live T and nothing but one reader sees the value.
  template <class T>
  const T* sole_use_of(ValueId value) const {
    const GraphNode& maker = node(value.node);
    if (maker.dead || maker.outputs.size() != 1 || uses_[{value.node, 0}] != 1) return nullptr;
    return std::get_if<T>(&maker.op);
  }

  /// Whether the inputs of node `part` still hold their values when node `at`, after it, reads
  /// them.
  bool can_read_later(NodeId part, NodeId at) const;
  /// Whether inputs `first` and later of node `part` exist when node `at`, before it, runs: made
  /// before it, or leaves and views of leaves.
  bool can_read_earlier(NodeId part, std::size_t first, NodeId at) const;

  /// Whether `fused`, in place of `parts`, is right and good: they have one pin, and the device
  /// that would run the parts has a kernel for it that needs no more copies than theirs.
  bool is_worthwhile(std::span<const NodeId> parts, const Op& fused,
                     const std::vector<ValueId>& inputs);

  bool is_worthwhile(std::initializer_list<NodeId> parts, const Op& fused,
                     const std::vector<ValueId>& inputs) {
    return is_worthwhile(std::span(parts.begin(), parts.size()), fused, inputs);
  }

  void set(NodeId id, Op op, std::vector<ValueId> inputs);
  /// Makes a view that has one reader a view of something else of the same spec.
  void set_view_source(NodeId view, ValueId source);
  /// Marks the node dead.
  void drop(NodeId id);
  /// Marks the node dead; outputs of `with`, from `first` on, take the place of its own.
  void replace(NodeId id, NodeId with, std::uint32_t first);

  Graph finish();

 private:
  std::vector<OperandSpec> layouts_of(const std::vector<ValueId>& values) const;
  /// What became of the value.
  ValueId current(ValueId value) const;
  void add_uses(NodeId id);
  void remove_uses(NodeId id);
  void keep_uses(NodeId id, std::size_t before);

  Graph graph_;
  Candidates candidates_;
  PerValue<OperandSpec> layouts_;
  PerValue<std::uint32_t> uses_;
  std::vector<NodeId> overwritten_;  // the first node that writes over an output of each
  std::vector<char> fixed_;          // leaves, and views of them: they can be had anywhere
  std::vector<ValueId> replaced_;    // the first of the outputs that took the place of a node's own
};

// The patterns, each tried with the node that stands last in it.

void join_gated_multiply(Fusion& fusion, NodeId multiply);
void join_add_rms_norm(Fusion& fusion, NodeId norm);
void join_bias_rope(Fusion& fusion, NodeId rope);
void join_norm_rope(Fusion& fusion, NodeId rope);
void join_write(Fusion& fusion, NodeId write);
/// Element-wise ops that end at `root`.
void join_elements(Fusion& fusion, NodeId root);

/// Linears over one input, joined into the first of them.
class LinearGroups {
 public:
  void join(Fusion& fusion, NodeId linear);

 private:
  // By input and pin, the linear that the next one may join.
  std::map<std::pair<ValueId, Device*>, NodeId> first_;
};

}  // namespace heddle
