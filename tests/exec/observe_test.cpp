// Runs that somebody watches: the same results, every value, sound times; and whoever watches
// badly.
#include <atomic>
#include <numeric>
#include <thread>

#include "observe_support.h"
#include "pipeline.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Observed : public Pipeline {};

TEST_F(Observed, EveryValueIsWhatInterpretingGives) {
  const auto executable = make();
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(seen);
  expect_run(*executable, 0);
  expect_values(executable->plan(), *seen, bound_);
  EXPECT_EQ(seen->by_name.at("x").bytes, bytes_of(x_));
  EXPECT_EQ(seen->by_name.at("rows").bytes, bytes_of(rows_));
  expect_run(*executable, 1);
  EXPECT_FALSE(scope.error());
  EXPECT_THAT(seen->errors, testing::ElementsAre("", ""));
}

TEST_F(Observed, RunsThatNobodyWatchesComeBetween) {
  const auto executable = make();
  expect_run(*executable, 0);
  const auto seen = std::make_shared<Collector>();
  {
    const ObserveScope scope(seen);
    expect_run(*executable, 1);
  }
  reset(*executable);
  expect_run(*executable, 0);
  EXPECT_EQ(seen->runs.size(), 1u);
}

TEST_F(Observed, TimesAreInOrderAndWithinTheRun) {
  const auto executable = make();
  const auto seen = std::make_shared<Collector>();
  const ObservedTime before = std::chrono::steady_clock::now();
  {
    const ObserveScope scope(seen);
    run(*executable);
    run(*executable);
  }
  const ObservedTime after = std::chrono::steady_clock::now();
  ASSERT_EQ(seen->runs.size(), 2u);
  ObservedTime last = before;
  std::size_t r = 0;
  for (const Collector::Record& record : seen->records) {
    if (record.run != seen->runs[r].id) {
      ASSERT_LE(last, seen->ends[r++]);
      ASSERT_LE(seen->ends[r - 1], seen->runs[r].begin);
      last = seen->runs[r].begin;
    }
    ASSERT_LE(last, record.begin);
    ASSERT_LE(record.begin, record.encoded);
    ASSERT_LE(record.encoded, record.end);
    last = record.end;
  }
  EXPECT_LE(last, seen->ends[1]);
  EXPECT_LE(seen->ends[1], after);
  EXPECT_LT(seen->runs[0].id, seen->runs[1].id);
}

TEST_F(Observed, RandomGraphsOverThreeDevices) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    AsyncOptions hidden;
    hidden.name = "hidden";
    hidden.hides_local = true;
    hidden.shuffle = seed;
    hidden.delay = std::chrono::microseconds(0);
    AsyncDevice other(hidden);
    AsyncDevice shared;
    const std::vector<Device*> devices{&shared, &other, &cpu_device()};
    const RandomGraph random = random_graph(seed, devices, 40);
    CompileOptions options;
    options.devices = devices;
    options.strict_pins = false;
    auto parameters = make_ref<Parameters>();
    for (const GraphNode& node : random.graph.nodes) {
      if (const auto* parameter = std::get_if<Parameter>(&node.op)) {
        parameters->set(parameter->name,
                        Array::from_bytes(parameter->spec, random.bound.at(parameter->name)));
      }
    }
    const auto executable = Executable::compile(random.graph, options, parameters);
    std::vector<NamedTensor> inputs;
    for (const GraphNode& node : random.graph.nodes) {
      if (const auto* input = std::get_if<Input>(&node.op)) {
        inputs.push_back({input->name, {input->spec, random.bound.at(input->name)}});
      } else if (const auto* state = std::get_if<StateRef>(&node.op);
                 state && std::ranges::find(executable->plan().slots, state->name, &Slot::name) !=
                              executable->plan().slots.end()) {
        executable->state(state->name)
            ->seed(Array::from_bytes(state->spec, random.bound.at(state->name)));
      }
    }
    const auto seen = std::make_shared<Collector>();
    const ObserveScope scope(seen);
    executable->run(inputs);
    ASSERT_FALSE(scope.error());
    expect_values(executable->plan(), *seen, random.bound);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Observed, OnlyRowsThatCountAreShown) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({8, 32}), "n");
  const Array w = builder.parameter("w", f32({32, 32}));
  builder.output("y", tanh(linear(x, w)));
  const auto executable = compiled(builder.build(), {}, parameters_);
  std::mt19937 random(3);
  const std::vector<float> values = random_floats(random, 8 * 32);
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(seen);
  for (const std::int32_t n : {0, 1, 5, 8}) {
    seen->records.clear();
    executable->run({given("x", values, {8, 32}), {"n", HostTensor(n)}});
    for (const char* name : {"x", "w/linear", "w/tanh"}) {
      EXPECT_EQ(seen->by_name.at(name).spec.shape, (Shape{n, 32})) << name;
      EXPECT_EQ(seen->by_name.at(name).bytes.size(), static_cast<std::size_t>(n) * 32 * 4) << name;
    }
    const auto product = std::ranges::find(seen->records, "w/linear", &Collector::Record::name);
    EXPECT_EQ(product->operations, 2.0 * n * 32 * 32);
    EXPECT_EQ(product->bytes, 4.0 * (2.0 * n * 32 + 32 * 32));
  }
}

