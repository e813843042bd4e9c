// Runs that somebody watches: node by node, each submitted alone and waited for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "exec/bindings.h"
#include "exec/observed_cost.h"
#include "exec/observers.h"

namespace heddle {

/// A recording for each node of each split.
class NodeRecordings {
 public:
  using List = std::vector<std::unique_ptr<Recording>>;
  /// Makes those that are missing.
  void make(const Plan& plan);
  /// Of the split's launches and copies, in order.
  const List& of(const Split& split) const { return made_.at(&split); }

 private:
  std::map<const Split*, List> made_;
};

/// One run as its watchers are told of it. One that is destroyed unfinished did not come to run.
class WatchedRun {
 public:
  /// `inputs` must outlive this, and hold what the run was given.
  WatchedRun(Watchers watchers, const Plan& plan, std::shared_ptr<const ObservedPlan> described,
             std::span<const NamedTensor> inputs);
  ~WatchedRun();
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  /// Comes before the first split, while no stream has anything that waits to be submitted.
  void begin(NodeRecordings& recordings);
  /// Runs split `index` (feeds come after the others) on `stream`, which has been ordered after
  /// what the split waits for. Throws what a node throws, or fails with.
  Ref<Completion> run_split(std::size_t index, const Split& split, Stream& stream,
                            const Bindings& bindings, const NodeRecordings& recordings);
  /// What an error of `run_split` may have left in flight; null if there is nothing.
  const Ref<Completion>& in_flight() const noexcept { return last_end_; }
  void finish(std::shared_ptr<const Failure> failure);

 private:
  void tell_of_inputs();
  void run_node(std::uint32_t node, const PlannedStep& step, const Recording& recording,
                Stream& stream, const Bindings& bindings);
  void tell(ObservedRecord record, const std::vector<ObservedValue>& values);
  bool is_wanted(const ObservedNode& node, std::uint32_t output);
  std::vector<ObservedValue> values_of(const ObservedNode& node, const PlannedLaunch& launch,
                                       const Bindings& bindings);

  const Watchers watchers_;
  const Plan& plan_;
  const std::span<const NamedTensor> inputs_;
  const RunCosts costs_;
  ObservedRun run_;
  Ref<Completion> last_end_;
  bool finished_ = false;
  std::vector<std::vector<std::byte>> copies_;  // of one node's outputs, where the host sees none
};

}  // namespace heddle
