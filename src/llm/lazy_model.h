// The model run as lazy arrays, node by node: the other executor, under the same kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "llm/plans.h"

namespace heddle::llm {

/// Not thread-safe.
class LazyModel {
 public:
  LazyModel(std::shared_ptr<const Model> model, const PlanShape& shape, LayerDevices devices);

  void run(const StepInputs& inputs, Head head, float* rows);
  void copy_block(std::int64_t from, std::int64_t to);
  /// Ops that ran on the CPU though another device was asked for, by name. Those of other lazy
  /// evaluations that went on beside `run` are among them.
  const std::map<std::string, std::uint64_t>& host_ops() const noexcept { return host_ops_; }

  /// Whether states failed with a run, or went with a device; and all of them anew.
  bool has_lost_states() const;
  void reset_states();

 private:
  Array weight(const std::string& name) const;

  std::shared_ptr<const Model> model_;
  PlanShape shape_;
  LayerDevices devices_;
  std::vector<Array> keys_, values_;
  std::map<std::string, std::uint64_t> host_ops_;
};

}  // namespace heddle::llm
