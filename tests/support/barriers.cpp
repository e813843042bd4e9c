#include "support/barriers.h"

#include <fmt/format.h>

#include <map>

namespace heddle::test {

namespace {

struct Use {
  std::uint32_t slot;
  std::size_t begin, end;
  bool writes;
  std::size_t split, step;
};

bool conflict(const Use& a, const Use& b) {
  return a.slot == b.slot && (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

Use use_of(const Location& at, ByteRange bytes, bool writes) {
  return {at.slot, at.offset + bytes.begin, at.offset + bytes.end, writes, 0, 0};
}

std::vector<Use> uses_of(const PlannedLaunch& launch) {
  std::vector<Use> uses;
  const KernelTraits& traits = launch.kernel->traits();
  for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
    uses.push_back(use_of(launch.inputs[i], traits.reads[i], false));
  }
  for (std::size_t i = 0; i < launch.outputs.size(); ++i) {
    uses.push_back(use_of(launch.outputs[i], traits.writes[i], true));
  }
  if (launch.workspace_bytes > 0) {
    const std::size_t begin = launch.workspace_offset;
    uses.push_back({launch.workspace_slot, begin, begin + launch.workspace_bytes, true, 0, 0});
  }
  if (launch.extent) uses.push_back(use_of(*launch.extent, {0, 4}, false));
  return uses;
}

std::vector<Use> uses_of(const PlannedStep& step) {
  if (const auto* launch = std::get_if<PlannedLaunch>(&step)) return uses_of(*launch);
  const auto& copy = std::get<PlannedCopy>(step);
  return {use_of(copy.from, {0, copy.from.bytes}, false),
          use_of(copy.to, {0, copy.to.bytes}, true)};
}

std::string describe(const Use& use) {
  return fmt::format("split {} step {} {} bytes {}..{} of slot {}", use.split, use.step,
                     use.writes ? "writes" : "reads", use.begin, use.end, use.slot);
}

/// A barrier that the simulator is to overlook.
struct Barrier {
  std::size_t split = ~std::size_t{0}, step = 0;
  bool operator==(const Barrier&) const = default;
};

/// One device's splits, in order, twice.
std::string unordered_on(const Plan& plan, const Device* device, Barrier overlooked) {
  std::vector<Use> since;  // the last barrier
  for (int run = 0; run < 2; ++run) {
    for (std::size_t s = 0; s < plan.splits.size(); ++s) {
      if (plan.splits[s].device != device) continue;
      const auto& steps = plan.splits[s].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (std::holds_alternative<PlannedBarrier>(steps[i])) {
          if (!(overlooked == Barrier{s, i})) since.clear();
          continue;
        }
        std::vector<Use> uses = uses_of(steps[i]);
        for (Use& use : uses) {
          use.split = s, use.step = i;
          for (const Use& before : since) {
            if (conflict(use, before)) return describe(use) + ", and " + describe(before);
          }
        }
        since.insert(since.end(), uses.begin(), uses.end());
      }
    }
  }
  return {};
}

std::string unordered_use(const Plan& plan, Barrier overlooked) {
  std::map<const Device*, std::string> seen;
  for (const Split& split : plan.splits) {
    if (seen.contains(split.device)) continue;
    std::string found = unordered_on(plan, split.device, overlooked);
    if (!found.empty()) return found;
    seen.emplace(split.device, "");
  }
  return {};
}

std::vector<Barrier> inner(const Plan& plan) {
  std::vector<Barrier> barriers;
  for (std::size_t s = 0; s < plan.splits.size(); ++s) {
    const auto& steps = plan.splits[s].steps;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (std::holds_alternative<PlannedBarrier>(steps[i])) barriers.push_back({s, i});
    }
  }
  return barriers;
}

}  // namespace

std::string unordered_use(const Plan& plan) {
  return unordered_use(plan, {});
}

std::vector<std::string> barriers_for_nothing(const Plan& plan) {
  std::vector<std::string> found;
  for (const Barrier& barrier : inner(plan)) {
    if (unordered_use(plan, barrier).empty()) {
      found.push_back(fmt::format("split {} step {}", barrier.split, barrier.step));
    }
  }
  return found;
}

std::size_t inner_barriers(const Plan& plan) {
  return inner(plan).size();
}

}  // namespace heddle::test
