#include "fake_device.h"
#include "graph_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// "op@device" of each live kernel, in order.
std::vector<std::string> placed_kernels(const PlacedGraph& placed) {
  EXPECT_EQ(placed.placement.size(), placed.graph.nodes.size());
  std::vector<std::string> text;
  for (NodeId id = 0; id < placed.graph.nodes.size(); ++id) {
    const GraphNode& node = placed.graph.nodes[id];
    if (node.dead || is_leaf(node.op) || is_view(node.op)) {
      EXPECT_EQ(placed.placement[id], nullptr);
      continue;
    }
    EXPECT_NE(placed.placement[id], nullptr) << name(node.op);
    if (!placed.placement[id]) continue;
    text.push_back(std::string(name(node.op)) + "@" + std::string(placed.placement[id]->name()));
  }
  return text;
}

PlacedGraph place(const Graph& graph, const PassOptions& options = {}) {
  PlacedGraph placed = place_and_legalize(graph, options);
  validate(placed.graph);
  return placed;
}

struct Inputs {
  GraphBuilder builder;
  Array x = builder.input("x", f32({4, 6}));
  Array y = builder.input("y", f32({4, 6}));
};

TEST(Place, TheCpuRunsAllByDefault) {
  Inputs in;
  in.builder.output("z", exp(in.x) + in.y);
  EXPECT_THAT(placed_kernels(place(in.builder.build())), ElementsAre("exp@cpu", "add@cpu"));
}

TEST(Place, InOrderOfPriority) {
  Inputs in;
  FakeDevice a("a", only({"add"})), b("b", only({"add", "multiply"}));
  in.builder.output("z", exp((in.x + in.y) * in.y));
  const Graph graph = in.builder.build();
  EXPECT_THAT(placed_kernels(place(graph, {.devices = {&a, &b}})),
              ElementsAre("add@a", "multiply@b", "exp@cpu"));
  EXPECT_THAT(placed_kernels(place(graph, {.devices = {&b, &a}})),
              ElementsAre("add@b", "multiply@b", "exp@cpu"));
  EXPECT_THAT(placed_kernels(place(graph, {.devices = {&cpu_device(), &a}})),
              ElementsAre("add@cpu", "multiply@cpu", "exp@cpu"));
}

TEST(Place, LoweredOpsComeBeforeTheCpu) {
  Inputs in;
  FakeDevice a("a", all_but({"gated_multiply"}));
  in.builder.output("z", gated_multiply(in.x, in.y));
  EXPECT_THAT(placed_kernels(place(in.builder.build(), {.devices = {&a}})),
              ElementsAre("silu@a", "multiply@a"));
}

TEST(Place, AKernelComesBeforeALoweredForm) {
  Inputs in;
  FakeDevice a("a", all_but({"gated_multiply"})), b("b", only({"gated_multiply"}));
  in.builder.output("z", gated_multiply(in.x, in.y));
  EXPECT_THAT(placed_kernels(place(in.builder.build(), {.devices = {&a, &b}})),
              ElementsAre("gated_multiply@b"));
}

TEST(Place, LoweredOpsAreLoweredAgain) {
  Inputs in;
  FakeDevice a("a", all_but({"rope_write_rows", "rope"}));
  const Array state = in.builder.state("s", f32({8, 2, 6}));
  const Array pos = in.builder.input("pos", i32({4})), row = in.builder.input("row", i32({4}));
  const Array x = in.builder.input("heads", f32({4, 2, 6}));
  const RopeWriteRows op{false, true, {.dims = 4}};
  in.builder.update("s", apply(op, {state, x, row, pos}));
  const auto kernels = placed_kernels(place(in.builder.build(), {.devices = {&a}}));
  EXPECT_EQ(kernels.back(), "write_rows@a");
  EXPECT_THAT(kernels, testing::Contains("rope_table@a"));
  EXPECT_THAT(kernels, testing::Each(HasSubstr("@a")));
}