TEST_F(Observed, NamesAreTheSameOnEveryDevice) {
  const auto names_on = [&](Device* device) {
    std::vector<Device*> devices;
    if (device) devices.push_back(device);
    const auto executable = compiled(graph_, devices, parameters_);
    const auto seen = std::make_shared<Collector>();
    const ObserveScope scope(seen);
    run(*executable);
    std::set<std::string> names;
    for (const Collector::Record& record : seen->records) {
      if (record.op != "copy") names.insert(record.name);
    }
    return names;
  };
  const std::set<std::string> expected{"x",
                                       "rows",
                                       "x/add",
                                       "x/tanh",
                                       "w/linear",
                                       "w/tanh",
                                       "here/write_rows",
                                       "here/gather_rows",
                                       "here/silu",
                                       "there/write_rows",
                                       "w/silu",
                                       "w/tanh#2",
                                       "w/add",
                                       "fed/feed"};
  EXPECT_EQ(names_on(nullptr), expected);
  EXPECT_EQ(names_on(&device_), expected);
}

TEST_F(Observed, PlansSayWhatFlowsWhere) {
  const auto executable = make();
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(seen);
  run(*executable);
  const ObservedPlan& plan = *seen->runs[0].plan;
  EXPECT_EQ(plan.splits.size(), executable->plan().splits.size() + executable->plan().feeds.size());
  const auto index = [&](std::string_view name) {
    const auto found = std::ranges::find(plan.nodes, name, &ObservedNode::name);
    EXPECT_NE(found, plan.nodes.end()) << name;
    return static_cast<std::uint32_t>(found - plan.nodes.begin());
  };
  const ObservedNode& product = plan.nodes[index("w/linear")];
  EXPECT_EQ(product.device, "async");
  ASSERT_EQ(product.inputs.size(), 2u);
  const ObservedNode& carried = plan.nodes[product.inputs[0].node];
  EXPECT_EQ(carried.kind, ObservedNode::Kind::copy);
  EXPECT_EQ(carried.inputs[0].node, index("x/tanh"));
  EXPECT_EQ(product.inputs[1].node, index("w"));  // though it is packed
  EXPECT_EQ(plan.nodes[index("w")].kind, ObservedNode::Kind::parameter);
  EXPECT_EQ(plan.nodes[index("here")].kind, ObservedNode::Kind::state);
  EXPECT_TRUE(plan.nodes[index("here/write_rows")].writes_state);
}

// ---- Whoever watches badly

class Thrower final : public Observer {
 public:
  enum class At { begin, wants, node, end } at;
  std::atomic<int> calls{0};
  explicit Thrower(At where) : at(where) {}

  void run_began(const ObservedRun&) override { call(At::begin); }
  bool wants(const ObservedRun&, const ObservedNode&, std::uint32_t) override {
    call(At::wants);
    return true;
  }
  void node_ran(const ObservedRun&, const ObservedRecord&) override { call(At::node); }
  void run_ended(const ObservedRun&, ObservedTime, const Error*) override { call(At::end); }

 private:
  void call(At now) {
    ++calls;
    if (now == at) throw std::runtime_error("the disk is full");
  }
};

TEST_F(Observed, AnObserverThatThrowsHarmsOnlyItself) {
  using At = Thrower::At;
  for (const At at : {At::begin, At::wants, At::node, At::end}) {
    const auto executable = make();
    const auto bad = std::make_shared<Thrower>(at);
    const auto good = std::make_shared<Collector>();
    const ObserveScope bad_scope(bad), good_scope(good);
    expect_run(*executable, 0);
    const int calls = bad->calls;
    expect_run(*executable, 1);
    EXPECT_EQ(bad->calls, calls) << "it is told nothing more";
    ASSERT_TRUE(bad_scope.error());
    EXPECT_THAT(bad_scope.error()->what(), HasSubstr("the disk is full"));
    EXPECT_EQ(bad_scope.error()->code(), ErrorCode::backend);
    EXPECT_FALSE(good_scope.error());
    EXPECT_EQ(good->ends.size(), 2u);
  }
}

TEST_F(Observed, WhatAnObserverRunsGoesUnobserved) {
  class Runs final : public Observer {
   public:
    explicit Runs(std::shared_ptr<Executable> e) : other(std::move(e)) {}
    std::shared_ptr<Executable> other;
    int runs = 0;
    float sum = 0;
    void run_began(const ObservedRun&) override {
      ++runs;
      other->run({given("x", std::vector<float>{1, 2}, {2})});
      sum += (other->output("y") + 1.0f).to_vector<float>()[1];
    }
  };
  GraphBuilder builder;
  builder.output("y", builder.input("x", f32({2})) * 2.0f);
  const auto observer = std::make_shared<Runs>(compiled(builder.build()));
  const ObserveScope scope(observer);
  expect_run(*make(), 0);
  EXPECT_EQ(observer->runs, 1);
  EXPECT_EQ(observer->sum, 5);
  EXPECT_FALSE(scope.error());
}

