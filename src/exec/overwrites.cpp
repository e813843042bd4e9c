// Outputs that may lie where inputs lie which the caller gives away.
#include <algorithm>
#include <vector>

#include "exec/planner.h"
#include "op/failing.h"

namespace heddle {

namespace {

/// A plan of one split on the CPU, whose steps run in order, as a list of launches.
std::vector<const PlannedLaunch*> launches_on_cpu(const Plan& plan) {
  std::vector<const PlannedLaunch*> launches;
  const bool suits =
      plan.splits.size() == 1 && plan.feeds.empty() && plan.splits[0].device == &cpu_device();
  if (!suits) return launches;
  for (const PlannedStep& step : plan.splits[0].steps) {
    if (const auto* launch = std::get_if<PlannedLaunch>(&step)) launches.push_back(launch);
  }
  return launches;
}

class Overwrites {
 public:
  explicit Overwrites(const Plan& plan)
      : plan_(plan),
        launches_(launches_on_cpu(plan)),
        last_read_(plan.slots.size(), 0),
        taken_(plan.slots.size(), false) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      for (const Location& input : launches_[i]->inputs) last_read_[input.slot] = i;
      if (launches_[i]->extent) last_read_[launches_[i]->extent->slot] = i;
      if (!always_succeeds(plan.placed.graph.nodes[launches_[i]->node].op)) first_ = i + 1;
    }
    for (const PlanOutput& output : plan.outputs) {
      const Slot& slot = plan.slots[output.location.slot];
      if (slot.kind == SlotKind::output) continue;
      taken_[output.location.slot] = true;
      // What is copied out when the run has ended takes memory, which there may be none of.
      const bool as_it_came =
          slot.kind == SlotKind::input && output.location.operand == slot.operand;
      if (!as_it_came) first_ = launches_.size();
    }
  }

  std::vector<Overwrite> find() {
    for (std::size_t i = first_; i < launches_.size(); ++i) {
      for (const KernelTraits::Alias& alias : launches_[i]->kernel->traits().aliases)
        consider(i, alias);
    }
    return std::move(found_);
  }

 private:
  bool is_whole(const Location& location, SlotKind kind) const {
    const Slot& slot = plan_.slots[location.slot];
    return slot.kind == kind && location.offset == 0 && location.bytes == slot.bytes &&
           is_contiguous(location.operand);
  }

  void consider(std::size_t i, const KernelTraits::Alias& alias) {
    const PlannedLaunch& launch = *launches_[i];
    const Location &to = launch.outputs[alias.output], &from = launch.inputs[alias.input];
    const bool suits = is_whole(to, SlotKind::output) && is_whole(from, SlotKind::input) &&
                       to.bytes == from.bytes && from.bytes > 0 && last_read_[from.slot] == i &&
                       std::ranges::count(launch.inputs, from.slot, &Location::slot) == 1;
    if (!suits || taken_[to.slot] || taken_[from.slot]) return;
    taken_[to.slot] = taken_[from.slot] = true;
    found_.push_back({to.slot, from.slot});
  }

  const Plan& plan_;
  const std::vector<const PlannedLaunch*> launches_;
  std::vector<std::size_t> last_read_;  // by slot, launch
  std::vector<bool> taken_;             // by slot
  std::size_t first_ = 0;               // the launch after the last that may fail
  std::vector<Overwrite> found_;
};

}  // namespace

std::vector<Overwrite> find_overwrites(const Plan& plan) {
  return Overwrites(plan).find();
}

}  // namespace heddle
