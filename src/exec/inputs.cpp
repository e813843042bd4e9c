#include "exec/inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/check.h"
#include "exec/planner.h"

namespace heddle {

namespace {

/// The integer at `index` of a tensor of any integer type.
std::int64_t integer_at(const HostTensor& tensor, std::size_t index) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
    return static_cast<std::int64_t>(value);
  };
  switch (tensor.spec.dtype) {
    case DType::u8:
      return as(std::uint8_t{});
    case DType::u16:
      return as(std::uint16_t{});
    case DType::u32:
      return as(std::uint32_t{});
    case DType::i8:
      return as(std::int8_t{});
    case DType::i16:
      return as(std::int16_t{});
    case DType::i32:
      return as(std::int32_t{});
    default:
      return as(std::int64_t{});
  }
}

/// The leaf whose elements the value shows, all of them and in order, if it is one.
const GraphNode* whole_leaf(const Graph& graph, ValueId value) {
  const GraphNode* node = &graph.node(value);
  while (std::holds_alternative<Reshape>(node->op) || std::holds_alternative<Squeeze>(node->op) ||
         std::holds_alternative<ExpandDims>(node->op)) {
    node = &graph.node(node->inputs[0]);
  }
  return is_leaf(node->op) ? node : nullptr;
}

/// The state that a value is a version of, if it is.
const StateRef* state_behind(const Graph& graph, ValueId value) {
  const GraphNode* node = &graph.node(value);
  while (!node->inputs.empty() && (writes_state(node->op) || is_view(node->op)))
    node = &graph.node(node->inputs[0]);
  return std::get_if<StateRef>(&node->op);
}

}  // namespace

InputChecker::InputChecker(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    if (!input) continue;
    const bool fed = std::find(graph.fed_inputs.begin(), graph.fed_inputs.end(), input->name) !=
                     graph.fed_inputs.end();
    known_[input->name] = {input->spec, input->extent, fed, {}};
  }
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].dead) find_bounds(graph, n);
  }
}

void InputChecker::find_bounds(const Graph& graph, NodeId n) {
  const GraphNode& node = graph.nodes[n];
  for (const IndexBound& bound : index_bounds(node.op)) {
    const GraphNode* leaf = whole_leaf(graph, node.inputs[bound.operand]);
    const auto* input = leaf ? std::get_if<Input>(&leaf->op) : nullptr;
    if (!input || !is_integer(input->spec.dtype)) continue;
    const ValueId indexed = node.inputs[bound.of];
    Bound checked{
        .minimum = bound.minimum, .divisor = bound.divisor, .user = std::string(name(node.op))};
    checked.limit = graph.spec(indexed).shape[bound.axis] * bound.multiplier / bound.divisor +
                    (bound.inclusive ? 1 : 0);
    if (const StateRef* state = state_behind(graph, indexed); state && bound.axis == 0)
      checked.state = state->name;
    std::vector<Bound>& bounds = known_.at(input->name).bounds;
    const bool seen = std::any_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return b.minimum == checked.minimum && b.limit == checked.limit && b.state == checked.state &&
             b.divisor == checked.divisor;
    });
    if (!seen) bounds.push_back(std::move(checked));
  }
}

bool InputChecker::is_fed(std::string_view name) const {
  const auto it = known_.find(name);
  return it != known_.end() && it->second.fed;
}

void InputChecker::check(std::span<const NamedTensor> given,
                         const std::map<std::string, std::int64_t>& state_rows) const {
  std::map<std::string_view, const HostTensor*> by_name;
  for (const NamedTensor& named : given) {
    require(known_.contains(named.name), ErrorCode::invalid_argument, "run: there is no input '{}'",
            named.name);
    require(by_name.emplace(named.name, &named.tensor).second, ErrorCode::invalid_argument,
            "run: input '{}' is given twice", named.name);
    const TensorSpec& spec = known_.find(named.name)->second.spec;
    require(named.tensor.spec == spec && named.tensor.bytes.size() == byte_size(spec),
            ErrorCode::invalid_argument,
            "run: input '{}' is {} ({} bytes); the graph takes {} ({} bytes)", named.name,
            to_string(named.tensor.spec), named.tensor.bytes.size(), to_string(spec),
            byte_size(spec));
  }
  for (const auto& [name, known] : known_) {
    const auto it = by_name.find(name);
    if (it == by_name.end()) {
      require(known.fed, ErrorCode::invalid_argument, "run: input '{}' ({}) is missing", name,
              to_string(known.spec));
      continue;
    }
    std::int64_t rows = known.spec.shape.empty() ? 1 : known.spec.shape[0];
    if (const auto extent = by_name.find(known.extent); extent != by_name.end()) {
      const std::int64_t counted = integer_at(*extent->second, 0);
      require(0 <= counted && counted <= rows, ErrorCode::invalid_argument,
              "run: input '{}' says that {} rows of '{}' count; it has {}", known.extent, counted,
              name, rows);
      rows = counted;
    }
    check_tensor(name, known, *it->second, rows, state_rows);
  }
}

void InputChecker::check_tensor(const std::string& name, const Known& known,
                                const HostTensor& tensor, std::int64_t rows,
                                const std::map<std::string, std::int64_t>& state_rows) const {
  if (known.bounds.empty()) return;
  const std::int64_t per_row = known.spec.shape.empty() || known.spec.shape[0] == 0
                                   ? 1
                                   : elements(known.spec.shape) / known.spec.shape[0];
  for (const Bound& bound : known.bounds) {
    const auto state = state_rows.find(bound.state);
    const std::int64_t limit =
        state == state_rows.end() ? bound.limit : state->second / bound.divisor;
    for (std::int64_t i = 0; i < rows * per_row; ++i) {
      const std::int64_t value = integer_at(tensor, static_cast<std::size_t>(i));
      require(bound.minimum <= value && value < limit, ErrorCode::invalid_argument,
              "run: input '{}' holds {} at {}; {} takes {} to {}", name, value, i, bound.user,
              bound.minimum, limit - 1);
    }
  }
}

}  // namespace heddle
