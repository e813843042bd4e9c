#include "graph/capture.h"

#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "array/reach.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

Constant constant_of(const Array& array) {
  const View& view = array.node()->result(array.output());
  // Not in memory that a device would take along when it is lost.
  const bool on_cpu = view.buffer && &view.buffer->device() == &cpu_device();
  if (on_cpu && view.offset == 0 && is_contiguous(view.operand)) {
    view.buffer->wait_for_writes();
    return {view.spec(), view.buffer};
  }
  const std::vector<std::byte> bytes = array.to_bytes();
  Ref<Buffer> data = allocate_host(bytes.size());
  if (!bytes.empty()) std::memcpy(data->host(), bytes.data(), bytes.size());
  return {array.spec(), std::move(data)};
}

class Builder {
 public:
  ValueId value_of(const Array& array) {
    const Node* node = array.node().get();
    if (const auto found = nodes_.find(node); found != nodes_.end()) {
      return {found->second, array.output()};
    }
    const auto [found, added] = values_.try_emplace({node, array.output()}, ValueId{});
    if (added) {
      Constant constant = constant_of(array);
      const TensorSpec spec = constant.spec;
      found->second = {add({std::move(constant), {}, {spec}}), 0};
    }
    return found->second;
  }

  void add_node(const Reached& found) {
    if (std::holds_alternative<Depends>(found.node->op())) return forward(found);
    GraphNode node{found.node->op(), {}, {}};
    for (std::uint32_t i = 0; i < found.node->output_count(); ++i) {
      node.outputs.push_back(found.node->spec(i));
    }
    node.inputs.reserve(found.inputs.size());
    for (const Array& input : found.inputs) node.inputs.push_back(value_of(input));
    if (!is_leaf(node.op)) node.pin = found.node->pin();
    nodes_.emplace(found.node.get(), add(std::move(node)));
  }

  /// A graph has one order, in which what a value depends on was built before it.
  void forward(const Reached& found) {
    for (std::uint32_t i = 0; i < found.node->output_count(); ++i) {
      values_[{found.node.get(), i}] = value_of(found.inputs[i]);
    }
  }

  Graph graph;

 private:
  NodeId add(GraphNode node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph.nodes.size() - 1);
  }

  std::unordered_map<const Node*, NodeId> nodes_;
  std::map<std::pair<const Node*, std::uint32_t>, ValueId> values_;  // constants and forwarded
};

}  // namespace

Captured capture(std::span<const Array> roots) {
  const std::vector<Reached> found = reach(roots);
  Builder builder;
  builder.graph.nodes.reserve(found.size());
  for (const Reached& node : found) {
    if (!node.done) builder.add_node(node);
  }
  std::vector<ValueId> values;
  for (const Array& root : roots) values.push_back(builder.value_of(root));
  return {std::move(builder.graph), std::move(values)};
}

}  // namespace heddle
