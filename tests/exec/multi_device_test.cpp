// Plans over several devices, one of which works later and elsewhere.
#include <set>

#include "exec_test_support.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

float silu_of(float x) {
  return x / (1 + std::exp(-x));
}

/// silu(2x) + 2x, with silu on a device of its own.
Graph silu_graph(std::int64_t n = 64) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({n})) * 2.0f;
  builder.output("y", silu(x) + x);
  return builder.build();
}

void expect_silu(const Executable& executable, const std::vector<float>& x) {
  const auto y = executable.output("y").to_vector<float>();
  ASSERT_EQ(y.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(y[i], silu_of(2 * x[i]) + 2 * x[i], 1e-5) << i;
}

/// For each split, the splits that its inputs come from, in order.
std::vector<std::vector<std::size_t>> input_splits(const Plan& plan) {
  std::vector<std::vector<std::size_t>> all;
  for (const Split& split : plan.splits) {
    all.emplace_back();
    for (const ValueId value : split.inputs) {
      for (std::size_t s = 0; s < plan.splits.size(); ++s) {
        for (const PlannedStep& step : plan.splits[s].steps) {
          const auto* launch = std::get_if<PlannedLaunch>(&step);
          if (launch && launch->node == value.node) all.back().push_back(s);
        }
      }
    }
  }
  return all;
}

std::size_t count_slots(const Plan& plan, SlotKind kind) {
  return static_cast<std::size_t>(std::count_if(
      plan.slots.begin(), plan.slots.end(), [&](const Slot& slot) { return slot.kind == kind; }));
}

std::size_t count_copies(const Plan& plan) {
  std::size_t copies = 0;
  for (const Split& split : plan.splits) {
    copies += static_cast<std::size_t>(
        std::count_if(split.steps.begin(), split.steps.end(),
                      [](const auto& s) { return std::holds_alternative<PlannedCopy>(s); }));
  }
  return copies;
}

class MultiDevice : public testing::TestWithParam<bool> {
 protected:
  AsyncOptions options(const std::string& name, std::vector<std::string> ops) const {
    AsyncOptions options = accepting(name, std::move(ops));
    options.hides_local = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(HidesLocal, MultiDevice, testing::Bool());

TEST_P(MultiDevice, ThereAndBack) {
  AsyncDevice device(options("async", {"silu"}));
  const auto executable = compiled(silu_graph(), {&device});
  const Plan& plan = executable->plan();
  ASSERT_EQ(plan.splits.size(), 3u);
  EXPECT_EQ(plan.splits[0].device, &cpu_device());
  EXPECT_EQ(plan.splits[1].device, &device);
  EXPECT_EQ(plan.splits[2].device, &cpu_device());
  using Sources = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(input_splits(plan), (Sources{{}, {0}, {1, 0}}));
  EXPECT_EQ(plan.splits[1].waits, std::vector<std::uint32_t>{0});
  EXPECT_EQ(plan.splits[2].waits, std::vector<std::uint32_t>{1});
  EXPECT_EQ(count_copies(plan), GetParam() ? 2u : 0u);  // where memory is shared, none
  std::mt19937 random(1);
  const auto x = random_floats(random, 64);
  executable->run({given("x", x, {64})});
  expect_silu(*executable, x);
}

TEST(SharedMemory, TheVerifierSeesWhatTheCpuAndTheDeviceDoToIt) {
  AsyncDevice device(accepting("async", {"silu"}));
  const Plan sound = plan_of(silu_graph(), {&device});
  ASSERT_EQ(count_copies(sound), 0u);
  ASSERT_EQ(sound.splits.size(), 3u);
  ASSERT_NO_THROW(verify(sound));
  for (const std::size_t split : {1, 2}) {
    Plan plan = sound;
    plan.splits[split].waits.clear();
    expect_error(ErrorCode::backend, "it needs a wait", [&] { verify(plan); });
  }
  AsyncOptions hiding = accepting("hiding", {"silu"});
  hiding.hides_local = true;
  AsyncDevice hides(hiding);
  Plan plan = sound;  // as if the host did not see it
  for (Slot& slot : plan.slots) slot.device = slot.device == &device ? &hides : slot.device;
  for (Device*& placed : plan.placed.placement) placed = placed == &device ? &hides : placed;
  for (ArenaReport& arena : plan.arenas) {
    arena.device = arena.device == &device ? &hides : arena.device;
  }
  plan.splits[1].device = &hides;
  expect_error(ErrorCode::backend, "on the wrong device", [&] { verify(plan); });
}

TEST(SharedMemory, LaterWorkOfTheDeviceLeavesAloneWhatTheCpuReads) {
  AsyncOptions slow = accepting("async", {"silu", "tanh"});
  AsyncDevice device(slow);
  GraphBuilder builder;
  const Array x = builder.input("x", f32({64}));
  Array there = silu(x), sum = x;
  for (int i = 0; i < 6; ++i) {  // the CPU reads each; the device never waits for it
    sum = sum + there;
    there = tanh(silu(there));
  }
  builder.output("y", sum + there);
  const Plan plan = plan_of(builder.build(), {&device});
  EXPECT_EQ(count_copies(plan), 0u);
  verify(plan);
  std::mt19937 random(9);
  const NamedBytes bound{{"x", bytes_of(random_floats(random, 64))}};
  expect_same(run_plan(plan, bound, 3), interpret(plan.placed.graph, bound, 3), "shared");
}

TEST_P(MultiDevice, OneDeviceOneSplitNoCopies) {
  AsyncDevice device(options("async", {"silu", "add", "multiply"}));
  const auto executable = compiled(silu_graph(), {&device});
  EXPECT_EQ(executable->plan().splits.size(), 1u);
  EXPECT_EQ(executable->plan().splits[0].device, &device);
  EXPECT_TRUE(executable->plan().splits[0].waits.empty());
  EXPECT_EQ(count_slots(executable->plan(), SlotKind::staging), 0u);
  std::mt19937 random(1);
  const auto x = random_floats(random, 64);
  executable->run({given("x", x, {64})});
  expect_silu(*executable, x);
}

TEST_P(MultiDevice, OneValueFeedsTwoDevices) {
  AsyncDevice one(options("one", {"silu"})), two(options("two", {"tanh"}));
  GraphBuilder builder;
  const Array x = builder.input("x", f32({32})) * 2.0f;
  builder.output("y", silu(x) + tanh(x));
  const auto executable = compiled(builder.build(), {&one, &two});
  std::set<Device*> destinations;
  ValueId shared{~0u, 0};
  for (const Slot& slot : executable->plan().slots) {
    if (slot.kind != SlotKind::staging || slot.device == &cpu_device()) continue;
    destinations.insert(slot.device);
    if (shared.node != ~0u) {
      EXPECT_EQ(slot.value, shared);
    }
    shared = *slot.value;
  }
  EXPECT_EQ(destinations, (std::set<Device*>{&one, &two}));
  std::mt19937 random(2);
  const auto x_values = random_floats(random, 32);
  executable->run({given("x", x_values, {32})});
  const auto y = executable->output("y").to_vector<float>();
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(y[i], silu_of(2 * x_values[i]) + std::tanh(2 * x_values[i]), 1e-5);
  }
}

TEST_P(MultiDevice, StagingIsReusedByLaterSplitsOfTheDevice) {
  AsyncDevice device(options("async", {"silu", "tanh"}));
  GraphBuilder builder;
  const Array x = builder.input("x", f32({32})) * 2.0f;
  const Array a = silu(x) + 1.0f;                     // there and back
  builder.output("y", tanh(x) * a + silu(a) * 0.5f);  // x is there already
  const auto executable = compiled(builder.build(), {&device});
  const Plan& plan = executable->plan();
  std::map<std::pair<ValueId, Device*>, int> staged;
  for (const Split& split : plan.splits) {
    for (const PlannedStep& step : split.steps) {
      if (const auto* copy = std::get_if<PlannedCopy>(&step))
        ++staged[{copy->value, plan.slots[copy->to.slot].device}];
    }
  }
  for (const auto& [key, copies] : staged) EXPECT_EQ(copies, 1);
  std::mt19937 random(3);
  const auto values = random_floats(random, 32);
  executable->run({given("x", values, {32})});
  const auto y = executable->output("y").to_vector<float>();
  for (std::size_t i = 0; i < 32; ++i) {
    const float x2 = 2 * values[i], a_value = silu_of(x2) + 1;
    EXPECT_NEAR(y[i], std::tanh(x2) * a_value + silu_of(a_value) * 0.5f, 1e-5);
  }
}

TEST_P(MultiDevice, ManyRunsNeverReadAStaleCopy) {
  AsyncOptions slow = options("async", {"silu"});
  slow.delay = 500us;
  AsyncDevice device(slow);
  const auto executable = compiled(silu_graph(), {&device});
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    const auto x = random_floats(random, 64);
    executable->run({given("x", x, {64})});
    expect_silu(*executable, x);
  }
  EXPECT_EQ(device.kernels(), 60u);
}

TEST_P(MultiDevice, SubmitReturnsBeforeTheWorkIsDone) {
  AsyncOptions slow = options("async", {"silu", "multiply", "add"});
  slow.delay = 50ms;
  AsyncDevice device(slow);
  const auto executable = compiled(silu_graph(), {&device});
  std::mt19937 random(5);
  auto x = random_floats(random, 64);
  const auto kept = x;
  const NamedTensor input = given("x", x, {64});
  const Ref<Completion> end = executable->submit({&input, 1});
  std::fill(x.begin(), x.end(), 1e30f);  // the inputs' memory is not needed any more
  EXPECT_FALSE(end->done());
  end->wait();
  EXPECT_TRUE(end->done());
  expect_silu(*executable, kept);
}

TEST_P(MultiDevice, APinnedGraphThatItsDeviceCannotRun) {
  AsyncDevice device(options("async", {"silu"}));
  CompileOptions pinned;
  pinned.devices = {&device};
  pinned.pin = &device;
  expect_error(ErrorCode::unsupported, "add", [&] { Executable::compile(silu_graph(), pinned); });
}

// ---- A fed input and a state read from afar

TEST_P(MultiDevice, AFedInputIsReadOnTwoDevices) {
  AsyncDevice device(options("async", {"silu"}));
  GraphBuilder builder;
  const Array x = builder.input("x", f32({8}));
  const Array y = silu(x) + x;
  builder.output("y", y);
  builder.feed(x, y, FeedKind::whole);
  const auto executable = compiled(builder.build(), {&device});
  std::vector<float> expected(8, 0.25f);
  executable->state("x")->seed(Array(expected, {8}));
  for (int i = 0; i < 4; ++i) {
    executable->run({});
    for (float& e : expected) e += silu_of(e);
    const auto y_values = executable->output("y").to_vector<float>();
    for (std::size_t j = 0; j < 8; ++j) EXPECT_NEAR(y_values[j], expected[j], 1e-4);
  }
}

TEST_P(MultiDevice, AStateReadFromAfarAndHandedOut) {
  AsyncDevice device(options("async", {"silu"}));
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 8})), rows = builder.input("rows", i32({2}));
  const Array before = builder.state("s", f32({4, 8}));
  const Array old = silu(before);
  const Array after = write_rows(before, x, rows);
  builder.output("old", old);
  builder.output("new", silu(after));
  builder.output("state", after);
  builder.update("s", after);
  const Graph graph = builder.build();
  std::mt19937 random(6);
  NamedBytes bound{{"x", bytes_of(random_floats(random, 16))},
                   {"rows", bytes_of(std::vector<std::int32_t>{3, 1})},
                   {"s", bytes_of(random_floats(random, 32))}};
  const Plan plan = plan_of(graph, {&device});
  verify(plan);
  expect_same(run_plan(plan, bound, 3), interpret(graph, bound, 3), "state from afar");
}

