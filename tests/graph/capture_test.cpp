#include <set>

#include "graph/capture.h"
#include "graph_test_support.h"
#include "heddle/device.h"
#include "support/interpret.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

NodeId find(const Graph& graph, std::string_view op, int which = 0) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (name(graph.nodes[id].op) == op && which-- == 0) return id;
  }
  return static_cast<NodeId>(-1);
}

TEST(Capture, KeepsTheOrderInWhichArraysWereMade) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 3}));
  const Array first = exp(x);
  const Array second = sin(x);
  const Array third = second * first;  // reads them in the other order
  builder.output("y", third);
  const Graph graph = builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("exp", "sin", "multiply"));
  EXPECT_EQ(graph.nodes[3].inputs, (std::vector<ValueId>{{2, 0}, {1, 0}}));
  EXPECT_EQ(graph.spec(graph.outputs[0].value), f32({2, 3}));
}

TEST(Capture, LeavesOutWhatNobodyNeeds) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2}));
  const Array unused = exp(x);
  builder.parameter("p", f32({2}));
  builder.output("y", sin(x));
  const Graph graph = builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("sin"));
  EXPECT_EQ(find(graph, "parameter"), static_cast<NodeId>(-1));
}

TEST(Capture, KeepsUnusedInputsAndStates) {
  GraphBuilder builder;
  builder.input("unused", f32({2}));
  builder.state("kept", f32({2}));
  const Graph graph = mark_dead(builder.build());
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_FALSE(graph.nodes[0].dead);
  EXPECT_FALSE(graph.nodes[1].dead);
}

TEST(Capture, OfNothingIsEmpty) {
  const Graph graph = GraphBuilder().build();
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(to_text(graph), "");
  const PlacedGraph placed = prepare_graph(graph, {});
  EXPECT_TRUE(placed.graph.nodes.empty());
}

TEST(Capture, ValuesBecomeConstantsOverTheSameMemory) {
  const Array known = Array({1.0f, 2.0f, 3.0f}) + Array(1.0f);
  known.eval();
  GraphBuilder builder;
  const Array x = builder.input("x", f32({3}));
  builder.output("y", x * known);
  builder.output("z", known);
  const Graph graph = builder.build();
  const NodeId id = find(graph, "constant");
  ASSERT_NE(id, static_cast<NodeId>(-1));
  EXPECT_EQ(find(graph, "constant", 1), static_cast<NodeId>(-1)) << "one constant for one value";
  EXPECT_EQ(std::get<Constant>(graph.nodes[id].op).data.get(), known.view().buffer.get());
  const auto result = interpret(graph, {{"x", bytes_of<float>({10, 100, 1000})}});
  EXPECT_THAT(values_of<float>(result.outputs.at("y")), ElementsAre(20, 300, 4000));
  EXPECT_THAT(values_of<float>(result.outputs.at("z")), ElementsAre(2, 3, 4));
}

TEST(Capture, StridedValuesBecomeContiguousConstants) {
  const Array matrix(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Array turned = transpose(matrix);
  const Array tail = slice(matrix, {1, 0}, {2, 3});
  eval(turned, tail);
  GraphBuilder builder;
  builder.output("turned", turned);
  builder.output("tail", tail);
  const Graph graph = builder.build();
  const auto result = interpret(graph, {});
  EXPECT_THAT(values_of<float>(result.outputs.at("turned")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(values_of<float>(result.outputs.at("tail")), ElementsAre(4, 5, 6));
}

TEST(Capture, PinsFollowTheScope) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2}));
  const Array free = exp(x);
  const Array pinned = [&] {
    const DeviceScope scope(cpu_device());
    return sin(free);
  }();
  builder.output("y", pinned);
  const Graph graph = builder.build();
  EXPECT_EQ(graph.nodes[find(graph, "exp")].pin, nullptr);
  EXPECT_EQ(graph.nodes[find(graph, "sin")].pin, &cpu_device());
}

