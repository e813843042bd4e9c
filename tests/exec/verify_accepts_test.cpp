// The verifier and the planner agree on sound graphs, and runs of the plans give what the graph
// says.
#include "exec_test_support.h"

namespace heddle::test {
namespace {

TEST(VerifyAccepts, RandomGraphsOnTheCpu) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const RandomGraph random = random_graph(seed, {&cpu_device()}, 30);
    const Plan plan = plan_of(random.graph);
    ASSERT_NO_THROW(verify(plan)) << "seed " << seed;
    EXPECT_EQ(plan.splits.size(), 1u);
    expect_same(run_plan(plan, random.bound, 2), interpret(random.graph, random.bound, 2),
                "seed " + std::to_string(seed));
  }
}

TEST(VerifyAccepts, RandomGraphsOnTwoDevices) {
  AsyncOptions hiding, sharing;
  hiding.hides_local = true;
  AsyncDevice hides(hiding), shares(sharing);
  for (unsigned seed = 100; seed < 220; ++seed) {
    AsyncDevice& device = seed % 2 == 0 ? hides : shares;
    const RandomGraph random = random_graph(seed, {&cpu_device(), &device}, 30);
    const Plan plan = plan_of(random.graph, {&device});
    ASSERT_NO_THROW(verify(plan)) << "seed " << seed;
    expect_same(run_plan(plan, random.bound, 3), interpret(random.graph, random.bound, 3),
                "seed " + std::to_string(seed));
  }
}

TEST(VerifyAccepts, RandomGraphsOnThreeDevicesFused) {
  AsyncOptions one, two;
  one.name = "one", two.name = "two";
  one.packs = true;
  two.shuffle = 7;
  AsyncDevice first(one), second(two);
  for (unsigned seed = 200; seed < 240; ++seed) {
    const RandomGraph random = random_graph(seed, {&cpu_device(), &first, &second}, 40);
    const Plan plan = plan_of(random.graph, {&first, &second}, true);
    ASSERT_NO_THROW(verify(plan)) << "seed " << seed;
    expect_same(run_plan(plan, random.bound, 2), interpret(random.graph, random.bound, 2),
                "seed " + std::to_string(seed));
  }
}

TEST(VerifyAccepts, EmptyScalarAndPassedThroughValues) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({0, 8})), s = builder.input("s", f32({}));
  const Array w = builder.parameter("w", f32({2}));
  builder.output("empty", silu(x));
  builder.output("scalar", s + 1.0f);
  builder.output("input", s);
  builder.output("parameter", w);
  builder.output("constant", Array({1.0f, 2.0f}));
  const Graph graph = builder.build();
  EXPECT_NO_THROW(verify(plan_of(graph)));
}

TEST(VerifyAccepts, AGraphThatComputesNothing) {
  GraphBuilder builder;
  builder.output("x", builder.input("x", f32({3})));
  EXPECT_NO_THROW(verify(plan_of(builder.build())));
}

TEST(VerifyAccepts, ALargePlan) {
  AsyncDevice device;
  GraphBuilder builder;
  Array x = builder.input("x", f32({4, 64}));
  for (int i = 0; i < 4000; ++i) {
    Device& turn = i / 20 % 2 == 0 ? cpu_device() : static_cast<Device&>(device);
    x = on(turn, [&] { return tanh(softmax(x, -1)) + x; });
  }
  builder.output("y", x);
  const Plan plan = plan_of(builder.build(), {&device});
  EXPECT_EQ(plan.splits.size(), 200u);
  verify(plan);
}

}  // namespace
}  // namespace heddle::test
