#include "fake_device.h"
#include "graph_test_support.h"

namespace heddle::test {
namespace {

using testing::ElementsAre;

/// Fused for a device that has every kernel, and checked.
Graph fused(const GraphBuilder& builder, std::vector<Device*> devices = {}) {
  FakeDevice able("able", everything());
  if (devices.empty()) devices = {&able};
  const Graph graph = fuse(builder.build(), {.devices = devices});
  validate(graph);
  return graph;
}

template <class T>
std::vector<const GraphNode*> nodes_of(const Graph& graph) {
  std::vector<const GraphNode*> nodes;
  for (const GraphNode& node : graph.nodes) {
    if (!node.dead && std::holds_alternative<T>(node.op)) nodes.push_back(&node);
  }
  return nodes;
}

// ---- act(gate) * up

struct Gate {
  GraphBuilder builder;
  Array gate = builder.input("gate", f32({2, 4}));
  Array up = builder.input("up", f32({2, 4}));
};

TEST(FuseGate, EitherWayAroundWithEachActivation) {
  const auto check = [](Array (*activation)(const Arg&), UnaryKind kind, bool flip) {
    Gate g;
    g.builder.output("y", flip ? g.up * activation(g.gate) : activation(g.gate) * g.up);
    const Graph graph = fused(g.builder);
    ASSERT_THAT(kernels_of(graph), ElementsAre("gated_multiply"));
    const GraphNode& node = *nodes_of<GatedMultiply>(graph)[0];
    EXPECT_EQ(std::get<GatedMultiply>(node.op).activation, kind);
    EXPECT_EQ(std::get<Input>(graph.node(node.inputs[0]).op).name, "gate");
    EXPECT_EQ(std::get<Input>(graph.node(node.inputs[1]).op).name, "up");
  };
  for (const bool flip : {false, true}) {
    check(silu, UnaryKind::silu, flip);
    check(gelu, UnaryKind::gelu, flip);
    check(gelu_tanh, UnaryKind::gelu_tanh, flip);
    check(relu, UnaryKind::relu, flip);
  }
}

TEST(FuseGate, DeadPartsKeepTheirPlace) {
  Gate g;
  g.builder.output("y", silu(g.gate) * g.up);
  const Graph before = g.builder.build();
  const Graph graph = fused(g.builder);
  ASSERT_EQ(graph.nodes.size(), before.nodes.size());
  EXPECT_TRUE(graph.nodes[2].dead);
  EXPECT_EQ(name(graph.nodes[2].op), "silu");
  EXPECT_EQ(name(graph.nodes[3].op), "gated_multiply");
}

TEST(FuseGate, NotForOtherActivations) {
  Gate g;
  g.builder.output("y", sigmoid(g.gate) * g.up);
  EXPECT_THAT(kernels_of(fused(g.builder)), ElementsAre("sigmoid", "multiply"));
}

TEST(FuseGate, NotWhenTheActivatedGateIsSeen) {
  Gate g;
  const Array activated = silu(g.gate);
  g.builder.output("y", activated * g.up);
  g.builder.output("activated", activated);
  EXPECT_THAT(kernels_of(fused(g.builder)), ElementsAre("silu", "multiply"));
  Gate h;
  const Array twice = silu(h.gate);
  h.builder.output("y", twice * h.up);
  h.builder.output("z", exp(twice));
  EXPECT_THAT(kernels_of(fused(h.builder)), ElementsAre("silu", "multiply", "exp"));
}

TEST(FuseGate, NotWhenShapesBroadcast) {
  Gate g;
  g.builder.output("y", silu(g.gate) * g.builder.input("row", f32({4})));
  EXPECT_THAT(kernels_of(fused(g.builder)), ElementsAre("silu", "multiply"));
}

TEST(FuseGate, NotAcrossPins) {
  Gate g;
  FakeDevice a("a", everything()), b("b", everything());
  const Array activated = [&] {
    const DeviceScope scope(a);
    return silu(g.gate);
  }();
  const DeviceScope scope(b);
  g.builder.output("y", activated * g.up);
  EXPECT_THAT(kernels_of(fused(g.builder, {&a, &b})), ElementsAre("silu", "multiply"));
}

TEST(FuseGate, OnlyIfTheDeviceOfThePartsHasTheKernel) {
  Gate g;
  FakeDevice parts("parts", only({"silu", "multiply"})), all("all", everything());
  FakeDevice unrelated("unrelated", only({"exp"}));
  g.builder.output("y", silu(g.gate) * g.up);
  EXPECT_THAT(kernels_of(fused(g.builder, {&parts, &all})), ElementsAre("silu", "multiply"));
  EXPECT_THAT(kernels_of(fused(g.builder, {&unrelated, &all})), ElementsAre("gated_multiply"));
}

TEST(FuseGate, NotWhenItWouldReadAStateTooLate) {
  GraphBuilder builder;
  const Array state = builder.state("s", f32({2, 4}));
  const Array activated = silu(state);
  const Array next =
      write_rows(state, builder.input("x", f32({1, 4})), builder.input("row", i32({1})));
  builder.update("s", next);
  builder.output("y", activated * next);
  EXPECT_THAT(kernels_of(fused(builder)), ElementsAre("silu", "write_rows", "multiply"));
}

// ---- add, then rms_norm

struct Residual {
  GraphBuilder builder;
  Array a = builder.input("a", f32({2, 4}));
  Array b = builder.input("b", f32({2, 4}));
};

TEST(FuseNorm, TheSumIsTheFirstOutput) {
  Residual r;
  const Array sum = r.a + r.b;
  const Array between = exp(sum);  // stands before the norm
  const Array weight = r.builder.parameter("w", f32({4}));
  const Array normed = fast::rms_norm(sum, weight, 1e-3f);
  r.builder.output("between", between);
  r.builder.output("sum", sum);
  r.builder.output("normed", normed * Array(2.0f));
  const Graph graph = fused(r.builder);
  EXPECT_THAT(kernels_of(graph), ElementsAre("add_rms_norm", "exp", "multiply"));
  const GraphNode& node = *nodes_of<AddRmsNorm>(graph)[0];
  EXPECT_EQ(std::get<AddRmsNorm>(node.op), (AddRmsNorm{1e-3f, true, false}));
  EXPECT_EQ(node.inputs.size(), 3u);
  EXPECT_EQ(graph.outputs[1].value.output, 0u);
  EXPECT_EQ(nodes_of<Binary>(graph)[0]->inputs[0].output, 1u);
}

TEST(FuseNorm, OnceForEachSum) {
  Residual r;
  const Array sum = r.a + r.b;
  r.builder.output("x", fast::rms_norm(sum, std::nullopt, 1e-3f));
  r.builder.output("y", fast::rms_norm(sum, std::nullopt, 1e-2f));
  EXPECT_THAT(kernels_of(fused(r.builder)), ElementsAre("add_rms_norm", "rms_norm"));
}

TEST(FuseNorm, NotWhenTheSumBroadcasts) {
  Residual r;
  r.builder.output("y",
                   fast::rms_norm(r.a + r.builder.input("row", f32({4})), std::nullopt, 1e-3f));
  EXPECT_THAT(kernels_of(fused(r.builder)), ElementsAre("add", "rms_norm"));
}

TEST(FuseNorm, NotWhenTheWeightComesFromTheSum) {
  Residual r;
  const Array sum = r.a + r.b;
  const Array weight = reshape(slice(sum, {0, 0}, {1, 4}), {4});
  r.builder.output("y", fast::rms_norm(sum, weight, 1e-3f));
  EXPECT_THAT(kernels_of(fused(r.builder)), ElementsAre("add", "rms_norm"));
}

// ---- Linears over one input

TEST(FuseLinear, WeightsOverOneInputJoinTheFirst) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 4}));
  const auto weight = [&](const std::string& name, std::int64_t rows) {
    return builder.parameter(name, {DType::f16, {rows, 4}});
  };
  const Array q = linear(x, weight("q", 6));
  const Array early = exp(q);
  const Array k = linear(x, weight("k", 3));
  const std::vector<Array> more = linear(x, {weight("v", 3), weight("w", 5)});
  builder.output("early", early);
  builder.output("k", k);
  builder.output("v", sin(more[0]));
  builder.output("w", more[1]);
  const Graph graph = fused(builder);
  EXPECT_THAT(kernels_of(graph), ElementsAre("linear", "exp", "sin"));
  const GraphNode& node = *nodes_of<Linear>(graph)[0];
  EXPECT_THAT(node.outputs, ElementsAre(f32({2, 6}), f32({2, 3}), f32({2, 3}), f32({2, 5})));
  EXPECT_EQ(graph.outputs[1].value.output, 1u);
  EXPECT_EQ(graph.outputs[3].value.output, 3u);
  EXPECT_EQ(nodes_of<Unary>(graph)[1]->inputs[0].output, 2u);
}