TEST(Place, ReadersShareAContiguousCopy) {
  Inputs in;
  FakeDevice a("a", everything());
  a.contiguous_only = true;
  const Array turned = transpose(in.x);
  in.builder.output("e", exp(turned));
  in.builder.output("s", sin(turned));
  in.builder.output("f", exp(in.x));
  EXPECT_THAT(placed_kernels(place(in.builder.build(), {.devices = {&a}})),
              ElementsAre("contiguous@a", "exp@a", "sin@a", "exp@a"));
}

TEST(Place, AViewThatStridesCannotExpressIsAViewOfACopy) {
  Inputs in;
  FakeDevice a("a", only({"exp", "contiguous"}));
  in.builder.output("z", sin(reshape(transpose(exp(in.x)), {24})));
  const PlacedGraph placed = place(in.builder.build(), {.devices = {&a}});
  EXPECT_THAT(placed_kernels(placed), ElementsAre("exp@a", "contiguous@a", "sin@cpu"))
      << "the copy is made where the value is";
  const auto layouts = value_layouts(placed.graph);
  EXPECT_EQ((layouts[{static_cast<NodeId>(placed.graph.nodes.size() - 2), 0}]),
            OperandSpec::contiguous(f32({24})));
}

TEST(Place, LayoutsFlowThroughViews) {
  Inputs in;
  in.builder.output("z", exp(slice(transpose(in.x), {1, 0}, {3, 4})));
  const Graph graph = in.builder.build();
  const auto layouts = value_layouts(graph);
  std::vector<Dims> strides;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (is_view(graph.nodes[id].op)) strides.push_back(layouts[{id, 0}].layout.strides);
  }
  EXPECT_THAT(strides, ElementsAre(Dims{1, 6}, Dims{1, 6}));
}

TEST(Place, DeadNodesRunNowhere) {
  Inputs in;
  FakeDevice none("none", only({}));
  in.builder.output("z", exp(in.x));
  Graph graph = in.builder.build();
  const NodeId last = static_cast<NodeId>(graph.nodes.size() - 1);
  graph.nodes.push_back({Unary{UnaryKind::sin}, {{last, 0}}, {f32({4, 6})}, &none, true});
  const PlacedGraph placed = place(graph);
  EXPECT_THAT(placed_kernels(placed), ElementsAre("exp@cpu"));
  EXPECT_TRUE(placed.graph.nodes.back().dead);
}

// ---- Pins

TEST(Pins, OfNodesAreKept) {
  Inputs in;
  FakeDevice a("a", everything()), b("b", everything());
  const Array e = [&] {
    const DeviceScope scope(b);
    return exp(in.x);
  }();
  in.builder.output("z", sin(e));
  EXPECT_THAT(placed_kernels(place(in.builder.build(), {.devices = {&a, &b}})),
              ElementsAre("exp@b", "sin@a"));
}

TEST(Pins, OfAGraphAreForAllOfIt) {
  Inputs in;
  FakeDevice a("a", everything()), b("b", everything());
  in.builder.output("z", sin(exp(in.x)));
  EXPECT_THAT(placed_kernels(place(in.builder.build(), {.devices = {&a}, .pin = &b})),
              ElementsAre("exp@b", "sin@b"));
}

TEST(Pins, AGraphThatItsDeviceCannotRunIsRefusedWithTheList) {
  Inputs in;
  FakeDevice a("a", only({"add"}));
  in.builder.output("z", sin(exp(in.x + in.y)) + in.y);
  const Graph graph = in.builder.build();
  expect_error(ErrorCode::unsupported,
               {"2 of the graph's 4 ops", "\"a\"", "%3 exp", "%4 sin", "f32[4, 6]",
                "no kernel for it", "pin the graph to \"cpu\""},
               [&] { place_and_legalize(graph, {.pin = &a}); });
}

