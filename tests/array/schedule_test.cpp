// What can be evaluated, and when: trees, evaluation without waiting or later, tracers.
#include <list>
#include <map>
#include <optional>
#include <tuple>

#include "array/launch.h"
#include "array/tracer.h"
#include "array_test_support.h"
#include "heddle/graph.h"
#include "test_device.h"

namespace heddle::test {
namespace {

Array failing(std::int32_t row) {
  return take(Array({1.0f, 2.0f}), Array({row}));
}

// ---- Trees

struct Layer {
  Array weight, bias;
  auto leaves() const { return std::tie(weight, bias); }
};

struct Model {
  std::vector<Layer> layers;
  std::map<std::string, Array> extras;
  std::optional<Array> head;
  auto leaves() const { return std::tie(layers, extras, head); }
};

TEST(Tree, ReachesEveryArrayOfAnyNesting) {
  auto next = [n = 0.0f]() mutable { return exp(Array(n++)); };
  const Model model{{{next(), next()}, {next(), next()}}, {{"a", next()}, {"b", next()}}, next()};
  const std::tuple rest{next(), std::pair{next(), std::list{next(), next()}},
                        std::optional<Array>()};
  const std::vector<Array> leaves = leaves_of(model, rest);
  ASSERT_EQ(leaves.size(), 11u);
  eval(model, rest);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(leaves[i].is_available());
    EXPECT_FLOAT_EQ(leaves[i].item<float>(), std::exp(static_cast<float>(i)));
  }
}

TEST(Tree, EmptyOnesAreFine) {
  eval();
  eval(std::vector<Array>());
  async_eval(std::map<int, Array>(), std::optional<Array>());
  schedule(std::tuple<>()).eval();
}

TEST(Tree, TheFirstErrorInItsOrderIsThrown) {
  const std::map<std::string, Array> tree = {{"b", failing(7)}, {"a", failing(9)}};
  expect_invalid([&] { eval(exp(Array(0.0f)), tree); }, {"9"});
}

// ---- Without waiting

TEST(AsyncEval, DoesTheCpusWorkBeforeItReturns) {
  const Array x = exp(Array({0.0f, 1.0f}));
  async_eval(x);
  EXPECT_TRUE(x.is_available());
}

TEST(AsyncEval, ThrowsWhatIsKnown) {
  const Array fine = exp(Array(0.0f));
  expect_invalid([&] { async_eval(failing(9), fine, failing(7)); }, {"9"});
  EXPECT_TRUE(fine.is_available());
}

TEST(AsyncEval, ADevicesErrorAppearsAtTheFirstRead) {
  TestDevice device("later", {.later = true});
  std::atomic<bool> go{false};
  device.on_launch = [&] {
    go.wait(false);
    fail(ErrorCode::backend, "the test's fault");
  };
  const DeviceScope scope(device);
  const Array x = exp(Array({0.0f}));
  EXPECT_NO_THROW(async_eval(x));
  EXPECT_NO_THROW(x.check());  // not known yet
  EXPECT_FALSE(x.is_available());
  go = true;
  go.notify_all();
  expect_error([&] { x.eval(); }, ErrorCode::backend, {"the test's fault"});
  expect_error([&] { x.check(); }, ErrorCode::backend, {"the test's fault"});
  expect_error([&] { check(x, Array(1.0f)); }, ErrorCode::backend, {"the test's fault"});
}

TEST(Check, EvaluatesNothing) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array x = exp(Array({0.0f}));
  const Array bad = [] {
    const DeviceScope on_cpu(cpu_device());
    return failing(7) + 1.0f;
  }();
  EXPECT_NO_THROW(check(x, bad));
  EXPECT_EQ(device.launches, 0);
  EXPECT_THROW(eval(x, bad), Error);
  EXPECT_NO_THROW(x.check());
  expect_invalid([&] { check(x, bad); }, {"gather_rows", "7"});
}

// ---- Later

