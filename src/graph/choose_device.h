// Which device runs a node: the part of placement that asks devices.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/lower.h"
#include "graph/passes.h"
#include "graph/values.h"

namespace heddle {

/// The devices that may run a node, best first.
std::vector<Device*> candidate_devices(const GraphNode& node, const PassOptions& options);

struct Choice {
  Device* device = nullptr;  // null: none can
  Legal legal;
};

/// Chooses for the nodes of one graph, and remembers those that no device may or can run.
class DeviceChoices {
 public:
  DeviceChoices(const Graph& graph, const PassOptions& options);

  /// For a node whose operands lie so. All writes of one state get one device: the state's.
  Choice choose(NodeId id, const std::vector<OperandSpec>& operands);
  /// For a copy that makes `operand` contiguous: where the value was made, if that device can.
  Device* choose_for_copy(const GraphNode& copy, const OperandSpec& operand, Device* made_on) const;

  /// Throws unsupported, listing every node that was refused with the reasons, and the pin to use.
  void throw_if_refused() const;

 private:
  using Ask = std::function<Legal(Device&)>;
  struct Refusal {
    NodeId node;
    std::vector<std::string> reasons;  // per device asked
  };

  Choice first_able(const std::vector<Device*>& candidates, const Ask& ask,
                    std::vector<std::string>* reasons) const;
  std::vector<Device*> candidates_of_writer(NodeId id);
  Legal ask_as_written(Device& device, NodeId id);
  Device* device_for_all(const std::vector<NodeId>& nodes) const;
  std::string pin_to_use() const;

  const Graph& graph_;
  const PassOptions& options_;
  std::vector<std::vector<OperandSpec>> layouts_;            // as the graph stands, before copies
  std::unordered_map<NodeId, std::vector<NodeId>> writers_;  // of each state, by its StateRef
  std::unordered_map<NodeId, NodeId> state_of_writer_;
  std::unordered_map<NodeId, Device*> device_of_state_;  // null: no device can run all its writes
  std::vector<Refusal> refusals_;
};

}  // namespace heddle
