// Graphs that are wrong in one way each: the validator names the node.
#include "graph_test_support.h"
#include "heddle/buffer.h"

namespace heddle::test {
namespace {

/// x [2, 3] -> exp -> + x, with outputs "y"; a state with one write; a fed input.
Graph sound() {
  GraphBuilder builder;
  const Array x = builder.input("x", f32({2, 3}), "n");
  const Array e = exp(x);
  builder.output("y", e + x);
  const Array state = builder.state("s", f32({4, 3}));
  const Array rows = builder.input("rows", i32({2}));
  builder.update("s", write_rows(state, e, rows));
  builder.feed(builder.input("fed", f32({2, 3})), e, FeedKind::whole);
  return builder.build();
}

NodeId find(const Graph& graph, std::string_view op) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (name(graph.nodes[id].op) == op) return id;
  }
  throw std::logic_error("no such op");
}

GraphNode& node(Graph& graph, std::string_view op) {
  return graph.nodes[find(graph, op)];
}

Input& input(Graph& graph, std::string_view name) {
  for (GraphNode& node : graph.nodes) {
    auto* op = std::get_if<Input>(&node.op);
    if (op && op->name == name) return *op;
  }
  throw std::logic_error("no such input");
}

void expect_invalid(const Graph& graph, const std::vector<std::string>& parts) {
  expect_error(ErrorCode::invalid_argument, parts, [&] { validate(graph); });
}

TEST(Validate, AcceptsASoundGraph) {
  EXPECT_NO_THROW(validate(sound()));
  EXPECT_NO_THROW(validate({}));
}

TEST(Validate, Order) {
  Graph graph = sound();
  const NodeId add = find(graph, "add");
  node(graph, "exp").inputs[0] = {add, 0};
  expect_invalid(graph, {"exp", "%" + std::to_string(add), "before"});
  graph = sound();
  node(graph, "exp").inputs[0] = {find(graph, "exp"), 0};  // itself
  expect_invalid(graph, {"exp", "before"});
  graph = sound();
  node(graph, "exp").inputs[0] = {10000, 0};
  expect_invalid(graph, {"exp", "%10000"});
}

TEST(Validate, OutputsThatDoNotExist) {
  Graph graph = sound();
  node(graph, "add").inputs[0].output = 1;
  expect_invalid(graph, {"add", ".1", "outputs"});
  graph = sound();
  graph.outputs[0].value = {find(graph, "exp"), 3};
  expect_invalid(graph, {"\"y\"", ".3"});
}

TEST(Validate, DeadNodesThatAreRead) {
  Graph graph = sound();
  node(graph, "exp").dead = true;
  expect_invalid(graph, {"exp", "dead"});
  graph = sound();
  node(graph, "add").dead = true;
  expect_invalid(graph, {"\"y\"", "add", "dead"});
}

TEST(Validate, Specs) {
  Graph graph = sound();
  node(graph, "exp").outputs[0] = f32({3, 2});
  expect_invalid(graph, {"exp", "f32[2, 3]", "f32[3, 2]"});
  graph = sound();
  node(graph, "exp").outputs.push_back(f32({2, 3}));
  expect_invalid(graph, {"exp"});
  graph = sound();
  node(graph, "exp").outputs.clear();
  expect_invalid(graph, {"exp"});
}

TEST(Validate, Arity) {
  Graph graph = sound();
  node(graph, "add").inputs.pop_back();
  expect_invalid(graph, {"add"});
  graph = sound();
  node(graph, "exp").inputs.clear();
  expect_invalid(graph, {"exp"});
}

TEST(Validate, ConstantsWithoutData) {
  Graph graph = sound();
  graph.nodes.insert(graph.nodes.begin(), {Constant{f32({2}), nullptr}, {}, {f32({2})}});
  EXPECT_THROW(validate(graph), Error);
  graph.nodes[0].op = Constant{f32({2}), allocate_host(7)};
  EXPECT_THROW(validate(graph), Error);
}

