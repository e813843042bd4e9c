#include "exec/inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>

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

InputChecker::InputChecker(const Graph& graph, std::span<const StateUser> states) {
  for (const GraphNode& node : graph.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    if (!input) continue;
    const bool fed = std::ranges::find(graph.fed_inputs, input->name) != graph.fed_inputs.end();
    known_.push_back({.name = input->name, .spec = input->spec, .fed = fed});
  }
  std::ranges::sort(known_, {}, &Known::name);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (const auto* input = std::get_if<Input>(&graph.nodes[n].op))
      known_[*index_of(input->name)].extent = index_of(input->extent);
    if (!graph.nodes[n].dead) find_bounds(graph, n, states);
  }
}

std::optional<std::size_t> InputChecker::index_of(std::string_view name) const {
  const auto it = std::ranges::lower_bound(known_, name, {}, &Known::name);
  if (it == known_.end() || it->name != name) return std::nullopt;
  return static_cast<std::size_t>(it - known_.begin());
}

void InputChecker::find_bounds(const Graph& graph, NodeId n, std::span<const StateUser> states) {
  const GraphNode& node = graph.nodes[n];
  for (const IndexBound& bound : index_bounds(node.op)) {
    const GraphNode* leaf = whole_leaf(graph, node.inputs[bound.operand]);
    const auto* input = leaf ? std::get_if<Input>(&leaf->op) : nullptr;
    if (!input || !is_integer(input->spec.dtype)) continue;
    const ValueId indexed = node.inputs[bound.of];
    Bound checked{.minimum = bound.minimum,
                  .divisor = bound.divisor,
                  .wraps = bound.wraps && info(input->spec.dtype).kind == DTypeKind::signed_int,
                  .user = std::string(name(node.op))};
    checked.limit = graph.spec(indexed).shape[bound.axis] * bound.multiplier / bound.divisor +
                    (bound.inclusive ? 1 : 0);
    if (const StateRef* state = state_behind(graph, indexed); state && bound.axis == 0) {
      const auto user = std::ranges::find(states, state->name, &StateUser::name);
      if (user != states.end()) checked.state = user - states.begin();
    }
    std::vector<Bound>& bounds = known_[*index_of(input->name)].bounds;
    const bool seen = std::any_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      return b.minimum == checked.minimum && b.limit == checked.limit && b.state == checked.state &&
             b.divisor == checked.divisor && b.wraps == checked.wraps;
    });
    if (!seen) bounds.push_back(std::move(checked));
  }
}

InputChecker::Given InputChecker::sort_out(std::span<const NamedTensor> given) const {
  Given sorted(known_.size());
  for (const NamedTensor& named : given) {
    const auto index = index_of(named.name);
    require(index.has_value(), ErrorCode::invalid_argument, "run: there is no input '{}'",
            named.name);
    require(!sorted[*index], ErrorCode::invalid_argument, "run: input '{}' is given twice",
            named.name);
    sorted[*index] = &named.tensor;
    const TensorSpec& spec = known_[*index].spec;
    const auto& [given_spec, bytes] = named.tensor;
    if (given_spec == spec && bytes.size() == byte_size(spec)) continue;
    fail(ErrorCode::invalid_argument,
         "run: input '{}' is {} ({} bytes); the graph takes {} ({} bytes)", named.name,
         to_string(given_spec), bytes.size(), to_string(spec), byte_size(spec));
  }
  return sorted;
}

void InputChecker::check(std::span<const NamedTensor> given,
                         std::span<const std::int64_t> state_rows) const {
  const Given sorted = sort_out(given);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const Known& known = known_[i];
    if (sorted[i]) {
      check_indices(known, *sorted[i], rows_that_count(known, sorted), state_rows);
    } else if (!known.fed) {
      fail(ErrorCode::invalid_argument, "run: input '{}' ({}) is missing", known.name,
           to_string(known.spec));
    }
  }
}

std::int64_t InputChecker::rows_that_count(const Known& known, const Given& given) const {
  const std::int64_t rows = known.spec.shape.empty() ? 1 : known.spec.shape[0];
  if (!known.extent || !given[*known.extent]) return rows;
  const std::int64_t counted = integer_at(*given[*known.extent], 0);
  require(0 <= counted && counted <= rows, ErrorCode::invalid_argument,
          "run: input '{}' says that {} rows of '{}' count; it has {}", known_[*known.extent].name,
          counted, known.name, rows);
  return counted;
}

void InputChecker::check_indices(const Known& known, const HostTensor& tensor, std::int64_t rows,
                                 std::span<const std::int64_t> state_rows) {
  if (known.bounds.empty()) return;
  const std::int64_t per_row = known.spec.shape.empty() || known.spec.shape[0] == 0
                                   ? 1
                                   : elements(known.spec.shape) / known.spec.shape[0];
  for (const Bound& bound : known.bounds) {
    const std::int64_t now = bound.state ? state_rows[*bound.state] : -1;
    const std::int64_t limit = now < 0 ? bound.limit : now / bound.divisor;
    const std::int64_t minimum = bound.wraps ? -limit : bound.minimum;
    for (std::int64_t i = 0; i < rows * per_row; ++i) {
      const std::int64_t value = integer_at(tensor, static_cast<std::size_t>(i));
      require(minimum <= value && value < limit, ErrorCode::invalid_argument,
              "run: input '{}' holds {} at {}; {} takes {} to {}", known.name, value, i, bound.user,
              minimum, limit - 1);
    }
  }
}

}  // namespace heddle
