// Sound plans, broken in one way each: the verifier must see it.
#include <functional>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

/// A plan over two devices with everything in it: states, a feed, repacks, workspaces, copies both
/// ways, values that share the arena, an input that bounds rows.
class BrokenPlans : public testing::Test {
 protected:
  void SetUp() override {
    GraphBuilder builder;
    const Array x = builder.input("x", f32({4, 64}), "count"),
                rows = builder.input("rows", i32({4}));
    const Array fed = builder.input("fed", f32({4, 64}));
    const Array w = builder.parameter("w", f32({64, 64}));
    Array k = builder.state("k", f32({6, 64})), v = builder.state("v", f32({6, 64}));
    const Array h = linear(x, w) + fed;
    const Array s = on(async_, [&] { return softmax(silu(softmax(h, -1)), -1); });
    const Array t = softmax(softmax(s, -1) + linear(h, w), -1);
    k = write_rows(k, t, rows);
    v = write_rows(v, softmax(t, -1), rows);
    const Array g = softmax(take(k, rows, 0), -1) + softmax(take(v, rows, 0), -1);
    const Array m = on(async_, [&] { return softmax(g, -1) * s; });
    const Array last = softmax(m + t, -1);
    builder.output("out", last);
    builder.output("t", t);
    builder.update("k", k);
    builder.update("v", v);
    builder.feed(fed, last, FeedKind::whole);
    plan_ = plan_of(builder.build(), {&cpu_device(), &async_});
    ASSERT_NO_THROW(verify(plan_));
  }

  static AsyncOptions options() {
    AsyncOptions options = accepting("async", {"softmax", "silu", "multiply"});
    options.workspace = 1024;
    options.hides_local = true;
    return options;
  }

  const Graph& graph() const { return plan_.placed.graph; }

  std::vector<PlannedLaunch*> launches() {
    std::vector<PlannedLaunch*> all;
    for (Split& split : plan_.splits) {
      for (PlannedStep& step : split.steps) {
        if (auto* launch = std::get_if<PlannedLaunch>(&step)) all.push_back(launch);
      }
    }
    return all;
  }

  SlotKind kind(const Location& location) const { return plan_.slots[location.slot].kind; }

  PlannedLaunch& first(const std::string& op, std::size_t skip = 0) {
    for (PlannedLaunch* launch : launches()) {
      if (name(graph().nodes[launch->node].op) == op && skip-- == 0) return *launch;
    }
    throw std::logic_error("no launch of " + op);
  }

  /// The first launch that `suits`.
  PlannedLaunch& find(const std::function<bool(const PlannedLaunch&)>& suits) {
    for (PlannedLaunch* launch : launches()) {
      if (suits(*launch)) return *launch;
    }
    throw std::logic_error("no launch suits");
  }

  template <class Step>
  std::pair<std::size_t, std::size_t> position(std::size_t from_split = 0) const {
    for (std::size_t s = from_split; s < plan_.splits.size(); ++s) {
      for (std::size_t i = 0; i < plan_.splits[s].steps.size(); ++i) {
        if (std::holds_alternative<Step>(plan_.splits[s].steps[i])) return {s, i};
      }
    }
    throw std::logic_error("no such step");
  }

  void add_room() {
    for (ArenaReport& report : plan_.arenas) {
      report.bytes += 1 << 20;
      plan_.slots[report.slot].bytes = report.bytes;
    }
    verify(plan_);
  }

  void expect_caught(const std::string& part) {
    expect_error(ErrorCode::backend, part, [&] { verify(plan_); });
  }

  AsyncDevice async_{options()};
  Plan plan_;
};

TEST_F(BrokenPlans, TwoOffsetsSwapped) {
  const auto in_arena = [&](const PlannedLaunch& l) {
    return kind(l.outputs[0]) == SlotKind::arena;
  };
  PlannedLaunch& a = find(in_arena);
  PlannedLaunch& b = find([&](const PlannedLaunch& l) {
    return in_arena(l) && l.outputs[0].slot == a.outputs[0].slot &&
           l.outputs[0].offset != a.outputs[0].offset;
  });
  std::swap(a.outputs[0].offset, b.outputs[0].offset);
  expect_caught(" hold ");
}

TEST_F(BrokenPlans, AnOffsetThatIsNotAligned) {
  PlannedLaunch& a =
      find([&](const PlannedLaunch& l) { return kind(l.outputs[0]) == SlotKind::arena; });
  a.outputs[0].offset += 4;
  expect_caught("not a multiple of 64");
}

