#include "graph/simplify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/capture.h"
#include "graph/passes.h"
#include "graph/values.h"
#include "heddle/device.h"

namespace heddle {

namespace {

constexpr std::size_t kMostFoldedBytes = 64 << 10;

/// Bits that a type's whole numbers take, its sign apart; of floats, those of the mantissa.
struct Width {
  int magnitude;
  bool has_sign;
  int exponent;  // 0 for integers
};

Width width_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return {1, false, 0};
    case DType::u8:
      return {8, false, 0};
    case DType::u16:
      return {16, false, 0};
    case DType::u32:
      return {32, false, 0};
    case DType::u64:
      return {64, false, 0};
    case DType::i8:
      return {7, true, 0};
    case DType::i16:
      return {15, true, 0};
    case DType::i32:
      return {31, true, 0};
    case DType::i64:
      return {63, true, 0};
    case DType::f16:
      return {11, true, 5};
    case DType::bf16:
      return {8, true, 8};
    case DType::f32:
      return {24, true, 8};
    case DType::f64:
      return {53, true, 11};
    default:
      return {0, false, -1};  // complex and block types: nobody asks
  }
}

/// Whether every value of `from` is one of `to`. To bool, nothing but bool is.
bool holds_all_of(DType to, DType from) {
  if (to == from) return true;
  const Width a = width_of(from), b = width_of(to);
  if (a.exponent < 0 || b.exponent < 0 || to == DType::bool_) return false;
  if (a.exponent > 0 && b.exponent == 0) return false;
  if (a.has_sign && !b.has_sign) return false;
  // The largest f16 is below 2^16: integers of 11 bits fit it.
  return a.magnitude <= b.magnitude && a.exponent <= b.exponent;
}

bool writes(const Op& op) {
  return writes_state(op) || std::holds_alternative<Feed>(op);
}

bool broadcasts_by_itself(const Op& op) {
  return std::holds_alternative<Binary>(op) || std::holds_alternative<Compare>(op) ||
         std::holds_alternative<Select>(op);
}