TEST(FuseLinear, NotOverDifferentInputsOrPins) {
  GraphBuilder builder;
  FakeDevice a("a", everything()), b("b", everything());
  const Array x = builder.input("x", f32({2, 4})), y = builder.input("y", f32({2, 4}));
  const Array w = builder.parameter("w", f32({4, 4}));
  builder.output("1", linear(x, w));
  builder.output("2", linear(y, w));
  const DeviceScope scope(b);
  builder.output("3", linear(x, w));
  EXPECT_THAT(kernels_of(fused(builder, {&a, &b})), ElementsAre("linear", "linear", "linear"));
}

TEST(FuseLinear, NotWhenAWeightComesFromAnotherOfThem) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 4}));
  const Array first = linear(x, builder.parameter("w", f32({4, 4})));
  builder.output("y", linear(x, first));
  EXPECT_THAT(kernels_of(fused(builder)), ElementsAre("linear", "linear"));
}

TEST(FuseLinear, ViewsOfParametersMoveAlong) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 4}));
  const Array first = linear(x, builder.parameter("v", f32({3, 4})));
  const Array packed = builder.parameter("w", f32({8, 4}));
  builder.output("x", linear(x, slice(packed, {0, 0}, {3, 4})));
  builder.output("y", linear(x, slice(packed, {3, 0}, {8, 4})));
  builder.output("z", first);
  EXPECT_THAT(kernels_of(fused(builder)), ElementsAre("linear"));
}