TEST_F(Observed, AScopeWithoutAnObserverIsRefused) {
  expect_error(ErrorCode::invalid_argument, "without an observer",
               [] { ObserveScope scope(nullptr); });
}

// ---- Threads

TEST_F(Observed, AThreadsScopeIsItsOwnAndTheProcesssIsEverybodys) {
  const auto mine = std::make_shared<Collector>(), all = std::make_shared<Collector>();
  {
    const ObserveScope own(mine), process(all, ObserveScope::Of::process);
    std::thread other([&] { expect_run(*compiled(graph_, {}, parameters_), 0); });
    other.join();
    expect_run(*make(), 0);
  }
  EXPECT_EQ(mine->runs.size(), 1u);
  EXPECT_EQ(all->runs.size(), 2u);
}

TEST_F(Observed, ManyThreadsRunWhileOthersComeToWatch) {
  const auto executable = compiled(graph_, {&device_}, parameters_);
  std::atomic<bool> stop{false};
  std::vector<std::thread> runners;
  for (int t = 0; t < 3; ++t) {
    runners.emplace_back([&] {
      const auto clone = executable->clone();
      for (int i = 0; i < 10 || !stop; ++i) {
        reset(*clone);
        expect_run(*clone, 0);
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    const auto seen = std::make_shared<Collector>();
    {
      const ObserveScope scope(seen, ObserveScope::Of::process);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_FALSE(scope.error());
    }
    const std::size_t records = seen->records.size();
    std::this_thread::yield();
    EXPECT_EQ(seen->records.size(), records) << "told after its scope ended";
  }
  stop = true;
  for (std::thread& runner : runners) runner.join();
}

// ---- Lazily

TEST(ObservedLazily, EveryOpIsTold) {
  const auto seen = std::make_shared<Collector>();
  std::vector<float> result;
  {
    const ObserveScope scope(seen);
    const Array x(std::vector<float>{1, -2, 3, -4}, {2, 2});
    const Array y = transpose(abs(x)) + 1.0f;
    result = (y * abs(y)).to_vector<float>();
    EXPECT_FALSE(scope.error());
  }
  EXPECT_THAT(result, testing::ElementsAre(4, 16, 9, 25));
  ASSERT_EQ(seen->runs.size(), 1u);
  EXPECT_EQ(seen->runs[0].plan, nullptr);
  EXPECT_THAT(seen->errors, testing::ElementsAre(""));
  EXPECT_EQ(values_of<float>(seen->by_name.at("abs").bytes), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values_of<float>(seen->by_name.at("add").bytes), (std::vector<float>{2, 4, 3, 5}));
  EXPECT_EQ(values_of<float>(seen->by_name.at("multiply").bytes), result);
  EXPECT_TRUE(seen->by_name.contains("abs#2"));
  for (const Collector::Record& record : seen->records) EXPECT_EQ(record.device, "cpu");
}

TEST(ObservedLazily, OnADeviceThatHidesItsMemory) {
  AsyncOptions options;
  options.hides_local = true;
  AsyncDevice device(options);
  std::mt19937 random(5);
  const std::vector<float> values = random_floats(random, 64);
  const auto compute = [&] {
    return on(device, [&] {
      const Array x(values, {8, 8});
      return softmax(matmul(tanh(x), x) * 2.0f, -1);
    });
  };
  const std::vector<float> expected = compute().to_vector<float>();
  const auto seen = std::make_shared<Collector>();
  const ObserveScope scope(seen);
  EXPECT_EQ(compute().to_vector<float>(), expected);
  EXPECT_EQ(values_of<float>(seen->by_name.at("softmax").bytes), expected);
  const std::vector<float> tanhs = values_of<float>(seen->by_name.at("tanh").bytes);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(tanhs[i], std::tanh(values[i]), 1e-6);
}

TEST(ObservedLazily, AtEachCallThatFailsTheErrorIsTheArraysAndTheRuns) {
  AsyncOptions options;
  options.hides_local = true;
  options.delay = std::chrono::microseconds(0);
  AsyncDevice device(options);
  const auto make = [&] {
    return on(device, [] { return silu(tanh(Array(std::vector<float>{1, 2, 3}, {3})) * 3.0f); });
  };
  const std::vector<float> expected = make().to_vector<float>();
  std::uint64_t n = 1;
  for (;; ++n) {
    const auto seen = std::make_shared<Collector>();
    const ObserveScope scope(seen);
    const Array y = make();
    device.fail_call(n);
    bool failed = false;
    try {
      EXPECT_EQ(y.to_vector<float>(), expected);
    } catch (const Error& error) {
      failed = true;
      EXPECT_THAT(error.what(), HasSubstr("injected fault"));
    }
    if (!device.end_fault()) break;
    // Reading a value for the observer may be what failed: then its error is the observer's.
    EXPECT_TRUE(failed || scope.error()) << "call " << n;
    EXPECT_EQ(make().to_vector<float>(), expected);
  }
  EXPECT_GT(n, 10u);
}

}  // namespace
}  // namespace heddle::test
