#include <nlohmann/json.hpp>

#include "graph_test_support.h"
#include "heddle/device.h"

namespace heddle::test {
namespace {

using testing::HasSubstr;

Graph example() {
  GraphBuilder builder;
  const Array x = builder.input("x \"quoted\"", f32({2, 4}));
  const std::vector<Array> both =
      linear(x, {builder.parameter("a", f32({3, 4})), builder.parameter("b", f32({5, 4}))});
  const DeviceScope scope(cpu_device());
  builder.output("y", silu(both[1]));
  builder.output("z", both[1]);
  return builder.build();
}

TEST(Dump, TextHasOneLineANode) {
  const Graph graph = example();
  const std::string text = to_text(graph);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), graph.nodes.size());
  EXPECT_THAT(text, HasSubstr("%3 = linear <- %0, %1, %2 : f32[2, 3], f32[2, 5]"));
  EXPECT_THAT(text, HasSubstr("# output \"z\" (.1)"));
  EXPECT_THAT(text, HasSubstr("<- %3.1 : f32[2, 5] on cpu  # output \"y\""));
}

TEST(Dump, TextShowsDeadNodes) {
  Graph graph = example();
  graph.nodes[4].dead = true;
  EXPECT_THAT(to_text(graph), HasSubstr(" dead"));
}

TEST(Dump, DotHasNodesAndEdges) {
  const std::string dot = to_dot(example());
  EXPECT_THAT(dot, testing::StartsWith("digraph"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n3;"));
  EXPECT_THAT(dot, HasSubstr("n3 -> n4 [label=\".1\"];"));
  EXPECT_THAT(dot, HasSubstr("x \\\"quoted\\\""));
}

TEST(Dump, JsonReadsBack) {
  const Graph graph = example();
  const auto json = nlohmann::json::parse(to_json(graph));
  ASSERT_EQ(json["nodes"].size(), graph.nodes.size());
  EXPECT_EQ(json["nodes"][3]["op"], "linear");
  EXPECT_EQ(json["nodes"][3]["inputs"], nlohmann::json({{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(json["nodes"][3]["outputs"][1]["shape"], nlohmann::json({2, 5}));
  EXPECT_EQ(json["nodes"][3]["outputs"][1]["dtype"], "f32");
  EXPECT_EQ(json["nodes"][4]["pin"], "cpu");
  EXPECT_EQ(json["outputs"][1]["name"], "z");
  EXPECT_EQ(json["outputs"][1]["value"], nlohmann::json({3, 1}));
}

}  // namespace
}  // namespace heddle::test