TEST_F(BrokenPlans, EachWaitDropped) {
  const Plan sound = plan_;
  int dropped = 0;
  for (std::size_t s = 0; s < sound.splits.size(); ++s) {
    if (sound.splits[s].waits.empty()) continue;
    plan_ = sound;
    plan_.splits[s].waits.clear();
    expect_caught("it needs a wait");
    ++dropped;
  }
  EXPECT_GE(dropped, 3);
}

TEST_F(BrokenPlans, AWaitForNothing) {
  plan_.splits[4].waits.push_back(0);  // an earlier split of the same device
  expect_caught("from whose device it reads nothing");
}

TEST_F(BrokenPlans, EachStagingCopyDropped) {
  const Plan sound = plan_;
  int dropped = 0;
  for (std::size_t s = 0; s < sound.splits.size(); ++s) {
    for (std::size_t i = 0; i < sound.splits[s].steps.size(); ++i) {
      if (!std::holds_alternative<PlannedCopy>(sound.splits[s].steps[i])) continue;
      plan_ = sound;
      plan_.splits[s].steps.erase(plan_.splits[s].steps.begin() + static_cast<std::ptrdiff_t>(i));
      expect_caught("hold nothing that was written for it");
      ++dropped;
    }
  }
  EXPECT_GE(dropped, 4);
}

TEST_F(BrokenPlans, ACopyBeforeItsValueIsMade) {
  const auto [s, i] = position<PlannedCopy>();
  auto& steps = plan_.splits[s].steps;
  std::rotate(steps.begin() + 1, steps.begin() + static_cast<std::ptrdiff_t>(i),
              steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  expect_caught("hold nothing that was written for it");
}

TEST_F(BrokenPlans, ACopyInALaterSplit) {
  const auto [s, i] = position<PlannedCopy>();
  auto& steps = plan_.splits[s].steps;
  auto& later = plan_.splits[s + 2].steps;
  later.insert(later.begin() + 1, steps[i]);
  const Plan twice = plan_;  // on time, and once more later
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
  expect_caught("hold nothing that was written for it");
  plan_ = twice;
  expect_caught("is not made in this split");
}

TEST_F(BrokenPlans, ACopyIntoAnotherStagingSlot) {
  const auto [s, i] = position<PlannedCopy>();
  const auto [t, j] = position<PlannedCopy>(s + 1);
  auto& a = std::get<PlannedCopy>(plan_.splits[s].steps[i]);
  auto& b = std::get<PlannedCopy>(plan_.splits[t].steps[j]);
  std::swap(a.to.slot, b.to.slot);
  expect_caught("not another device's staging slot for it");
}

TEST_F(BrokenPlans, EachBarrierDropped) {
  const Plan sound = plan_;
  int inner = 0;
  for (std::size_t s = 0; s < sound.splits.size(); ++s) {
    for (std::size_t i = 1; i < sound.splits[s].steps.size(); ++i) {
      if (!std::holds_alternative<PlannedBarrier>(sound.splits[s].steps[i])) continue;
      plan_ = sound;
      plan_.splits[s].steps.erase(plan_.splits[s].steps.begin() + static_cast<std::ptrdiff_t>(i));
      expect_caught("it needs a barrier");
      ++inner;
    }
  }
  EXPECT_GE(inner, 8);
}

TEST_F(BrokenPlans, TheBarrierBetweenTwoRunsDropped) {
  GraphBuilder builder;
  builder.output("y", softmax(softmax(builder.input("x", f32({4, 64})), -1), -1));
  plan_ = plan_of(builder.build());
  verify(plan_);
  plan_.splits[0].steps.erase(plan_.splits[0].steps.begin());
  expect_caught("run 1, split 0");
}

TEST_F(BrokenPlans, TwoNodesReordered) {
  Split& split = *std::find_if(plan_.splits.begin(), plan_.splits.end(), [](const Split& s) {
    return std::count_if(s.steps.begin(), s.steps.end(), [](const PlannedStep& step) {
             return std::holds_alternative<PlannedLaunch>(step);
           }) >= 2;
  });
  std::vector<PlannedStep*> steps;
  for (PlannedStep& step : split.steps) {
    if (std::holds_alternative<PlannedLaunch>(step)) steps.push_back(&step);
  }
  std::swap(*steps[0], *steps[1]);
  expect_caught("against the graph's order");
}

TEST_F(BrokenPlans, AStateShared) {
  const PlannedLaunch& k = first("write_rows", 0);
  PlannedLaunch& v = first("write_rows", 1);
  v.inputs[0].slot = k.inputs[0].slot;
  v.outputs[0].slot = k.outputs[0].slot;
  expect_caught(" hold ");
}

TEST_F(BrokenPlans, AStateOnTwoDevices) {
  for (const Slot& slot : std::vector<Slot>(plan_.slots)) {
    if (slot.kind != SlotKind::state) continue;
    plan_.slots.push_back(slot);
    plan_.slots.back().device = &async_;
    break;
  }
  expect_caught("one of two slots for the same thing");
}

TEST_F(BrokenPlans, AStateWrittenTwice) {
  const NodeId k = first("write_rows", 0).node;
  plan_.placed.graph.nodes.push_back(graph().nodes[k]);
  plan_.placed.placement.push_back(plan_.placed.placement[k]);
  plan_.placed.extents.push_back("");
  expect_caught("a version is written over once");
}

TEST_F(BrokenPlans, AStateNotInPlace) {
  add_room();
  PlannedLaunch& k = first("write_rows");
  k.outputs[0] = find([&](const PlannedLaunch& l) {
                   return kind(l.outputs[0]) == SlotKind::arena;
                 }).outputs[0];
  k.outputs[0].operand = k.inputs[0].operand;
  k.outputs[0].bytes = k.inputs[0].bytes;
  expect_caught("must be written in place");
}

TEST_F(BrokenPlans, AnOldVersionReadAfterItsSuccessorWasWritten) {
  // `take` reads the version that write_rows returned; here, the one before.
  const NodeId write = first("write_rows").node, read = first("gather_rows").node;
  plan_.placed.graph.nodes[read].inputs[0] = graph().nodes[write].inputs[0];
  expect_caught(" hold ");
}

TEST_F(BrokenPlans, AWorkspaceOverALiveValue) {
  // m = softmax(g, -1) * s: s is alive while softmax(g, -1) runs, on the other device.
  PlannedLaunch& product = first("multiply");
  Location alive = product.inputs[1];
  PlannedLaunch* before = nullptr;
  for (PlannedLaunch* launch : launches()) {
    if (launch == &product) break;
    before = launch;
  }
  ASSERT_EQ(kind(alive), SlotKind::arena);
  add_room();
  before->workspace_offset = alive.offset;
  expect_caught("still to be read");
}

TEST_F(BrokenPlans, AWorkspaceOverItsOwnOperands) {
  PlannedLaunch& l = find([&](const PlannedLaunch& launch) {
    return launch.workspace_bytes > 0 && kind(launch.outputs[0]) == SlotKind::arena;
  });
  add_room();
  l.workspace_offset = l.outputs[0].offset;
  expect_caught("its workspace overlaps output 0");
}

TEST_F(BrokenPlans, AWorkspaceTooSmall) {
  find([](const PlannedLaunch& l) { return l.workspace_bytes > 0; }).workspace_bytes -= 1;
  expect_caught("bytes of workspace, its kernel needs");
}

TEST_F(BrokenPlans, AWorkspaceOnTheWrongDevice) {
  PlannedLaunch& l = find([](const PlannedLaunch& launch) { return launch.workspace_bytes > 0; });
  for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
    if (plan_.slots[s].kind == SlotKind::arena && plan_.slots[s].device == &cpu_device())
      l.workspace_slot = s;
  }
  expect_caught("wrong device");
}

