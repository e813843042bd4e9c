// Where a split's steps have to see what came before.
#include <algorithm>
#include <limits>
#include <map>

#include "exec/planner.h"
#include "heddle/device.h"

namespace heddle {

namespace {

struct Access {
  std::uint32_t slot;
  std::size_t begin, end;
  bool write;
};

bool conflict(const Access& a, const Access& b) {
  return a.slot == b.slot && (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}

bool any_conflict(const std::vector<Access>& now, const std::vector<Access>& before) {
  return std::ranges::any_of(now, [&](const Access& a) {
    return std::ranges::any_of(before, [&](const Access& b) { return conflict(a, b); });
  });
}

class Barriers {
 public:
  explicit Barriers(const Plan& plan) : plan_(plan) {
    for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
      const Slot& slot = plan.slots[s];
      if (slot.kind == SlotKind::state) state_slots_[{slot.name, slot.device}] = s;
    }
  }

  void insert(Split& split) const {
    std::vector<PlannedStep> steps;
    steps.reserve(2 * split.steps.size() + 1);
    steps.emplace_back(PlannedBarrier{});
    std::vector<Access> since, now;
    for (PlannedStep& step : split.steps) {
      now.clear();
      add_accesses(step, now);
      if (any_conflict(now, since)) {
        steps.emplace_back(PlannedBarrier{});
        since.clear();
      }
      since.insert(since.end(), now.begin(), now.end());
      steps.push_back(std::move(step));
    }
    split.steps = std::move(steps);
  }

 private:
  /// A fed input is bound to its state's memory.
  std::uint32_t memory_slot(std::uint32_t slot) const {
    const Slot& planned = plan_.slots[slot];
    if (planned.kind != SlotKind::input) return slot;
    const auto state = state_slots_.find({planned.name, planned.device});
    return state == state_slots_.end() ? slot : state->second;
  }

  /// Rows of a state are chosen by data, and its buffer may outgrow its spec: all of it counts.
  Access access(const Location& location, ByteRange range, bool write) const {
    const std::uint32_t bound = memory_slot(location.slot);
    if (plan_.slots[bound].kind == SlotKind::state) {
      return {bound, 0, std::numeric_limits<std::size_t>::max(), write};
    }
    return {location.slot, location.offset + range.begin, location.offset + range.end, write};
  }

  void add_accesses(const PlannedStep& step, std::vector<Access>& all) const {
    if (const auto* l = std::get_if<PlannedLaunch>(&step)) {
      const KernelTraits& traits = l->kernel->traits();
      for (std::size_t i = 0; i < l->inputs.size(); ++i)
        all.push_back(access(l->inputs[i], traits.reads[i], false));
      for (std::size_t o = 0; o < l->outputs.size(); ++o)
        all.push_back(access(l->outputs[o], traits.writes[o], true));
      if (l->workspace_bytes > 0) {
        all.push_back({l->workspace_slot, l->workspace_offset,
                       l->workspace_offset + l->workspace_bytes, true});
      }
    } else if (const auto* c = std::get_if<PlannedCopy>(&step)) {
      all.push_back(access(c->from, {0, c->from.bytes}, false));
      all.push_back(access(c->to, {0, c->to.bytes}, true));
    }
  }

  const Plan& plan_;
  std::map<std::pair<std::string, Device*>, std::uint32_t> state_slots_;
};

}  // namespace

void insert_barriers(Plan& plan) {
  const Barriers barriers(plan);
  for (Split& split : plan.splits) barriers.insert(split);
  for (Split& split : plan.feeds) barriers.insert(split);
}

}  // namespace heddle
