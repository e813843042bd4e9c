#include "fake_device.h"
#include "graph_test_support.h"

namespace heddle::test {
namespace {

constexpr LayoutKind kPanel = LayoutKind::panel16;

/// Prefers packed weights in linear, and reads them there and where `gather` says.
struct Packing : FakeDevice {
  explicit Packing(std::string name, bool gather = false)
      : FakeDevice(std::move(name), everything()) {
    prefers = [](const Op& op, std::size_t operand) -> std::optional<LayoutKind> {
      if (std::holds_alternative<Linear>(op) && operand > 0) return kPanel;
      return std::nullopt;
    };
    reads_packed = [gather](const Op& op, std::size_t operand) {
      return (std::holds_alternative<Linear>(op) && operand > 0) ||
             (gather && std::holds_alternative<GatherRows>(op) && operand == 0);
    };
  }
};

PlacedGraph repacked(const GraphBuilder& builder, std::vector<Device*> devices) {
  PlacedGraph placed =
      repack_parameters(place_and_legalize(builder.build(), {.devices = std::move(devices)}));
  validate(placed.graph);
  EXPECT_EQ(placed.placement.size(), placed.graph.nodes.size());
  return placed;
}

std::vector<NodeId> repacks(const PlacedGraph& placed) {
  std::vector<NodeId> ids;
  for (NodeId id = 0; id < placed.graph.nodes.size(); ++id) {
    if (std::holds_alternative<Repack>(placed.graph.nodes[id].op)) ids.push_back(id);
  }
  return ids;
}

/// The layouts in which the first T reads its operands.
template <class T>
std::vector<LayoutKind> operand_kinds(const PlacedGraph& placed) {
  const auto layouts = value_layouts(placed.graph);
  std::vector<LayoutKind> kinds;
  for (const GraphNode& node : placed.graph.nodes) {
    if (!std::holds_alternative<T>(node.op)) continue;
    for (const ValueId input : node.inputs) {
      kinds.push_back(layouts[input].layout.kind);
    }
    break;
  }
  return kinds;
}

struct Tied {  // an embedding that is also the output product
  GraphBuilder builder;
  Array table = builder.parameter("table", f32({32, 4}));
  Array ids = builder.input("ids", i32({3}));

  Tied() { builder.output("y", linear(take(table, ids, 0), table)); }
};

TEST(Repack, EveryReaderThatCanReadsThePackedForm) {
  Tied tied;
  Packing device("d", true);
  const PlacedGraph placed = repacked(tied.builder, {&device});
  ASSERT_EQ(repacks(placed).size(), 1u);
  const NodeId repack = repacks(placed)[0];
  EXPECT_EQ(placed.placement[repack], &device);
  EXPECT_TRUE(std::holds_alternative<Parameter>(
      placed.graph.node(placed.graph.nodes[repack].inputs[0]).op));
  EXPECT_EQ(operand_kinds<Linear>(placed)[1], kPanel);
  EXPECT_EQ(operand_kinds<GatherRows>(placed)[0], kPanel);
}

TEST(Repack, AReaderThatCannotKeepsThePlainForm) {
  Tied tied;
  Packing device("d", false);
  const PlacedGraph placed = repacked(tied.builder, {&device});
  ASSERT_EQ(repacks(placed).size(), 1u);
  EXPECT_EQ(operand_kinds<Linear>(placed)[1], kPanel);
  EXPECT_EQ(operand_kinds<GatherRows>(placed)[0], LayoutKind::strided);
}

TEST(Repack, OnceForEachDevice) {
  GraphBuilder builder;
  Packing a("a"), b("b");
  const Array x = builder.input("x", f32({3, 4}));
  const Array w = builder.parameter("w", f32({32, 4}));
  builder.output("1", linear(x, w));
  builder.output("2", linear(exp(x), w));
  const DeviceScope scope(b);
  builder.output("3", linear(x, w));
  const PlacedGraph placed = repacked(builder, {&a, &b});
  const std::vector<NodeId> ids = repacks(placed);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(placed.placement[ids[0]], placed.placement[ids[1]]);
  for (NodeId id = 0; id < placed.graph.nodes.size(); ++id) {
    const GraphNode& node = placed.graph.nodes[id];
    if (!std::holds_alternative<Linear>(node.op)) continue;
    EXPECT_EQ(placed.placement[node.inputs[1].node], placed.placement[id]);
  }
}

TEST(Repack, AsManyWeightsAsTheKernelReads) {
  GraphBuilder builder;
  Packing device("d");
  device.reads_packed = [](const Op& op, std::size_t operand) {
    return std::holds_alternative<Linear>(op) && (operand == 1 || operand == 3);
  };
  const Array x = builder.input("x", f32({3, 4}));
  std::vector<Array> weights;
  for (const char* name : {"a", "b", "c"}) {
    weights.push_back(builder.parameter(name, f32({32, 4})));
  }
  const std::vector<Array> y = linear(x, weights);
  for (std::size_t i = 0; i < y.size(); ++i) builder.output(std::to_string(i), y[i]);
  const PlacedGraph placed = repacked(builder, {&device});
  EXPECT_EQ(repacks(placed).size(), 2u);
  EXPECT_THAT(operand_kinds<Linear>(placed),
              testing::ElementsAre(LayoutKind::strided, kPanel, LayoutKind::strided, kPanel));
}

TEST(Repack, NotWithoutAKernelThatRepacks) {
  GraphBuilder builder;
  Packing device("d");
  FakeDevice lacks("l", all_but({"repack"}));
  lacks.prefers = device.prefers;
  lacks.reads_packed = device.reads_packed;
  builder.output("y",
                 linear(builder.input("x", f32({3, 4})), builder.parameter("w", f32({32, 4}))));
  EXPECT_TRUE(repacks(repacked(builder, {&lacks})).empty());
}

TEST(Repack, NothingWhereNobodyPrefersIt) {
  GraphBuilder builder;
  FakeDevice device("d", everything());
  Packing wants("w");
  builder.output("y", linear(builder.input("x", f32({3, 4})), builder.input("w", f32({32, 4}))));
  EXPECT_TRUE(repacks(repacked(builder, {&wants})).empty()) << "an input changes with each run";
  EXPECT_TRUE(repacks(repacked(Tied().builder, {&device})).empty());
}

}  // namespace
}  // namespace heddle::test