TEST(Pins, ANodeThatItsDeviceCannotRunIsRefused) {
  Inputs in;
  FakeDevice a("a", only({"add"})), b("b", only({"exp"}));
  const Array e = [&] {
    const DeviceScope scope(a);
    return exp(in.x);
  }();
  in.builder.output("z", e + in.y);
  const Graph graph = in.builder.build();
  expect_error(ErrorCode::unsupported,
               {"1 of the graph's 2 ops", "exp", "on a", "pin them to \"b\""},
               [&] { place_and_legalize(graph, {.devices = {&b}}); });
}

TEST(Pins, OfANodeAndOfTheGraphMustAgree) {
  Inputs in;
  FakeDevice a("a", everything()), b("b", everything());
  const DeviceScope scope(a);
  in.builder.output("z", exp(in.x));
  const Graph graph = in.builder.build();
  expect_error(ErrorCode::unsupported, {"exp", "pinned to \"a\"", "\"b\""},
               [&] { place_and_legalize(graph, {.pin = &b}); });
}

// ---- States

struct Chain {
  GraphBuilder builder;
  Array state = builder.state("s", f32({8, 2, 6}));
  Array x = builder.input("x", f32({4, 2, 6}));
  Array row = builder.input("row", i32({4}));
  Array other = builder.input("other", i32({4}));
};

TEST(StatePlacement, AllWritesOfAStateGoToOneDevice) {
  Chain c;
  FakeDevice a("a", only({"write_rows"}));
  const Array first = write_rows(c.state, c.x, c.row);
  c.builder.update("s",
                   apply(RopeWriteRows{false, true, {.dims = 4}}, {first, c.x, c.other, c.row}));
  EXPECT_THAT(placed_kernels(place(c.builder.build(), {.devices = {&a}})),
              ElementsAre("write_rows@cpu", "rope_write_rows@cpu"));
}

TEST(StatePlacement, WritesWithDifferentPinsAreRefused) {
  Chain c;
  FakeDevice a("a", everything());
  const Array first = [&] {
    const DeviceScope scope(a);
    return write_rows(c.state, c.x, c.row);
  }();
  const DeviceScope scope(cpu_device());
  c.builder.update("s", write_rows(first, c.x, c.other));
  const Graph graph = c.builder.build();
  expect_error(ErrorCode::unsupported, {"2 of the graph's 2 ops", "write of state \"s\""},
               [&] { place_and_legalize(graph, {.devices = {&a}}); });
}

TEST(StatePlacement, AWriteOverAnotherDevicesValueGetsItsOwn) {
  Chain c;
  FakeDevice a("a", only({"exp"}));
  const Array base = exp(c.builder.input("base", f32({8, 2, 6})));
  c.builder.output("z", write_rows(base, c.x, c.row));
  EXPECT_THAT(placed_kernels(place(c.builder.build(), {.devices = {&a}})),
              ElementsAre("exp@a", "contiguous@cpu", "write_rows@cpu"));
}

TEST(StatePlacement, CopiesForFeedsComeBeforeAllFeeds) {
  GraphBuilder builder;
  FakeDevice a("a", everything());
  a.contiguous_only = true;
  const Array x = builder.input("x", f32({3, 3})), y = builder.input("y", f32({3, 3}));
  builder.feed(x, transpose(exp(x)), FeedKind::whole);
  builder.feed(y, transpose(exp(y)), FeedKind::whole);
  EXPECT_THAT(placed_kernels(place(builder.build(), {.devices = {&a}})),
              ElementsAre("exp@a", "exp@a", "contiguous@a", "contiguous@a", "feed@a", "feed@a"));
}

TEST(Place, APinThatIsAWishYieldsToTheCpu) {
  FakeDevice a("a", only({"exp"})), b("b", everything());
  Inputs in;
  const Array z = [&] {
    const DeviceScope scope(a);
    return exp(in.x) + in.y;
  }();
  in.builder.output("z", sin(z));
  const Graph graph = in.builder.build();
  EXPECT_THAT(placed_kernels(place(graph, {.devices = {&b}, .strict_pins = false})),
              ElementsAre("exp@a", "add@cpu", "sin@b"));
  EXPECT_THROW(place(graph, {.devices = {&b}}), Error);
}

}  // namespace
}  // namespace heddle::test