TEST(FuseLinear, InGroupsOfASensibleSize) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 4}));
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i);
    builder.output(name, linear(x, builder.parameter("w" + name, f32({3, 4}))));
  }
  EXPECT_THAT(kernels_of(fused(builder)), ElementsAre("linear", "linear", "linear"));
}

// ---- Bias, rope and write_rows

struct Heads {
  GraphBuilder builder;
  Array y = builder.input("y", f32({3, 8}));
  Array bias = builder.parameter("bias", f32({8}));
  Array pos = builder.input("pos", i32({3}));
  Array row = builder.input("row", i32({3}));
  Array state = builder.state("s", f32({16, 2, 4}));
  RopeAngles angles{.dims = 4};

  Array heads(const Array& x) { return reshape(x, {3, 2, 4}); }
  std::vector<std::string> names(const GraphNode& node, const Graph& graph) {
    std::vector<std::string> result;
    for (const ValueId input : node.inputs) {
      const Op& op = graph.node(input).op;
      if (const auto* in = std::get_if<Input>(&op))
        result.push_back(in->name);
      else if (const auto* parameter = std::get_if<Parameter>(&op))
        result.push_back(parameter->name);
      else if (const auto* ref = std::get_if<StateRef>(&op))
        result.push_back(ref->name);
      else
        result.emplace_back(name(op));
    }
    return result;
  }
};