TEST_F(BrokenPlans, EachBufferOnTheWrongDevice) {
  const Plan sound = plan_;
  for (std::uint32_t s = 0; s < sound.slots.size(); ++s) {
    plan_ = sound;
    Device*& device = plan_.slots[s].device;
    device = device == &cpu_device() ? static_cast<Device*>(&async_) : &cpu_device();
    EXPECT_THROW(verify(plan_), Error) << "slot " << s;
  }
  plan_ = sound;
  plan_.slots[first("softmax").outputs[0].slot].device = &cpu_device();
  for (ArenaReport& report : plan_.arenas) report.device = plan_.slots[report.slot].device;
  EXPECT_THROW(verify(plan_), Error);
  plan_ = sound;
  plan_.slots[first("write_rows").inputs[0].slot].device = &async_;
  expect_caught("on the wrong device");
}

TEST_F(BrokenPlans, AnOffsetPastTheSlot) {
  PlannedLaunch& l =
      find([&](const PlannedLaunch& launch) { return kind(launch.outputs[0]) == SlotKind::arena; });
  l.outputs[0].offset = plan_.slots[l.outputs[0].slot].bytes / 64 * 64;
  expect_caught("past the");
}

TEST_F(BrokenPlans, AnOffsetThatOverflows) {
  PlannedLaunch& l =
      find([&](const PlannedLaunch& launch) { return kind(launch.outputs[0]) == SlotKind::arena; });
  l.outputs[0].offset = ~std::size_t{63};
  expect_caught("past the");
}

