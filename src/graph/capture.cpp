#include "graph/capture.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "array/reach.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

/// Numbers of nodes, by address: an open table, since a capture asks for every edge.
class NodeNumbers {
 public:
  /// The node's number, and whether it has just been given it: `next`.
  std::pair<std::uint32_t, bool> number(const Node* node, std::uint32_t next) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(node);
    if (slot.node) return {slot.number, false};
    slot = {node, next};
    ++used_;
    return {next, true};
  }
  /// Of a node that has one.
  std::uint32_t operator[](const Node* node) { return slot_of(node).number; }

 private:
  struct Slot {
    const Node* node = nullptr;
    std::uint32_t number = 0;
  };

  Slot& slot_of(const Node* node) {
    // The golden ratio's bits spread addresses, whose own low ones are all alike.
    const std::uint64_t spread = std::bit_cast<std::uintptr_t>(node) * 0x9e3779b97f4a7c15u;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (spread >> 32) & mask;
    while (slots_[at].node && slots_[at].node != node) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(256, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.node) slot_of(slot.node) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

/// What is to be captured: every node that the roots reach without passing through one that is
/// done, and those that are.
struct Wanted {
  struct Found {
    Ref<Node> node;
    std::uint32_t number = 0;
    std::uint32_t first_input = 0, input_count = 0;
    bool done = false;
  };
  std::vector<Found> found;  // in creation order
  std::vector<Array> inputs;
  NodeNumbers numbers;

  std::span<const Array> inputs_of(const Found& node) const {
    return std::span(inputs).subspan(node.first_input, node.input_count);
  }
};

Wanted find_wanted(std::span<const Array> roots) {
  Wanted wanted;
  auto& [found, inputs, numbers] = wanted;
  const auto visit = [&](const Array& array) {
    const auto next = static_cast<std::uint32_t>(found.size());
    const auto [number, is_new] = numbers.number(array.node().get(), next);
    if (is_new) found.push_back({.node = array.node(), .number = number});
  };
  for (const Array& root : roots) visit(root);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t first = inputs.size();
    const bool done = !follow_inputs(*found[i].node, inputs);
    found[i].first_input = static_cast<std::uint32_t>(first);
    found[i].input_count = static_cast<std::uint32_t>(inputs.size() - first);
    found[i].done = done;
    for (std::size_t input = first; input < inputs.size(); ++input) visit(inputs[input]);
  }
  std::ranges::sort(found, {}, [](const Wanted::Found& f) { return f.node->sequence(); });
  return wanted;
}

class Builder {
 public:
  explicit Builder(Wanted& reached) : reached_(reached), ids_(reached.found.size(), kNoNode) {
    graph.nodes.reserve(reached.found.size());
    for (const Wanted::Found& found : reached.found) {
      if (!found.done) add_node(found);
    }
  }

  ValueId value_of(const Array& array) {
    const Node* node = array.node().get();
    if (const NodeId id = ids_[reached_.numbers[node]]; id != kNoNode) return {id, array.output()};
    const auto [found, added] = values_.try_emplace({node, array.output()}, ValueId{});
    if (added) {
      Constant constant = constant_of(array);
      const TensorSpec spec = constant.spec;
      found->second = {add({std::move(constant), {}, {spec}}), 0};
    }
    return found->second;
  }

  Graph graph;

 private:
  void add_node(const Wanted::Found& found) {
    if (std::holds_alternative<Depends>(found.node->op())) return forward(found);
    GraphNode node{found.node->op(), {}, {}};
    node.outputs.reserve(found.node->output_count());
    for (std::uint32_t i = 0; i < found.node->output_count(); ++i) {
      node.outputs.push_back(found.node->spec(i));
    }
    node.inputs.reserve(found.input_count);
    for (const Array& input : reached_.inputs_of(found)) node.inputs.push_back(value_of(input));
    if (!is_leaf(node.op)) node.pin = found.node->pin();
    ids_[found.number] = add(std::move(node));
  }

  /// A graph has one order, in which what a value depends on was built before it.
  void forward(const Wanted::Found& found) {
    const std::span<const Array> inputs = reached_.inputs_of(found);
    for (std::uint32_t i = 0; i < found.node->output_count(); ++i) {
      values_[{found.node.get(), i}] = value_of(inputs[i]);
    }
  }

  NodeId add(GraphNode node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph.nodes.size() - 1);
  }

  Wanted& reached_;
  std::vector<NodeId> ids_;                                          // by the node's number
  std::map<std::pair<const Node*, std::uint32_t>, ValueId> values_;  // constants and forwarded
};

}  // namespace

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

Captured capture(std::span<const Array> roots) {
  Wanted wanted = find_wanted(roots);
  Builder builder(wanted);
  std::vector<ValueId> values;
  values.reserve(roots.size());
  for (const Array& root : roots) values.push_back(builder.value_of(root));
  return {std::move(builder.graph), std::move(values)};
}

}  // namespace heddle