TEST(Capture, OpsOfSeveralOutputsStayOneNode) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 4}));
  const std::vector<Array> both =
      linear(x, {builder.parameter("a", f32({3, 4})), builder.parameter("b", f32({5, 4}))});
  builder.output("second", both[1]);
  builder.output("first", both[0]);
  const Graph graph = builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("linear"));
  EXPECT_EQ(graph.outputs[0].value.output, 1u);
  EXPECT_EQ(graph.spec(graph.outputs[0].value), f32({2, 5}));
  EXPECT_EQ(graph.spec(graph.outputs[1].value), f32({2, 3}));
}

TEST(Capture, AFailedNodeThrowsItsError) {
  const Array table({1.0f, 2.0f});
  const Array bad = take(table, Array({7}), 0);
  EXPECT_THROW(bad.eval(), Error);
  GraphBuilder builder;
  builder.output("y", exp(bad));
  EXPECT_THROW(builder.build(), Error);
}

TEST(Trace, NamesInputsAndOutputsByPosition) {
  const std::vector<TensorSpec> specs{f32({2}), f32({2}), i32({})};
  const Graph graph = trace(
      [](const std::vector<Array>& in) {
        return std::vector<Array>{in[1] - in[0], in[0]};
      },
      specs);
  const auto result = interpret(
      graph,
      {{"0", bytes_of<float>({1, 2})}, {"1", bytes_of<float>({5, 7})}, {"2", bytes_of<int>({0})}});
  EXPECT_THAT(values_of<float>(result.outputs.at("0")), ElementsAre(4, 5));
  EXPECT_THAT(values_of<float>(result.outputs.at("1")), ElementsAre(1, 2));
}

// ---- Names

TEST(Builder, RefusesNamesTwice) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2}));
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"\"x\""}, [&] { builder.parameter("x", f32({2})); });
  expect_error(invalid, {"\"x\""}, [&] { builder.state("x", f32({2})); });
  expect_error(invalid, {"no name"}, [&] { builder.input("", f32({2})); });
  builder.output("y", x);
  expect_error(invalid, {"\"y\""}, [&] { builder.output("y", x); });
  expect_error(invalid, {"no name"}, [&] { builder.output("", x); });
}

TEST(Builder, MakesExtents) {
  GraphBuilder builder;
  builder.output("y", exp(builder.input("x", f32({8, 2}), "n")));
  builder.input("z", f32({8, 2}), "n");
  const Graph graph = builder.build();
  std::set<std::string> inputs;
  for (const GraphNode& node : graph.nodes) {
    if (const auto* input = std::get_if<Input>(&node.op)) inputs.insert(input->name);
  }
  EXPECT_EQ(inputs, (std::set<std::string>{"n", "x", "z"}));
  builder.parameter("p", i32({}));
  expect_error(ErrorCode::invalid_argument, {"\"p\""}, [&] {
    builder.input("w", f32({8, 2}), "p");
  });
}

// ---- States

struct Cache {
  GraphBuilder builder;
  Array state = builder.state("cache", f32({4, 2}));
  Array x = builder.input("x", f32({1, 2}));
  Array rows = builder.input("rows", i32({1}));
  NamedBytes bound{{"cache", bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7})},
                   {"x", bytes_of<float>({10, 20})},
                   {"rows", bytes_of<int>({2})}};
};

TEST(States, AWriteMakesTheNextVersion) {
  Cache c;
  const Array next = write_rows(c.state, c.x, c.rows);
  c.builder.update("cache", next);
  c.builder.output("sum", sum(next));
  const Graph graph = c.builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("write_rows", "reduce"));
  const auto result = interpret(graph, c.bound);
  EXPECT_THAT(values_of<float>(result.states.at("cache")), ElementsAre(0, 1, 2, 3, 10, 20, 6, 7));
  EXPECT_THAT(values_of<float>(result.outputs.at("sum")), ElementsAre(49));
}

TEST(States, ReadsBeforeTheWriteNeedNoCopy) {
  Cache c;
  c.builder.output("before", c.state + Array(1.0f));
  c.builder.update("cache", write_rows(c.state, c.x, c.rows));
  EXPECT_THAT(kernels_of(c.builder.build()), ElementsAre("add", "write_rows"));
}