TEST_F(BrokenPlans, AnArenaTooSmall) {
  for (ArenaReport& report : plan_.arenas) {
    report.bytes -= 64;
    report.lower_bound = 0;
    plan_.slots[report.slot].bytes = report.bytes;
  }
  expect_caught("of slot");
}

TEST_F(BrokenPlans, AnAliasThatIsNotDeclared) {
  PlannedLaunch& l = find([&](const PlannedLaunch& launch) {
    return launch.kernel->traits().aliases.empty() && kind(launch.outputs[0]) == SlotKind::arena &&
           kind(launch.inputs[0]) == SlotKind::arena;
  });
  l.outputs[0].offset = l.inputs[0].offset;
  expect_caught("which its kernel does not allow");
}

TEST_F(BrokenPlans, WrittenOverAnInputThatOthersStillRead) {
  // softmax(s, -1) + h is the last reader of h; t = softmax(of that, -1) has several.
  PlannedLaunch& l = find([&](const PlannedLaunch& launch) {
    return !launch.kernel->traits().aliases.empty() && kind(launch.outputs[0]) == SlotKind::arena &&
           std::any_of(launch.kernel->traits().aliases.begin(),
                       launch.kernel->traits().aliases.end(),
                       [&](const KernelTraits::Alias& alias) {
                         return kind(launch.inputs[alias.input]) == SlotKind::arena &&
                                launch.inputs[alias.input].offset != launch.outputs[0].offset;
                       });
  });
  for (const KernelTraits::Alias& alias : l.kernel->traits().aliases) {
    const Location& input = l.inputs[alias.input];
    if (kind(input) == SlotKind::arena && input.offset != l.outputs[0].offset)
      l.outputs[0].offset = input.offset;
  }
  EXPECT_THROW(verify(plan_), Error);
}

TEST_F(BrokenPlans, AnOutputInTheArena) {
  plan_.outputs[0].location = find([&](const PlannedLaunch& l) {
                                return kind(l.outputs[0]) == SlotKind::arena;
                              }).outputs[0];
  expect_caught("does not outlive the run");
}

TEST_F(BrokenPlans, AnOutputThatIsAnother) {
  std::swap(plan_.outputs[0].location, plan_.outputs[1].location);
  expect_caught("after run 0");
}

TEST_F(BrokenPlans, AnOutputMissing) {
  plan_.outputs.pop_back();
  expect_caught("outputs, the graph has");
}

TEST_F(BrokenPlans, AKernelForOtherOperands) {
  first("silu").kernel = first("softmax").kernel;
  expect_caught("was prepared for something else");
}

TEST_F(BrokenPlans, NoKernel) {
  first("silu").kernel = nullptr;
  expect_caught("has no kernel");
}

TEST_F(BrokenPlans, OperandsThatAreNotTheGraphs) {
  Location& input = first("silu").inputs[0];
  input.operand.layout.strides = {1, 4};
  expect_caught("the graph says");
}

TEST_F(BrokenPlans, AFeedThatDoesNotWait) {
  ASSERT_EQ(plan_.feeds.size(), 1u);
  plan_.feeds[0].waits.pop_back();
  expect_caught("feed split 0 does not wait for split");
}

TEST_F(BrokenPlans, SplitListsThatAreWrong) {
  const Plan sound = plan_;
  const auto broken = [&](const std::string& part, const std::function<void()>& breaking) {
    plan_ = sound;
    breaking();
    expect_caught(part);
  };
  broken("among its inputs", [&] { plan_.splits[2].inputs.pop_back(); });
  broken("among its inputs, which it is not", [&] {
    plan_.splits[0].inputs.push_back({first("silu").node, 0});
  });
  broken("one of its inputs twice",
         [&] { plan_.splits[1].inputs.push_back(plan_.splits[1].inputs[0]); });
  broken("among its outputs", [&] { plan_.splits[0].outputs.clear(); });
  broken("among its outputs, which it is not", [&] {
    plan_.splits[1].outputs.push_back({first("silu").node, 0});
  });
}

TEST_F(BrokenPlans, ANodeMissingOrDoubled) {
  const Plan sound = plan_;
  const auto [s, i] = position<PlannedLaunch>();
  auto& steps = plan_.splits[s].steps;
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
  expect_caught("never runs");
  plan_ = sound;
  const PlannedStep step = plan_.splits[s].steps[i];
  plan_.splits[s].steps.push_back(step);
  expect_caught("has run before");
}

TEST_F(BrokenPlans, ANodeInAnotherDevicesSplit) {
  plan_.placed.placement[first("silu").node] = &cpu_device();
  expect_caught("was placed on cpu");
}

