// Which device runs a node: the part of placement that asks devices.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/lower.h"
#include "graph/passes.h"
#include "graph/values.h"

namespace heddle {

/// The devices that may run a node, best first. Remembered by the node's pin.
class Candidates {
 public:
  explicit Candidates(const PassOptions& options) : options_(options) {}
  const std::vector<Device*>& of(const GraphNode& node);

 private:
  const PassOptions& options_;
  std::map<Device*, std::vector<Device*>> by_pin_;
};

struct Choice {
  Device* device = nullptr;  // null: none can
  Legal legal;
};

/// Chooses for the nodes of one graph, and remembers those that no device may or can run.
class DeviceChoices {
 public:
  DeviceChoices(const Graph& graph, const PassOptions& options);

  /// How values lie as the graph stands, before any copy.
  const PerValue<OperandSpec>& layouts() const noexcept { return layouts_; }

  /// For a node whose operands lie so. All writes of one state get one device: the state's.
  Choice choose(NodeId id, const std::vector<OperandSpec>& operands);
  /// For a copy that makes `operand` contiguous: where the value was made, if that device can.
  Device* choose_for_copy(const GraphNode& copy, const OperandSpec& operand, Device* made_on);

  /// Throws unsupported, listing every node that was refused with the reasons, and the pin to use.
  void throw_if_refused() const;

 private:
  struct Refusal {
    NodeId node;
    std::vector<std::string> reasons;  // per device asked
  };

  template <class Ask>
  Choice first_able(const std::vector<Device*>& candidates, const Ask& ask,
                    std::vector<std::string>* reasons) const;
  const std::vector<Device*>& candidates_of_writer(NodeId id);
  std::vector<Device*> device_for_writers(const std::vector<NodeId>& writers);
  Legal ask_as_written(Device& device, NodeId id);
  Device* device_for_all(const std::vector<NodeId>& nodes) const;
  std::string pin_to_use() const;

  const Graph& graph_;
  const PassOptions& options_;
  Candidates candidates_;
  PerValue<OperandSpec> layouts_;
  std::unordered_map<NodeId, std::vector<NodeId>> writers_;  // of each state, by its StateRef
  std::unordered_map<NodeId, NodeId> state_of_writer_;
  /// By StateRef: the one device that runs all writes of the state, or none if no device can.
  std::unordered_map<NodeId, std::vector<Device*>> device_of_state_;
  std::vector<Refusal> refusals_;
};

}  // namespace heddle