TEST(States, AnOldVersionThatIsReadLaterIsCopiedBeforeTheWrite) {
  Cache c;
  const Array next = write_rows(c.state, c.x, c.rows);
  c.builder.update("cache", next);
  c.builder.output("difference", next - c.state);
  c.builder.output("old", c.state);
  const Graph graph = c.builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("contiguous", "write_rows", "subtract"));
  const auto result = interpret(graph, c.bound, Writes::in_place);
  EXPECT_THAT(values_of<float>(result.outputs.at("difference")),
              ElementsAre(0, 0, 0, 0, 6, 15, 0, 0));
  EXPECT_THAT(values_of<float>(result.outputs.at("old")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(States, ViewsOfAnOldVersionAreReadsOfIt) {
  Cache c;
  const Array early = slice(c.state, {2, 0}, {3, 2});  // a view made before the write
  const Array next = write_rows(c.state, c.x, c.rows);
  const Array late = slice(c.state, {2, 0}, {4, 2});  // and one made after it
  c.builder.update("cache", next);
  c.builder.output("early", exp(early * Array(0.0f)) * early);
  c.builder.output("late", reshape(late, {4}));
  const auto result = interpret(c.builder.build(), c.bound, Writes::in_place);
  EXPECT_THAT(values_of<float>(result.outputs.at("early")), ElementsAre(4, 5));
  EXPECT_THAT(values_of<float>(result.outputs.at("late")), ElementsAre(4, 5, 6, 7));
}

TEST(States, AWriteOfWhatItReadsCopiesFirst) {
  Cache c;
  const Array rows = c.builder.input("two", i32({2}));
  c.builder.update("cache", write_rows(c.state, slice(c.state, {0, 0}, {2, 2}), rows));
  const Graph graph = c.builder.build();
  EXPECT_THAT(kernels_of(graph), ElementsAre("contiguous", "write_rows"));
  c.bound["two"] = bytes_of<int>({1, 0});  // in place, row 0 would be read after it was written
  const auto result = interpret(graph, c.bound, Writes::in_place);
  EXPECT_THAT(values_of<float>(result.states.at("cache")), ElementsAre(2, 3, 0, 1, 4, 5, 6, 7));
}

TEST(States, TwoWritesOfOneVersionAreAnError) {
  Cache c;
  const Array a = write_rows(c.state, c.x, c.rows);
  const Array b = write_rows(c.state, c.x + Array(1.0f), c.rows);
  c.builder.update("cache", b);
  c.builder.output("a", a);
  expect_error(ErrorCode::invalid_argument, {"\"cache\"", "written twice", "write_rows", "%"},
               [&] { c.builder.build(); });
}

TEST(States, WritesMustFollowEachOther) {
  Cache c;
  const Array a = write_rows(c.state, c.x, c.rows);
  const Array b = write_rows(a, c.x + Array(1.0f), c.rows);
  c.builder.update("cache", a);
  c.builder.output("b", b);
  expect_error(ErrorCode::invalid_argument, {"\"cache\"", "version after it"},
               [&] { c.builder.build(); });
}

TEST(States, AWriteNeedsItsUpdate) {
  Cache c;
  c.builder.output("next", write_rows(c.state, c.x, c.rows));
  expect_error(ErrorCode::invalid_argument, {"\"cache\"", "update("}, [&] { c.builder.build(); });
}

TEST(States, AnUpdateComesFromItsState) {
  Cache c;
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"\"other\""}, [&] { c.builder.update("other", c.state); });
  expect_error(invalid, {"f32[1, 2]"}, [&] { c.builder.update("cache", c.x); });
  c.builder.update("cache", exp(c.state));
  expect_error(invalid, {"\"cache\"", "does not come from it"}, [&] { c.builder.build(); });
}

