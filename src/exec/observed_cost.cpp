#include "exec/observed_cost.h"

#include <algorithm>
#include <set>

#include "graph/values.h"

namespace heddle {

RunCosts::RunCosts(const Graph& graph, const std::vector<std::string>& extents,
                   std::span<const NamedTensor> inputs)
    : graph_(graph), extents_(extents) {
  for (const auto& [name, tensor] : inputs) {
    if (tensor.spec.dtype != DType::i32) continue;
    ids_.emplace(name, std::span(reinterpret_cast<const std::int32_t*>(tensor.bytes.data()),
                                 tensor.bytes.size() / sizeof(std::int32_t)));
  }
}

std::optional<std::int64_t> RunCosts::extent_of(NodeId node) const {
  const auto found = extents_[node].empty() ? ids_.end() : ids_.find(extents_[node]);
  if (found == ids_.end() || found->second.empty()) return std::nullopt;
  return std::max<std::int64_t>(found->second[0], 0);
}

std::int64_t RunCosts::rows(NodeId node, std::uint32_t output) const {
  const GraphNode& n = graph_.nodes[node];
  const Shape& shape = n.outputs[output].shape;
  if (shape.empty()) return 1;
  const bool state = writes_state(n.op) && output == 0;
  const std::optional<std::int64_t> extent = state ? std::nullopt : extent_of(node);
  return extent ? std::min(*extent, shape[0]) : shape[0];
}

/// The values of an i32 input that the value shows unchanged; none if it is no such thing.
std::span<const std::int32_t> RunCosts::ids(ValueId value) const {
  const auto* input = std::get_if<Input>(&graph_.node(value).op);
  const auto found = input ? ids_.find(input->name) : ids_.end();
  return found == ids_.end() ? std::span<const std::int32_t>() : found->second;
}

std::optional<Cost> RunCosts::attend_cost(const Attend& op, const GraphNode& node) const {
  const auto sequence = ids(node.inputs[4]), position = ids(node.inputs[5]),
             length = ids(node.inputs[6]);
  if (sequence.empty() || position.empty() || length.empty()) return std::nullopt;
  double pairs = 0, tokens = 0;
  std::set<std::int32_t> sequences;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    if (sequence[t] < 0) continue;
    const std::int64_t seen = std::int64_t{position[t]} + 1;
    pairs += static_cast<double>(op.window > 0 ? std::min(seen, op.window) : seen);
    sequences.insert(sequence[t]);
    ++tokens;
  }
  double positions = 0;
  for (const std::int32_t s : sequences) {
    positions += std::max<std::int32_t>(length[static_cast<std::size_t>(s)], 0);
  }
  const TensorSpec &q = graph_.spec(node.inputs[0]), &out = node.outputs[0];
  const auto bytes_a_row = [](const TensorSpec& spec) {
    return spec.shape[0] == 0
               ? 0.0
               : static_cast<double>(byte_size(spec)) / static_cast<double>(spec.shape[0]);
  };
  const double keys_and_values =
      bytes_a_row(graph_.spec(node.inputs[1])) + bytes_a_row(graph_.spec(node.inputs[2]));
  // Four for a product and a sum with keys and with values, and four for softmax.
  const double each = static_cast<double>(q.shape[1]) * (4.0 * static_cast<double>(q.shape[2]) + 4);
  return Cost{tokens * (bytes_a_row(q) + bytes_a_row(out)) + positions * keys_and_values,
              pairs * each};
}

Cost RunCosts::of(NodeId id) const {
  const GraphNode& node = graph_.nodes[id];
  if (const auto* attend = std::get_if<Attend>(&node.op)) {
    if (const auto spent = attend_cost(*attend, node)) return *spent;
  }
  std::vector<TensorSpec> inputs = input_specs(graph_, node), outputs = node.outputs;
  if (const std::optional<std::int64_t> extent = extent_of(id)) {
    const std::vector<TensorSpec> whole = inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].shape.empty() && is_row_operand(node.op, i, whole)) {
        inputs[i].shape[0] = std::min(inputs[i].shape[0], *extent);
      }
    }
    for (std::uint32_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].shape.empty()) outputs[o].shape[0] = rows(id, o);
    }
  }
  return cost(node.op, inputs, outputs);
}

}  // namespace heddle
