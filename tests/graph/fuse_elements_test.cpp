// Which element-wise ops become one program.
#include "graph_test_support.h"
#include "heddle/device.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

struct Elements {
  GraphBuilder builder;
  Array x = builder.input("x", f32({2, 3}));
  Array y = builder.input("y", f32({2, 3}));
  Array row = builder.input("row", f32({3}));

  Graph fused() {
    const Graph graph = fuse(builder.build(), {.devices = {&cpu_device()}, .fuse_elements = true});
    validate(graph);
    return graph;
  }
  std::vector<std::string> kernels(const Array& output) {
    builder.output("out", output);
    return kernels_of(fused());
  }
};

std::string program_of(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (const auto* fused = std::get_if<Fused>(&node.op); fused && !node.dead)
      return to_string(*fused->program);
  }
  return "none";
}

TEST(FuseElements, AChainIsOneProgram) {
  Elements e;
  e.builder.output("out", exp(e.x * e.y + e.row) - e.x);
  const Graph graph = e.fused();
  EXPECT_THAT(kernels_of(graph), ElementsAre("fused"));
  EXPECT_EQ(program_of(graph),
            "v3 = multiply(v0, v1); v4 = add(v3, v2); v5 = exp(v4); v6 = subtract(v5, v0)");
}

TEST(FuseElements, OneOpStaysWhatItIs) {
  Elements e;
  EXPECT_THAT(e.kernels(exp(e.x)), ElementsAre("exp"));
}

TEST(FuseElements, WhatIsReadTwiceWithinIsOneStep) {
  Elements e;
  const Array shared = exp(e.x);
  e.builder.output("out", shared * shared + shared);
  const Graph graph = e.fused();
  EXPECT_THAT(kernels_of(graph), ElementsAre("fused"));
  EXPECT_EQ(program_of(graph), "v1 = exp(v0); v2 = multiply(v1, v1); v3 = add(v2, v1)");
}

TEST(FuseElements, WhatOthersReadStaysAValue) {
  Elements e;
  const Array shared = exp(e.x);
  e.builder.output("shared", shared);
  EXPECT_THAT(e.kernels(shared * e.y + e.y), ElementsAre("exp", "fused"));
}

TEST(FuseElements, AStepWithANumberIsRepeatedByEachReader) {
  Elements e;
  const Array shared = e.x * 2.0f;
  e.builder.output("one", exp(shared));
  e.builder.output("other", shared * e.y);
  const Graph graph = e.fused();
  EXPECT_THAT(kernels_of(graph), ElementsAre("fused", "fused"));
  EXPECT_EQ(program_of(graph), "v2 = multiply(v0, v1); v3 = exp(v2)");
}

TEST(FuseElements, WhatItIsMadeOfIsNot) {
  Elements e;
  const Array shared = (e.x + e.y) * 2.0f;
  e.builder.output("one", exp(shared));
  e.builder.output("other", shared - e.y);
  EXPECT_THAT(kernels_of(e.fused()), ElementsAre("add", "fused", "fused"));
}

TEST(FuseElements, ButNotWhereAnythingElseReadsItsResult) {
  Elements e;
  const Array reduced = e.x * 2.0f, seen = e.y * 2.0f;
  e.builder.output("sum", sum(reduced));
  e.builder.output("seen", seen);
  EXPECT_THAT(e.kernels(exp(reduced) + seen),
              testing::UnorderedElementsAre("multiply", "multiply", "reduce", "fused"));
}

TEST(FuseElements, ConditionsAndCastsJoin) {
  Elements e;
  EXPECT_THAT(e.kernels(where(e.x < e.y, astype(astype(e.x, DType::i32), DType::f32), e.y)),
              ElementsAre("fused"));
}

TEST(FuseElements, ACastToAHalfTypeRoundsAndSoStays) {
  Elements e;
  EXPECT_THAT(e.kernels(astype(astype(e.x + e.y, DType::f16), DType::f32) * 2.0f),
              ElementsAre("add", "cast", "fused"));
}

TEST(FuseElements, AnotherShapeIsAnotherProgram) {
  Elements e;
  EXPECT_THAT(e.kernels(exp(exp(e.row)) * e.x + e.y), ElementsAre("fused", "fused"));
}

TEST(FuseElements, SoIsAnotherPin) {
  Elements e;
  const Array inner = [&] {
    const DeviceScope scope(cpu_device());
    return exp(e.x);
  }();
  EXPECT_THAT(e.kernels(inner * e.y + e.y), ElementsAre("exp", "fused"));
}

TEST(FuseElements, NoMoreInputsThanPay) {
  Elements e;
  Array sum = e.x;
  for (int i = 0; i < 20; ++i) sum = sum + e.builder.input("i" + std::to_string(i), f32({2, 3}));
  const std::vector<std::string> kernels = e.kernels(sum);
  EXPECT_THAT(kernels, testing::Each("fused"));
  EXPECT_EQ(kernels.size(), 3u);
}

TEST(FuseElements, OtherOpsBreakAChain) {
  Elements e;
  EXPECT_THAT(e.kernels(exp(sum(exp(e.x) * e.y, 1, true)) * e.x + e.y),
              ElementsAre("fused", "reduce", "exp", "fused"));
}

}  // namespace
}  // namespace heddle::test
