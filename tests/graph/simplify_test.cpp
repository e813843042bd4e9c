// What simplify leaves out, and what it must not.
#include "graph/simplify.h"

#include "graph_test_support.h"
#include "support/interpret.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Small {
  GraphBuilder builder;
  Array x = builder.input("x", f32({2, 3}));
  Array y = builder.input("y", f32({2, 3}));
  Array i = builder.input("i", {DType::i8, {3}});

  Graph of(const Array& value) {
    builder.output("out", value);
    return simplify(builder.build());
  }
};

std::size_t count(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes, [&](const GraphNode& node) { return name(node.op) == op; }));
}

TEST(Simplify, EqualNodesAreOne) {
  Small s;
  EXPECT_THAT(kernels_of(s.of(exp(s.x) * exp(s.x))), ElementsAre("exp", "multiply"));
}

TEST(Simplify, DifferentParametersInputsAndOrdersAreNot) {
  Small s;
  const Graph graph = s.of(sum(s.x, 0) + sum(s.y, 0) + sum(s.x - s.y, 0) + sum(s.y - s.x, 0));
  EXPECT_EQ(count(graph, "reduce"), 4u);
  EXPECT_EQ(count(graph, "subtract"), 2u);
}

TEST(Simplify, EqualConstantsAreOne) {
  Small s;
  EXPECT_EQ(count(s.of(s.x * Array(2.5f) + s.y * Array(2.5f)), "constant"), 1u);
}

TEST(Simplify, WhatNothingNeedsGoesInputsExcepted) {
  Small s;
  exp(s.y);
  const Graph graph = s.of(s.x);
  EXPECT_THAT(kernels_of(graph), IsEmpty());
  EXPECT_EQ(count(graph, "input"), 3u);
}

TEST(Simplify, ConstantsAreComputed) {
  Small s;
  const Array a({1.0f, 2.0f, 3.0f});
  const Graph graph = s.of(s.x + exp(a) * sum(arange(4.0)));
  EXPECT_THAT(kernels_of(graph), ElementsAre("add"));
  const auto out = values_of<float>(interpret(graph,
                                              {{"x", bytes_of<float>(std::vector<float>(6))},
                                               {"y", bytes_of<float>(std::vector<float>(6))},
                                               {"i", bytes_of<std::int8_t>({1, 2, 3})}},
                                              Writes::to_copies)
                                        .outputs.at("out"));
  EXPECT_FLOAT_EQ(out[0], 6 * std::exp(1.0f));
}

TEST(Simplify, ALargeConstantIsLeftToTheRun) {
  Small s;
  EXPECT_THAT(kernels_of(s.of(exp(zeros({100000})))), ElementsAre("exp"));
}

TEST(Simplify, CastsThatLoseNothingJoin) {
  Small s;
  EXPECT_THAT(kernels_of(s.of(astype(astype(s.i, DType::i32), DType::i8) + s.i)),
              ElementsAre("add"));
  Small t;
  const Graph graph = t.of(astype(astype(t.i, DType::f16), DType::f64));
  EXPECT_THAT(kernels_of(graph), ElementsAre("cast"));
}

TEST(Simplify, CastsThatLoseSomethingStay) {
  Small s;
  EXPECT_EQ(count(s.of(astype(astype(s.x, DType::f16), DType::f32)), "cast"), 2u);
  Small t;
  EXPECT_EQ(count(t.of(astype(astype(t.i, DType::bool_), DType::i8)), "cast"), 2u);
  Small u;
  EXPECT_EQ(count(u.of(astype(astype(u.i, DType::u8), DType::i32)), "cast"), 2u);
}

TEST(Simplify, ViewsOfViewsJoin) {
  Small s;
  const Graph graph = s.of(transpose(transpose(reshape(reshape(s.x, {6}), {2, 3}))));
  EXPECT_EQ(graph.nodes.size(), 3u) << to_text(graph);
  Small t;
  const Graph turned = t.of(transpose(transpose(reshape(t.x, {1, 2, 3}), {1, 2, 0}), {2, 1, 0}));
  EXPECT_EQ(count(turned, "transpose"), 1u);
}

TEST(Simplify, ElementWiseOpsBroadcastByThemselves) {
  Small s;
  const Array row = s.builder.input("row", f32({3}));
  EXPECT_EQ(count(s.of(s.x * broadcast_to(row, {2, 3})), "broadcast"), 0u);
  Small t;
  const Array alone = t.builder.input("row", f32({3}));
  EXPECT_EQ(count(t.of(broadcast_to(alone, {2, 3}) * alone), "broadcast"), 1u);
}

TEST(Simplify, FactorsOfOneGo) {
  Small s;
  EXPECT_THAT(kernels_of(s.of((1 * s.x * Array(1.0f) - Array(0.0f)) / Array(1.0f))), IsEmpty());
}

TEST(Simplify, WhatWouldChangeABitStays) {
  Small s;
  // -0 + 0 is 0; x - (-0) too; 1 / x is no factor; and a factor may be what broadcasts.
  EXPECT_EQ(count(s.of(s.x + Array(0.0f)), "add"), 1u);
  Small t;
  EXPECT_EQ(count(t.of(t.x - Array(-0.0f)), "subtract"), 1u);
  Small u;
  EXPECT_EQ(count(u.of(Array(1.0f) / u.x), "divide"), 1u);
  Small v;
  EXPECT_EQ(count(v.of(sum(v.x) * ones({4})), "multiply"), 1u);
}

TEST(Simplify, APinnedNodeStaysWhereItWasOrdered) {
  Small s;
  const auto doubled = [&] {
    const DeviceScope scope(cpu_device());
    return s.x + s.x;
  };
  EXPECT_EQ(count(s.of(doubled() * (s.x + s.x)), "add"), 2u);
}

TEST(Simplify, WhatIsWrittenOverIsNobodyElses) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 3}));
  const Array rows = builder.input("rows", i32({2}));
  builder.output("written", write_rows(exp(x) * Array(1.0f), x, rows));
  builder.output("read", exp(x) * Array(1.0f));
  const Graph graph = simplify(builder.build());
  EXPECT_EQ(count(graph, "write_rows"), 1u);
}

TEST(Simplify, NothingLeftIsNothing) {
  EXPECT_TRUE(simplify(Graph()).nodes.empty());
}

}  // namespace
}  // namespace heddle::test
