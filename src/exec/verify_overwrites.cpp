// Outputs over inputs: nobody may read the input afterwards, nothing may fail afterwards.
#include <set>

#include "base/check.h"
#include "exec/verify.h"
#include "op/failing.h"

namespace heddle::verifier {

namespace {

void require_that(bool holds, const Plan& plan, const Overwrite& overwrite, const char* what) {
  require(holds, ErrorCode::backend, "plan: {} may not be written over {}: {}",
          describe_slot(plan, overwrite.output), describe_slot(plan, overwrite.input), what);
}

/// How the launch that writes the output reads the input.
void check_writer(const Plan& plan, const Overwrite& overwrite, const PlannedLaunch& launch) {
  for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
    if (launch.inputs[i].slot != overwrite.input) continue;
    bool allowed = false;
    for (const KernelTraits::Alias& alias : launch.kernel->traits().aliases) {
      const Location& out = launch.outputs[alias.output];
      allowed =
          allowed || (alias.input == i && out.slot == overwrite.output &&
                      out.offset == launch.inputs[i].offset && out.bytes == launch.inputs[i].bytes);
    }
    require_that(allowed, plan, overwrite, "its kernel reads that in another way");
  }
}

void check_steps(const Plan& plan, const Overwrite& overwrite) {
  bool written = false;
  for (const PlannedStep& step : plan.splits[0].steps) {
    const auto* launch = std::get_if<PlannedLaunch>(&step);
    if (!launch) continue;
    bool writes = false;
    for (const Location& output : launch->outputs) writes |= output.slot == overwrite.output;
    if (writes) check_writer(plan, overwrite, *launch);
    if (writes || written) {
      require_that(always_succeeds(plan.placed.graph.nodes[launch->node].op), plan, overwrite,
                   "an op from there on may fail");
    }
    for (const Location& input : launch->inputs) {
      require_that(!written || input.slot != overwrite.input, plan, overwrite,
                   "that is read afterwards");
    }
    require_that(!written || !launch->extent || launch->extent->slot != overwrite.input, plan,
                 overwrite, "that is read afterwards");
    written = written || writes;
  }
  for (const PlanOutput& output : plan.outputs) {
    require_that(output.location.slot != overwrite.input, plan, overwrite,
                 "that is handed out too");
  }
}

}  // namespace

void check_overwrites(const Plan& plan) {
  std::set<std::uint32_t> seen;
  for (const Overwrite& overwrite : plan.overwrites) {
    const Slot &output = plan.slots.at(overwrite.output), &input = plan.slots.at(overwrite.input);
    require_that(output.kind == SlotKind::output && input.kind == SlotKind::input, plan, overwrite,
                 "only outputs go over inputs");
    require_that(output.bytes == input.bytes, plan, overwrite, "it is not as large");
    require_that(seen.insert(overwrite.output).second && seen.insert(overwrite.input).second, plan,
                 overwrite, "one of them is in two pairs");
    const bool in_order = plan.splits.size() == 1 && plan.feeds.empty() &&
                          plan.splits[0].device == &cpu_device() &&
                          output.device == &cpu_device() && input.device == &cpu_device();
    require_that(in_order, plan, overwrite, "not all of the plan is done by the CPU, in order");
    check_steps(plan, overwrite);
  }
}

}  // namespace heddle::verifier
