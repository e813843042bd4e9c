#include <map>

#include "graph_test_support.h"

namespace heddle::test {
namespace {

/// The extent of each output.
std::map<std::string, std::string> extents(const GraphBuilder& builder) {
  const Graph graph = builder.build();
  const std::vector<std::string> of_nodes = propagate_extents(graph);
  EXPECT_EQ(of_nodes.size(), graph.nodes.size());
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : graph.outputs) result[name] = of_nodes[value.node];
  for (const auto& [name, value] : graph.state_updates) result[name] = of_nodes[value.node];
  return result;
}

TEST(Extents, FollowRows) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({8, 6}), "n");
  const Array w = builder.parameter("w", f32({4, 6}));
  builder.output("norm", fast::rms_norm(x, std::nullopt, 1e-5f));
  builder.output("linear", linear(x, w));
  builder.output("heads", exp(reshape(x, {8, 2, 3})));
  builder.output("scaled", x * Array(2.0f));
  builder.output("features", sum(x, Dims{1}));
  builder.output("rows", sum(x, Dims{0}));
  builder.output("turned", exp(transpose(x)));
  builder.output("flat", exp(reshape(x, {48})));
  builder.output("tail", exp(slice(x, {2, 0}, {8, 6})));
  EXPECT_EQ(extents(builder), (std::map<std::string, std::string>{{"norm", "n"},
                                                                  {"linear", "n"},
                                                                  {"heads", "n"},
                                                                  {"scaled", "n"},
                                                                  {"features", "n"},
                                                                  {"rows", ""},
                                                                  {"turned", ""},
                                                                  {"flat", ""},
                                                                  {"tail", ""}}));
}

TEST(Extents, OfTwoInputs) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({8, 6}), "n");
  const Array y = builder.input("y", f32({8, 6}), "m");
  const Array z = builder.input("z", f32({8, 6}));
  const Array same = builder.input("same", f32({8, 6}), "n");
  builder.output("different", x + y);
  builder.output("one", x + z);
  builder.output("same", x + same);
  builder.output("none", exp(z));
  EXPECT_EQ(extents(builder), (std::map<std::string, std::string>{
                                  {"different", ""}, {"one", "n"}, {"same", "n"}, {"none", ""}}));
}

TEST(Extents, BoundWhatAWriteWritesButNotTheState) {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({4, 6}), "n");
  const Array row = builder.input("row", i32({4}), "n");
  const Array next = write_rows(builder.state("s", f32({8, 6})), exp(x), row);
  builder.update("s", next);
  builder.output("read", exp(next));
  EXPECT_EQ(extents(builder), (std::map<std::string, std::string>{{"s", "n"}, {"read", ""}}));
}

TEST(Extents, GatheredRowsFollowTheIds) {
  GraphBuilder builder;
  const Array ids = builder.input("ids", i32({4}), "n");
  const Array table = builder.parameter("table", f32({9, 6}));
  const Array rows = builder.input("rows", f32({9, 6}), "m");
  builder.output("ids", take(table, ids, 0));
  builder.output("table", take(rows, builder.input("which", i32({4})), 0));
  EXPECT_EQ(extents(builder), (std::map<std::string, std::string>{{"ids", "n"}, {"table", ""}}));
}

}  // namespace
}  // namespace heddle::test