bool is_identity_order(const Dims& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& from) : from_(from), rebuild_(from) {
    for (const GraphNode& node : from.nodes) {
      if (!node.dead && writes(node.op)) written_.insert(node.inputs[0].node);
    }
  }

  Graph run() {
    for (NodeId id = 0; id < from_.nodes.size(); ++id) {
      if (!from_.nodes[id].dead) visit(id);
    }
    return without_dead(mark_dead(rebuild_.finish()));
  }

 private:
  const GraphNode& made(ValueId value) { return rebuild_.graph().node(value); }

  void visit(NodeId id) {
    GraphNode node = from_.nodes[id];
    node.inputs = rebuild_.mapped(node.inputs);
    if (written_.contains(id)) return keep(id, std::move(node));
    if (!writes(node.op) && !is_leaf(node.op)) {
      join_views(node);
      leave_out_broadcasts(node);
      if (const std::optional<ValueId> same = unchanged(node)) return map(id, *same);
    }
    const auto outputs = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId now = find_or_add(std::move(node));
    for (std::uint32_t i = 0; i < outputs; ++i) rebuild_.map({id, i}, {now, i});
  }

  /// What a write will overwrite is nobody else's, and no constant.
  void keep(NodeId id, GraphNode node) {
    const auto outputs = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId now = rebuild_.add(std::move(node));
    known_.resize(now + 1);
    for (std::uint32_t i = 0; i < outputs; ++i) rebuild_.map({id, i}, {now, i});
  }

  void map(NodeId id, ValueId value) { rebuild_.map({id, 0}, value); }

  // ---- Common subexpressions

  NodeId find_or_add(GraphNode node) {
    const bool shared = !writes(node.op) && !std::holds_alternative<Input>(node.op) &&
                        !std::holds_alternative<StateRef>(node.op);
    if (!shared) return add(std::move(node));
    std::size_t key = key_of(node.op);
    for (const ValueId input : node.inputs) {
      key = key * 1000003 + (std::size_t{input.node} << 4) + input.output;
    }
    const auto [begin, end] = seen_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      const GraphNode& other = rebuild_.graph().nodes[it->second];
      if (other.pin == node.pin && other.inputs == node.inputs && equal(other.op, node.op)) {
        return it->second;
      }
    }
    const NodeId now = add(std::move(node));
    seen_.emplace(key, now);
    return now;
  }

  static std::size_t key_of(const Op& op) {
    const auto* constant = std::get_if<Constant>(&op);
    if (!constant) return hash(op);
    const std::size_t bytes = std::min(byte_size(constant->spec), std::size_t{64});
    const auto* data = reinterpret_cast<const char*>(constant->data->host());
    return std::hash<std::string_view>()({data, bytes});
  }

  /// Constants are equal if their bytes are.
  static bool equal(const Op& a, const Op& b) {
    const auto* one = std::get_if<Constant>(&a);
    const auto* other = std::get_if<Constant>(&b);
    if (!one || !other) return a == b;
    if (one->spec != other->spec) return false;
    const std::size_t bytes = byte_size(one->spec);
    return one->data == other->data ||
           (bytes <= kMostFoldedBytes &&
            std::memcmp(one->data->host(), other->data->host(), bytes) == 0);
  }

  NodeId add(GraphNode node) {
    std::vector<std::optional<Array>> known = values_of(node);
    fold(node, known);
    const NodeId now = rebuild_.add(std::move(node));
    known_.resize(rebuild_.graph().nodes.size());
    known_[now] = std::move(known);
    return now;
  }

  // ---- What follows from constants

  std::vector<std::optional<Array>> values_of(const GraphNode& node) {
    if (const auto* constant = std::get_if<Constant>(&node.op)) {
      return {Array::from_view({constant->data, 0, OperandSpec::contiguous(constant->spec)})};
    }
    std::vector<Array> inputs;
    for (const ValueId input : node.inputs) {
      const auto& known = known_[input.node];
      if (known.empty() || !known[input.output]) return {};
      inputs.push_back(*known[input.output]);
    }
    const bool computes =
        !is_leaf(node.op) && !writes(node.op) && !std::holds_alternative<Repack>(node.op);
    if (!computes || (inputs.empty() && !std::holds_alternative<Arange>(node.op))) return {};
    const DeviceScope scope(cpu_device());
    std::vector<std::optional<Array>> outputs;
    for (Array& output : apply_multi(node.op, std::move(inputs))) outputs.emplace_back(output);
    return outputs;
  }

  /// Views stay views: they take no memory.
  static void fold(GraphNode& node, const std::vector<std::optional<Array>>& known) {
    if (known.size() != 1 || is_leaf(node.op) || is_view(node.op)) return;
    if (byte_size(node.outputs[0]) > kMostFoldedBytes) return;
    known[0]->eval();
    node = {constant_of(*known[0]), {}, node.outputs, nullptr};
  }

  // ---- Views and casts

  /// The op that makes an input, if it is a T.
  template <class T>
  const T* maker(ValueId value) {
    return std::get_if<T>(&made(value).op);
  }

  void join_views(GraphNode& node) {
    if (node.inputs.empty()) return;
    ValueId& input = node.inputs[0];
    if (std::holds_alternative<Cast>(node.op)) {
      while (const auto* inner = maker<Cast>(input)) {
        const ValueId source = made(input).inputs[0];
        if (!holds_all_of(inner->dtype, rebuild_.graph().spec(source).dtype)) break;
        if (is_block(rebuild_.graph().spec(source).dtype)) break;
        input = source;
      }
    } else if (std::holds_alternative<Reshape>(node.op)) {
      while (maker<Reshape>(input)) input = made(input).inputs[0];
    } else if (std::holds_alternative<Broadcast>(node.op)) {
      while (maker<Broadcast>(input)) input = made(input).inputs[0];
    } else if (auto* transpose = std::get_if<Transpose>(&node.op)) {
      while (const auto* inner = maker<Transpose>(input)) {
        Dims axes = transpose->axes;
        for (std::int64_t& axis : axes) axis = inner->axes[static_cast<std::size_t>(axis)];
        transpose->axes = axes;
        input = made(input).inputs[0];
      }
    }
  }

  /// A Broadcast before an op that broadcasts, if the op's result stays as large without it.
  void leave_out_broadcasts(GraphNode& node) {
    if (!broadcasts_by_itself(node.op)) return;
    for (ValueId& input : node.inputs) {
      if (!maker<Broadcast>(input)) continue;
      const ValueId before = std::exchange(input, made(input).inputs[0]);
      std::vector<TensorSpec> specs;
      for (const ValueId value : node.inputs) specs.push_back(rebuild_.graph().spec(value));
      if (infer(node.op, specs) != node.outputs) input = before;
    }
  }

  /// The value that the node would only repeat.
  std::optional<ValueId> unchanged(const GraphNode& node) {
    if (node.inputs.empty() || node.outputs.size() != 1 || node.pin) return std::nullopt;
    const ValueId input = node.inputs[0];
    const TensorSpec& spec = rebuild_.graph().spec(input);
    if (const auto* transpose = std::get_if<Transpose>(&node.op)) {
      return is_identity_order(transpose->axes) ? std::optional(input) : std::nullopt;
    }
    if (const auto* slice = std::get_if<Slice>(&node.op)) {
      const bool whole = slice->step == Dims(spec.shape.size(), 1) && node.outputs[0] == spec;
      return whole ? std::optional(input) : std::nullopt;
    }
    const bool repeats =
        std::holds_alternative<Cast>(node.op) || std::holds_alternative<Reshape>(node.op) ||
        std::holds_alternative<Broadcast>(node.op) || std::holds_alternative<Squeeze>(node.op) ||
        std::holds_alternative<ExpandDims>(node.op);
    if (repeats) return node.outputs[0] == spec ? std::optional(input) : std::nullopt;
    if (const auto* binary = std::get_if<Binary>(&node.op)) return without_one(*binary, node);
    return std::nullopt;
  }

  /// x * 1, 1 * x, x / 1, x - 0: of reals, since a complex product rounds.
  std::optional<ValueId> without_one(const Binary& op, const GraphNode& node) {
    const bool multiplies = op.kind == BinaryKind::multiply;
    const bool other_way = multiplies && is_all(node.inputs[0], 1);
    const double neutral = op.kind == BinaryKind::subtract ? 0 : 1;
    const bool neutral_kind =
        multiplies || op.kind == BinaryKind::divide || op.kind == BinaryKind::subtract;
    if (!neutral_kind || node.outputs[0].dtype == DType::complex64) return std::nullopt;
    const ValueId kept = node.inputs[other_way ? 1 : 0];
    if (!other_way && !is_all(node.inputs[1], neutral)) return std::nullopt;
    return rebuild_.graph().spec(kept) == node.outputs[0] ? std::optional(kept) : std::nullopt;
  }

  bool is_all(ValueId value, double number) {
    const auto& known = known_[value.node];
    if (known.empty() || !known[value.output]) return false;
    const Array& array = *known[value.output];
    if (array.size() != 1 || array.dtype() == DType::complex64 || is_block(array.dtype())) {
      return false;
    }
    const Array as_double = heddle::apply(Cast{DType::f64}, {array});
    const double found = as_double.item<double>();
    return found == number && !(number == 0 && std::signbit(found));
  }

  // ---- The end

  static Graph without_dead(const Graph& marked) {
    Rebuild rebuild(marked);
    for (NodeId id = 0; id < marked.nodes.size(); ++id) {
      if (!marked.nodes[id].dead) rebuild.keep(id);
    }
    return rebuild.finish();
  }

  const Graph& from_;
  Rebuild rebuild_;
  std::unordered_set<NodeId> written_;  // old nodes that a write takes the place of
  std::unordered_multimap<std::size_t, NodeId> seen_;
  std::vector<std::vector<std::optional<Array>>> known_;  // by new node; empty where data decide
};

}  // namespace

Graph simplify(const Graph& graph) {
  Graph simple = Simplifier(graph).run();
  validate(simple);
  return simple;
}

}  // namespace heddle