TEST(Validate, Names) {
  Graph graph = sound();
  input(graph, "rows").name = "x";
  expect_invalid(graph, {"\"x\"", "input"});
  graph = sound();
  input(graph, "rows").name = "";
  EXPECT_THROW(validate(graph), Error);
  graph = sound();
  input(graph, "rows").name = "s";  // a state has it
  expect_invalid(graph, {"\"s\""});
  graph = sound();
  graph.outputs.push_back(graph.outputs[0]);
  expect_invalid(graph, {"\"y\"", "two outputs"});
  graph.outputs.back().name = "";
  expect_invalid(graph, {"no name"});
}

TEST(Validate, Extents) {
  Graph graph = sound();
  input(graph, "x").extent = "rows";  // not a scalar
  expect_invalid(graph, {"\"x\"", "\"rows\"", "i32 scalar"});
  graph = sound();
  input(graph, "x").extent = "nowhere";
  expect_invalid(graph, {"\"nowhere\""});
}

TEST(Validate, TwoWritesOfOneVersion) {
  Graph graph = sound();
  const NodeId write = find(graph, "write_rows");
  graph.nodes.insert(graph.nodes.begin() + find(graph, "feed") - 1, graph.nodes[write]);
  for (GraphNode& n : graph.nodes) {
    if (name(n.op) == "feed") ++n.inputs[0].node;
  }
  ++graph.state_updates.back().value.node;
  expect_invalid(graph, {"\"s\"", "written twice", "%" + std::to_string(write)});
}

TEST(Validate, ReadsAfterTheWrite) {
  Graph graph = sound();
  graph.outputs.push_back({"old", {find(graph, "state"), 0}});
  expect_invalid(graph, {"\"old\"", "write_rows", "copy"});
  graph.outputs.pop_back();
  // Through a view that was made before the write.
  const NodeId write = find(graph, "write_rows"), state = find(graph, "state");
  GraphNode view{Reshape{{12}}, {{state, 0}}, {f32({12})}};
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    for (ValueId& input : graph.nodes[id].inputs) input.node += input.node >= write;
  }
  for (Graph::Named& output : graph.outputs) output.value.node += output.value.node >= write;
  for (Graph::Named& update : graph.state_updates) update.value.node += update.value.node >= write;
  graph.nodes.insert(graph.nodes.begin() + write, std::move(view));
  EXPECT_NO_THROW(validate(graph));
  graph.outputs.push_back({"old", {write, 0}});
  expect_invalid(graph, {"\"old\"", "write_rows", "copy"});
}

TEST(Validate, UpdatesThatAreNotTheLastVersion) {
  Graph graph = sound();
  graph.state_updates[0].value = {find(graph, "state"), 0};
  expect_invalid(graph, {"\"s\""});
  graph = sound();
  graph.state_updates.erase(graph.state_updates.begin());
  expect_invalid(graph, {"\"s\"", "write_rows", "no update"});
  graph = sound();
  graph.state_updates[0].name = "other";
  expect_invalid(graph, {"\"other\""});
}

TEST(Validate, WritesOverWhatNoKernelMade) {
  Graph graph;
  graph.nodes = {{Input{"s", f32({4, 3}), ""}, {}, {f32({4, 3})}},
                 {Input{"x", f32({2, 3}), ""}, {}, {f32({2, 3})}},
                 {Input{"r", i32({2}), ""}, {}, {i32({2})}},
                 {WriteRows{}, {{0, 0}, {1, 0}, {2, 0}}, {f32({4, 3})}}};
  graph.outputs = {{"y", {3, 0}}};
  expect_invalid(graph, {"write_rows", "input", "copy"});
}

TEST(Validate, FeedsComeLast) {
  Graph graph = sound();
  const NodeId fed = find(graph, "feed");
  graph.nodes.push_back({Unary{UnaryKind::sin}, {{fed, 0}}, {f32({2, 3})}});
  expect_invalid(graph, {"sin", "feed", "last"});
}

TEST(Validate, FedInputs) {
  Graph graph = sound();
  graph.fed_inputs = {};
  EXPECT_THROW(validate(graph), Error);
  graph = sound();
  graph.fed_inputs.push_back("nobody");
  expect_invalid(graph, {"\"nobody\""});
  graph = sound();
  graph.fed_inputs.push_back("fed");
  expect_invalid(graph, {"\"fed\"", "twice"});
  graph = sound();
  graph.fed_inputs.push_back("rows");  // an input without a state
  expect_invalid(graph, {"\"rows\"", "no state"});
}

}  // namespace
}  // namespace heddle::test
