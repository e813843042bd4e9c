// What nodes of a plan cost in one run, whose inputs say how many rows and positions count.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "heddle/executable.h"

namespace heddle {

class RunCosts {
 public:
  /// `inputs` must outlive this.
  RunCosts(const Graph& graph, const std::vector<std::string>& extents,
           std::span<const NamedTensor> inputs);

  /// How many leading rows of the node's outputs count; of a scalar's or a state's, all.
  std::int64_t rows(NodeId node, std::uint32_t output) const;
  /// As `cost`, for what counts. Attention counts the positions that its tokens see, where lengths
  /// and positions are inputs.
  Cost of(NodeId node) const;

 private:
  std::optional<std::int64_t> extent_of(NodeId node) const;
  std::span<const std::int32_t> ids(ValueId value) const;
  std::optional<Cost> attend_cost(const Attend& op, const GraphNode& node) const;

  const Graph& graph_;
  const std::vector<std::string>& extents_;
  std::map<std::string, std::span<const std::int32_t>, std::less<>> ids_;  // of i32 inputs
};

}  // namespace heddle