TEST(FuseRope, TakesTheBiasIn) {
  for (const bool flip : {false, true}) {
    for (const bool broadcast : {false, true}) {
      Heads h;
      const Array bias = broadcast ? broadcast_to(h.bias, {3, 8}) : h.bias;
      h.builder.output("q", rope(h.heads(flip ? bias + h.y : h.y + bias), h.pos, h.angles));
      const Graph graph = fused(h.builder);
      ASSERT_THAT(kernels_of(graph), ElementsAre("rope"));
      const GraphNode& node = *nodes_of<Rope>(graph)[0];
      EXPECT_TRUE(std::get<Rope>(node.op).has_bias);
      EXPECT_THAT(h.names(node, graph), ElementsAre("reshape", "bias", "pos"));
      EXPECT_TRUE(nodes_of<Broadcast>(graph).empty()) << "nobody needs it now";
    }
  }
}

TEST(FuseRope, KeepsFactorsBehindPositions) {
  Heads h;
  h.angles.has_factors = true;
  const Array factors = h.builder.parameter("factors", f32({2}));
  const Array k = rope(h.heads(h.y + h.bias), h.pos, h.angles, factors);
  h.builder.update("s", write_rows(h.state, k, h.row));
  const Graph graph = fused(h.builder);
  ASSERT_THAT(kernels_of(graph), ElementsAre("rope_write_rows"));
  const GraphNode& node = *nodes_of<RopeWriteRows>(graph)[0];
  EXPECT_EQ(std::get<RopeWriteRows>(node.op), (RopeWriteRows{true, true, h.angles}));
  EXPECT_THAT(h.names(node, graph), ElementsAre("s", "reshape", "row", "bias", "pos", "factors"));
}

TEST(FuseRope, WritesWithAndWithoutRopeAndBias) {
  const auto check = [](bool with_bias, bool with_rope, std::vector<std::string> inputs) {
    Heads h;
    Array x = h.heads(with_bias ? h.y + h.bias : h.y);
    if (with_rope) x = rope(x, h.pos, h.angles);
    h.builder.update("s", write_rows(h.state, x, h.row));
    const Graph graph = fused(h.builder);
    ASSERT_THAT(kernels_of(graph), ElementsAre("rope_write_rows"));
    const GraphNode& node = *nodes_of<RopeWriteRows>(graph)[0];
    EXPECT_EQ(std::get<RopeWriteRows>(node.op).has_bias, with_bias);
    EXPECT_EQ(std::get<RopeWriteRows>(node.op).rope, with_rope);
    EXPECT_THAT(h.names(node, graph), testing::ElementsAreArray(inputs));
  };
  check(false, true, {"s", "reshape", "row", "pos"});
  check(true, true, {"s", "reshape", "row", "bias", "pos"});
  check(true, false, {"s", "reshape", "row", "bias"});
}

TEST(FuseRope, WithoutAKernelForTheHalfWay) {
  Heads h;
  FakeDevice a("a", [](const Op& op) {
    const auto* rope = std::get_if<Rope>(&op);
    return !rope || !rope->has_bias;
  });
  h.builder.update("s", write_rows(h.state, rope(h.heads(h.y + h.bias), h.pos, h.angles), h.row));
  const Graph graph = fused(h.builder, {&a});
  ASSERT_THAT(kernels_of(graph), ElementsAre("rope_write_rows"));
  EXPECT_TRUE(std::get<RopeWriteRows>(nodes_of<RopeWriteRows>(graph)[0]->op).has_bias);
}

TEST(FuseRope, NotWhenWhatWasWrittenIsSeen) {
  Heads h;
  const Array k = rope(h.heads(h.y), h.pos, h.angles);
  h.builder.update("s", write_rows(h.state, k, h.row));
  h.builder.output("k", k);
  EXPECT_THAT(kernels_of(fused(h.builder)), ElementsAre("rope", "write_rows"));
  Heads g;
  const Array biased = g.y + g.bias;
  g.builder.update("s", write_rows(g.state, g.heads(biased), g.row));
  g.builder.output("biased", biased);
  EXPECT_THAT(kernels_of(fused(g.builder)), ElementsAre("add", "write_rows"));
}

