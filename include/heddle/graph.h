// Graphs: immutable copies of the nodes that a computation needs, in build order.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/array.h"

namespace heddle {

using NodeId = std::uint32_t;

/// One output of one node.
struct ValueId {
  NodeId node = 0;
  std::uint32_t output = 0;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

struct GraphNode {
  Op op;
  std::vector<ValueId> inputs;
  std::vector<TensorSpec> outputs;
  Device* pin = nullptr;  // the device it must run on, or null
  bool dead = false;      // kept in place by passes, never run
};

/// Nodes in an order in which sources come before consumers: the one order that planning, execution
/// and liveness use. Holds no Node or Array. Immutable once built; passes make new graphs.
///
/// A write (write_rows, rope_write_rows, feed) makes the next version of what operand 0 names, in
/// its memory. That is a StateRef, another write's output, or a value that a kernel made, and never
/// a view. Each version is written at most once, and nothing reads it, through views or otherwise,
/// after the write: `capture`d graphs copy before the write what is read later.
///
/// Feeds come last. A fed input has the state of the same name: it reads that state, unless a run
/// gives it a value, and the Feed that overwrites the state comes after every read.
struct Graph {
  struct Named {
    std::string name;
    ValueId value;
  };
  std::vector<GraphNode> nodes;
  std::vector<Named> outputs;  // results, by name
  /// The last version of each state that a run writes, by the state's name, feeds included: what
  /// the next run begins with.
  std::vector<Named> state_updates;
  std::vector<std::string> fed_inputs;  // inputs that are read from the state of the same name

  const TensorSpec& spec(ValueId value) const { return nodes[value.node].outputs[value.output]; }
  const GraphNode& node(ValueId value) const { return nodes[value.node]; }
};

/// Checks everything that passes and plans rely on: order, arities, specs as `infer` gives them,
/// live nodes that read dead ones, unique names, one chain of versions per state (two writes of one
/// version, a read of an overwritten one and a written state without its update are errors),
/// extents that name i32 scalar inputs, feeds after all reads. Throws invalid_argument naming the
/// node.
void validate(const Graph& graph);

using FeedKind = Feed::Kind;

/// Builds a graph from named parts. Its arrays are ordinary lazy arrays on named leaves, and cannot
/// be evaluated (their leaves have no values). Not thread-safe.
class GraphBuilder {
 public:
  /// What each run is given. `extent` names the i32 scalar input with the number of leading rows
  /// that count; it is made if need be. The names of inputs, parameters and states are distinct:
  /// each of these throws invalid_argument for one that is taken or empty.
  Array input(const std::string& name, const TensorSpec& spec, const std::string& extent = "");
  Array parameter(const std::string& name, const TensorSpec& spec);
  /// The state as a run finds it. Bind an object to the name before running.
  Array state(const std::string& name, const TensorSpec& spec);

  void output(const std::string& name, const Array& value);
  /// Makes `value`, which came from `state(name)` through write_rows, the state's last version.
  /// Every state that is written needs it.
  void update(const std::string& state, const Array& value);
  /// An input that is read from a state of the same name, and to which output `value` is folded
  /// back after each run that succeeds. `prefix` and `row` name the i32 scalar input that says how
  /// many rows, or which.
  void feed(const Array& input, const Array& value, FeedKind kind, const std::string& extent = "");

  /// The graph of every input and state, and of all that the outputs, updates and feeds need, in
  /// build order, validated. May be called again after more was added.
  Graph build() const;

 private:
  struct Result {
    std::string name;
    Array value;
  };
  struct FedBack {
    std::string input;
    Array value;
    FeedKind kind;
    std::string extent;
  };
  Array leaf(const std::string& name, Op op);
  void need_extent(const std::string& name);
  void append_feeds(Graph& graph, const std::vector<ValueId>& values) const;

  std::map<std::string, Array> leaves_;
  std::vector<Result> outputs_, updates_;
  std::vector<FedBack> feeds_;
};

/// Traces `function` on inputs "0", "1", ... of the given specs; outputs are named alike. Arrays
/// that the function captured and that have values become constants.
Graph trace(const std::function<std::vector<Array>(const std::vector<Array>&)>& function,
            std::span<const TensorSpec> inputs);

std::string to_text(const Graph& graph);  // one node a line
std::string to_dot(const Graph& graph);
std::string to_json(const Graph& graph);

}  // namespace heddle