TEST(States, WhatNoKernelMadeIsCopiedBeforeItIsWrittenOver) {
  Cache c;
  const Array base = c.builder.input("base", f32({4, 2}));
  const Array constant = zeros({4, 2});
  constant.eval();
  c.builder.output("a", write_rows(base, c.x, c.rows));
  c.builder.output("b", write_rows(constant, c.x, c.rows));
  c.builder.output("base", base);
  const Array fresh = exp(base);  // two writes of one value that is no state: each has its own
  c.builder.output("c", write_rows(fresh, c.x, c.rows));
  c.builder.output("d", write_rows(fresh, c.x + Array(1.0f), c.rows));
  const Graph graph = c.builder.build();
  c.bound["base"] = bytes_of<float>(std::vector<float>(8, 0.0f));
  const auto in_place = interpret(graph, c.bound, Writes::in_place);
  const auto meant = interpret(graph, c.bound, Writes::to_copies);
  EXPECT_EQ(in_place.outputs, meant.outputs);
  EXPECT_THAT(values_of<float>(in_place.outputs.at("d")), ElementsAre(1, 1, 1, 1, 11, 21, 1, 1));
  EXPECT_THAT(constant.to_vector<float>(), testing::Each(0.0f));
}

// ---- Feeds

TEST(Feeds, ComeLastAndNameTheirState) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 2}));
  const Array y = x * Array(2.0f);
  builder.feed(x, y, FeedKind::prefix, "n");
  builder.output("y", y);
  const Graph graph = builder.build();
  EXPECT_THAT(graph.fed_inputs, ElementsAre("x"));
  ASSERT_EQ(graph.state_updates.size(), 1u);
  EXPECT_EQ(graph.state_updates[0].name, "x");
  EXPECT_TRUE(std::holds_alternative<Feed>(graph.nodes.back().op));
  const auto result = interpret(
      graph, {{"x", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8})}, {"n", bytes_of<int>({1})}});
  EXPECT_THAT(values_of<float>(result.states.at("x")), ElementsAre(2, 4, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(values_of<float>(result.outputs.at("y")), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
}

TEST(Feeds, ThatSwapTwoStatesCopyWhatTheyOverwrite) {
  GraphBuilder builder;
  const Array a = builder.input("a", f32({2}));
  const Array b = builder.input("b", f32({2}));
  builder.feed(a, b, FeedKind::whole);
  builder.feed(b, a, FeedKind::whole);
  builder.output("a", a);
  builder.output("b", b);  // overwritten by the second feed: the copy comes before the first
  const Graph graph = builder.build();
  const auto result = interpret(
      graph, {{"a", bytes_of<float>({1, 2})}, {"b", bytes_of<float>({3, 4})}}, Writes::in_place);
  EXPECT_THAT(values_of<float>(result.states.at("a")), ElementsAre(3, 4));
  EXPECT_THAT(values_of<float>(result.states.at("b")), ElementsAre(1, 2));
  EXPECT_THAT(values_of<float>(result.outputs.at("a")), ElementsAre(1, 2));
  EXPECT_THAT(values_of<float>(result.outputs.at("b")), ElementsAre(3, 4));
}

TEST(Feeds, OfOneRow) {
  GraphBuilder builder;
  const Array last = builder.input("last", f32({2}));
  const Array table = builder.parameter("table", f32({3, 2}));
  builder.feed(last, table + last, FeedKind::row, "which");
  const auto result = interpret(builder.build(), {{"last", bytes_of<float>({1, 1})},
                                                  {"table", bytes_of<float>({1, 2, 3, 4, 5, 6})},
                                                  {"which", bytes_of<int>({2})}});
  EXPECT_THAT(values_of<float>(result.states.at("last")), ElementsAre(6, 7));
}

TEST(Feeds, RefuseWhatDoesNotFit) {
  GraphBuilder builder;
  const auto invalid = ErrorCode::invalid_argument;
  const Array x = builder.input("x", f32({4, 2}));
  expect_error(invalid, {"feed"}, [&] { builder.feed(x, sum(x), FeedKind::whole); });
  expect_error(invalid, {"extent"}, [&] { builder.feed(x, x, FeedKind::prefix); });
  expect_error(invalid, {"extent"}, [&] { builder.feed(x, x, FeedKind::whole, "n"); });
  expect_error(invalid, {"only an input"}, [&] { builder.feed(exp(x), x, FeedKind::whole); });
  builder.feed(x, exp(x), FeedKind::whole);
  expect_error(invalid, {"already"}, [&] { builder.feed(x, exp(x), FeedKind::whole); });
}

}  // namespace
}  // namespace heddle::test