TEST(Schedule, RunsNothingUntilItIsStarted) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array x = exp(arange(4.0)), y = x + 1.0f;
  Scheduled scheduled = schedule(x, y);
  EXPECT_EQ(device.launches, 0);
  scheduled.eval();
  EXPECT_EQ(device.launches, 3);
  EXPECT_TRUE(x.is_available() && y.is_available());
  scheduled.eval();
  scheduled.async_eval();
  EXPECT_EQ(device.launches, 3);
}

TEST(Schedule, SkipsWhatWasEvaluatedMeanwhile) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array x = exp(arange(4.0)), y = x + 1.0f, z = y * 2.0f;
  Scheduled scheduled = schedule(z);
  y.eval();
  const int before = device.launches;
  scheduled.async_eval();
  EXPECT_EQ(device.launches, before + 1);
  EXPECT_FLOAT_EQ(z.to_vector<float>()[0], 4.0f);
}

TEST(Schedule, KeepsWhatItNeedsFromBeingWrittenOver) {
  Array x = arange(4096.0) + 1.0f;
  x.eval();
  Array later = negative(x);
  Scheduled scheduled = schedule(later);
  Array now = exp(x * 0.0f);
  x = Array(0.0f);
  const std::uint64_t before = eval_counts().donations;
  now.eval();  // x * 0 may not overwrite x, exp may overwrite that
  EXPECT_EQ(eval_counts().donations - before, 1u);
  scheduled.eval();
  EXPECT_FLOAT_EQ(later.to_vector<float>()[7], -8.0f);
}

TEST(Schedule, HoldsNodesThatNobodyElseHolds) {
  Array x = exp(arange(4096.0) * 0.0f);
  Scheduled scheduled = schedule(x + 1.0f);
  Array y = x + 2.0f;
  x = Array(0.0f);
  y.eval();  // what x was is scheduled, and must survive
  EXPECT_FLOAT_EQ(y.to_vector<float>()[9], 3.0f);
  EXPECT_NO_THROW(scheduled.eval());
}

TEST(Schedule, MayBeDroppedOrMoved) {
  const Array x = exp(Array(0.0f));
  { const Scheduled dropped = schedule(x); }
  EXPECT_FALSE(x.is_available());
  Scheduled first = schedule(x), second = std::move(first);
  second.eval();
  EXPECT_TRUE(x.is_available());
}

TEST(Schedule, ThrowsItsErrorsAtEachStart) {
  Scheduled scheduled = schedule(Array(1.0f), failing(9), failing(7));
  for (int i = 0; i < 2; ++i) expect_invalid([&] { scheduled.eval(); }, {"9"});
  expect_invalid([&] { scheduled.async_eval(); }, {"9"});
}

// ---- Order by decree

TEST(Depends, GivesItsInputsAfterItsDependencies) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  const Array first = exp(arange(4.0)), second = sin(arange(4.0));
  const Array x = arange(4.0);
  const std::vector<Array> both = depends({x, second}, {first});
  ASSERT_EQ(both.size(), 2u);
  both[0].eval();
  EXPECT_TRUE(first.is_available());
  EXPECT_FLOAT_EQ(both[0].to_vector<float>()[3], 3.0f);
  EXPECT_FLOAT_EQ(both[1].to_vector<float>()[1], std::sin(1.0f));
  expect_invalid([&] { depends({}, {x}); }, {"depends", "no inputs"});
}

TEST(Depends, FailsWithADependency) {
  const std::vector<Array> x = depends({Array(1.0f)}, {failing(9)});
  expect_invalid([&] { x[0].eval(); }, {"gather_rows", "9"});
}