TEST_F(BrokenPlans, TheLoadLeftOut) {
  ASSERT_EQ(plan_.load.size(), 1u);
  plan_.load.clear();
  expect_caught("never runs");
}

TEST_F(BrokenPlans, ALoadIntoSomeOtherWeight) {
  plan_.load[0].outputs[0].slot = plan_.load[0].inputs[0].slot;
  EXPECT_THROW(verify(plan_), Error);
}

TEST_F(BrokenPlans, AnExtentMissing) {
  find([](const PlannedLaunch& l) { return l.extent.has_value(); }).extent.reset();
  expect_caught("bounded by an input");
}

TEST_F(BrokenPlans, AParameterSlotForAnotherName) {
  for (Slot& slot : plan_.slots) {
    if (slot.kind == SlotKind::parameter) slot.name = "other";
  }
  expect_caught("cannot hold");
}

TEST_F(BrokenPlans, AnInputSlotForAnotherName) {
  for (Slot& slot : plan_.slots) {
    if (slot.name == "x") slot.name = "nobody";
  }
  expect_caught("named after nothing in the graph");
}

TEST_F(BrokenPlans, SplitsCutInTwo) {
  Split tail{.device = plan_.splits[0].device};
  plan_.splits.insert(plan_.splits.begin(), tail);
  expect_caught("should be one");
}

// ---- At random

/// Breaks one thing, anywhere.
void break_something(Plan& plan, std::mt19937& random) {
  Split& split = plan.splits[random() % plan.splits.size()];
  if (split.steps.empty()) return;
  const std::size_t i = random() % split.steps.size();
  PlannedStep& step = split.steps[i];
  auto* launch = std::get_if<PlannedLaunch>(&step);
  switch (random() % 6) {
    case 0:
      if (launch && !launch->outputs.empty()) launch->outputs[0].offset = 64 * (random() % 16);
      break;
    case 1:
      if (launch) launch->workspace_offset = 64 * (random() % 16);
      break;
    case 2:
      split.steps.erase(split.steps.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    case 3:
      std::swap(step, split.steps[random() % split.steps.size()]);
      break;
    case 4:
      if (!split.waits.empty()) split.waits.erase(split.waits.begin());
      break;
    default:
      if (launch && !launch->inputs.empty()) launch->inputs[0].offset = 64 * (random() % 16);
  }
}

/// Moves a value wherever it is written, read and copied: often still sound.
void move_value(Plan& plan, std::mt19937& random) {
  Split& from = plan.splits[random() % plan.splits.size()];
  if (from.steps.empty()) return;
  auto* launch = std::get_if<PlannedLaunch>(&from.steps[random() % from.steps.size()]);
  if (!launch || launch->outputs.empty()) return;
  const Location old = launch->outputs[0];
  if (plan.slots[old.slot].kind != SlotKind::arena) return;
  const std::size_t to = 64 * (random() % (plan.slots[old.slot].bytes / 64 + 1));
  const auto moved = [&](Location& location) {
    if (location.slot == old.slot && location.offset == old.offset) location.offset = to;
  };
  for (Split& split : plan.splits) {
    for (PlannedStep& step : split.steps) {
      if (auto* other = std::get_if<PlannedLaunch>(&step)) {
        std::ranges::for_each(other->inputs, moved);
        std::ranges::for_each(other->outputs, moved);
      } else if (auto* copy = std::get_if<PlannedCopy>(&step)) {
        moved(copy->from);
      }
    }
  }
}

TEST(BrokenAtRandom, WhateverPassesRunsRight) {
  AsyncOptions options;
  options.workspace = 64;
  options.delay = std::chrono::microseconds(0);
  AsyncDevice device(options);
  int passed = 0, caught = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomGraph random = random_graph(1000 + seed, {&cpu_device(), &device}, 14);
    const Plan sound = plan_of(random.graph, {&device});
    const auto expected = interpret(random.graph, random.bound, 2);
    std::mt19937 mutations(seed);
    for (int m = 0; m < 40; ++m) {
      Plan plan = sound;
      m % 2 == 0 ? break_something(plan, mutations) : move_value(plan, mutations);
      try {
        verify(plan);
      } catch (const Error&) {
        ++caught;
        continue;
      }
      ++passed;
      expect_same(run_plan(plan, random.bound, 2), expected,
                  "seed " + std::to_string(seed) + ", mutation " + std::to_string(m));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(caught, 300);
  EXPECT_GT(passed, 100);  // moves that are sound, and breaks that changed nothing
}

}  // namespace
}  // namespace heddle::test