TEST_P(MultiDevice, RowsWrittenIntoWhatAKernelMade) {
  AsyncDevice device(options("async", {"silu", "tanh"}));
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 8})), rows = builder.input("rows", i32({2}));
  const Array base = builder.input("base", f32({4, 8})) * 2.0f;
  const Array seen = silu(base);  // carried away before the write
  const Array written = write_rows(base, x, rows);
  const Array on_device = on(device, [&] { return tanh(written); });
  const Array made_there = silu(on_device);  // made on the device, written on the CPU
  const Array second = write_rows(made_there, seen * 1.0f, builder.input("more", i32({4})));
  builder.output("a", seen);
  builder.output("b", written);
  builder.output("c", tanh(second));
  builder.output("d", on_device);
  const Graph graph = builder.build();
  std::mt19937 random(7);
  NamedBytes bound{{"x", bytes_of(random_floats(random, 16))},
                   {"rows", bytes_of(std::vector<std::int32_t>{3, 1})},
                   {"more", bytes_of(std::vector<std::int32_t>{3, -1, 0, 2})},
                   {"base", bytes_of(random_floats(random, 32))}};
  const Plan plan = plan_of(graph, {&device});
  verify(plan);
  expect_same(run_plan(plan, bound, 2), interpret(graph, bound, 2), "written intermediates");
}

}  // namespace
}  // namespace heddle::test