// ---- rms_norm, rope and write_rows: qwen3's q and k

TEST(FuseNormRope, TurnsHeadsThatAreNormalised) {
  for (const bool weighted : {false, true}) {
    Heads h;
    h.angles.has_factors = true;
    const Array factors = h.builder.parameter("factors", f32({2}));
    std::optional<Array> weight;
    if (weighted) weight = h.builder.parameter("weight", f32({4}));
    const Array normed = fast::rms_norm(h.heads(h.y), weight, 1e-3f);
    h.builder.output("q", rope(normed, h.pos, h.angles, factors));
    const Graph graph = fused(h.builder);
    ASSERT_THAT(kernels_of(graph), ElementsAre("norm_rope"));
    const GraphNode& node = *nodes_of<NormRope>(graph)[0];
    EXPECT_EQ(std::get<NormRope>(node.op), (NormRope{1e-3f, weighted, h.angles}));
    if (weighted) {
      EXPECT_THAT(h.names(node, graph), ElementsAre("reshape", "weight", "pos", "factors"));
    } else {
      EXPECT_THAT(h.names(node, graph), ElementsAre("reshape", "pos", "factors"));
    }
  }
}

TEST(FuseNormRope, IntoACache) {
  Heads h;
  const Array weight = h.builder.parameter("weight", f32({4}));
  const Array k = rope(fast::rms_norm(h.heads(h.y), weight, 1e-3f), h.pos, h.angles);
  h.builder.update("s", write_rows(h.state, k, h.row));
  const Graph graph = fused(h.builder);
  ASSERT_THAT(kernels_of(graph), ElementsAre("norm_rope_write_rows"));
  const GraphNode& node = *nodes_of<NormRopeWriteRows>(graph)[0];
  EXPECT_EQ(std::get<NormRopeWriteRows>(node.op), (NormRopeWriteRows{1e-3f, true, h.angles}));
  EXPECT_THAT(h.names(node, graph), ElementsAre("s", "reshape", "row", "weight", "pos"));
}

TEST(FuseNormRope, NotWhenThePartsAreSeenOrTheDeviceLacksIt) {
  Heads h;
  const Array normed = fast::rms_norm(h.heads(h.y), std::nullopt, 1e-3f);
  h.builder.output("q", rope(normed, h.pos, h.angles));
  h.builder.output("normed", normed);
  EXPECT_THAT(kernels_of(fused(h.builder)), ElementsAre("rms_norm", "rope"));
  Heads g;
  FakeDevice a("a", [](const Op& op) { return !std::holds_alternative<NormRope>(op); });
  g.builder.output("q", rope(fast::rms_norm(g.heads(g.y), std::nullopt, 1e-3f), g.pos, g.angles));
  EXPECT_THAT(kernels_of(fused(g.builder, {&a})), ElementsAre("rms_norm", "rope"));
}

TEST(FuseRope, NotForAPlainWriteOrAnAdditionOfTwoTensors) {
  Heads h;
  h.builder.update("s",
                   write_rows(h.state, h.heads(h.y + h.builder.input("z", f32({3, 8}))), h.row));
  EXPECT_THAT(kernels_of(fused(h.builder)), ElementsAre("add", "write_rows"));
}

TEST(Fuse, LeavesOtherGraphsAsTheyAre) {
  Gate g;
  g.builder.output("y", exp(g.gate) + g.up);
  const Graph before = g.builder.build();
  const Graph after = fuse(before, {});
  EXPECT_EQ(to_text(before), to_text(after));
  EXPECT_TRUE(fuse({}, {}).nodes.empty());
}

}  // namespace
}  // namespace heddle::test