TEST(Depends, LetsWhatCameBeforeGoFirst) {
  TestDevice device("counting");
  const DeviceScope scope(device);
  constexpr std::int64_t kBytes = 4096 * 4;
  Array total = zeros({1});
  for (int i = 0; i < 20; ++i) {
    // Without the order, twenty of these would lie side by side.
    const Array start = depends({Array(static_cast<float>(i))}, {total})[0];
    total = total + sum(concatenate({full({2048}, start), full({2048}, start)}), true);
  }
  const Array result = total;
  total = Array(0.0f);
  result.eval();
  EXPECT_FLOAT_EQ(result.item<float>(), 4096 * 190);
  EXPECT_LE(device.peak_bytes, kBytes + 2048);
}

TEST(Depends, DisappearsFromGraphs) {
  const std::vector<TensorSpec> specs = {{DType::f32, {2}}};
  const Graph graph = trace(
      [](const std::vector<Array>& in) {
        return std::vector<Array>{depends({exp(in[0])}, {sin(in[0])})[0] + 1.0f};
      },
      specs);
  for (const GraphNode& node : graph.nodes) EXPECT_NE(name(node.op), "depends");
  EXPECT_EQ(name(graph.node(graph.node(graph.outputs[0].value).inputs[0]).op), "exp");
}

// ---- Tracers

TEST(Tracer, EvaluatedNodesKeepTheirInputsWhileItIsOpen) {
  const Array x = arange(4096.0);
  Array y = x, z = x;
  {
    const TracerScope scope;
    y = exp(x * 0.0f);
    z = y + 1.0f;
    const std::uint64_t before = eval_counts().donations;
    z.eval();
    EXPECT_EQ(eval_counts().donations, before);  // all values are still to be seen
    EXPECT_EQ(z.node()->state(), Node::State::retained);
    EXPECT_EQ(y.node()->state(), Node::State::retained);
    int inputs = 0;
    EXPECT_TRUE(z.node()->visit_retained([&](const Array&) { ++inputs; }));
    EXPECT_EQ(inputs, 2);
    EXPECT_FLOAT_EQ(z.to_vector<float>()[5], 2.0f);
  }
  EXPECT_EQ(z.node()->state(), Node::State::done);
  EXPECT_EQ(y.node()->state(), Node::State::done);
  EXPECT_FLOAT_EQ(z.to_vector<float>()[5], 2.0f);
}

TEST(Tracer, WhatTheInnerKeptTheOuterTakesOver) {
  const Array x = exp(Array(1.0f));
  Array y = x, later = x;
  {
    const TracerScope outer;
    {
      const TracerScope inner;
      y = x + 1.0f;
      later = y * 2.0f;
      y.eval();
    }
    EXPECT_EQ(y.node()->state(), Node::State::retained);
    later.eval();  // made under the inner, evaluated after it
    EXPECT_EQ(later.node()->state(), Node::State::retained);
    EXPECT_EQ(x.node()->state(), Node::State::done) << "made under neither";
  }
  EXPECT_EQ(y.node()->state(), Node::State::done);
  EXPECT_EQ(later.node()->state(), Node::State::done);
}

TEST(Tracer, WhatATracedFunctionLookedAtStaysInItsGraph) {
  const Array x = Array({1.0f, 2.0f});
  const std::vector<TensorSpec> specs = {{DType::f32, {2}}};
  const Graph graph = trace(
      [&](const std::vector<Array>& in) {
        const Array scale = sum(exp(x));
        if (scale.item<float>() < 0) return std::vector<Array>{in[0]};
        return std::vector<Array>{in[0] * scale};
      },
      specs);
  int exps = 0;
  for (const GraphNode& node : graph.nodes) exps += name(node.op) == "exp";
  EXPECT_EQ(exps, 1);
  EXPECT_NO_THROW(validate(graph));
}

TEST(Tracer, AChainOfAMillionTracedNodesComesApart) {
  const Array one(1);
  Array sum(0);
  {
    const TracerScope scope;
    for (int i = 0; i < 1'000'000; ++i) sum = sum + one;
    EXPECT_EQ(sum.item<int>(), 1'000'000);
  }
  EXPECT_EQ(sum.item<int>(), 1'000'000);
}

}  // namespace
}  // namespace heddle::test
