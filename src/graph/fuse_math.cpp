// Element-wise, norm and product patterns.
#include "graph/fusion.h"

namespace heddle {

namespace {

bool is_gate(UnaryKind kind) {
  return kind == UnaryKind::silu || kind == UnaryKind::gelu || kind == UnaryKind::gelu_tanh ||
         kind == UnaryKind::relu;
}

bool is_binary(const GraphNode& node, BinaryKind kind) {
  const auto* binary = std::get_if<Binary>(&node.op);
  return binary && binary->kind == kind;
}

/// More weights in one op gain nothing: what they share, the rounding of the input, is by then a
/// small part of the work.
constexpr std::size_t kMostWeights = 16;

}  // namespace

/// act(gate) * up, either way around.
void join_gated_multiply(Fusion& fusion, NodeId multiply) {
  if (!is_binary(fusion.node(multiply), BinaryKind::multiply)) return;
  for (const std::size_t side : {0u, 1u}) {
    const ValueId activated = fusion.node(multiply).inputs[side];
    const ValueId up = fusion.node(multiply).inputs[1 - side];
    const auto* unary = fusion.sole_use_of<Unary>(activated);
    if (!unary || !is_gate(unary->kind)) continue;
    const NodeId activation = activated.node;
    if (!fusion.can_read_later(activation, multiply)) continue;
    const GatedMultiply fused{unary->kind};
    const std::vector<ValueId> inputs{fusion.node(activation).inputs[0], up};
    if (!fusion.is_worthwhile({activation, multiply}, fused, inputs)) continue;
    fusion.set(multiply, fused, inputs);
    fusion.drop(activation);
    return;
  }
}

/// rms_norm(a + b), where the sum stands: whoever else reads it finds it there.
void join_add_rms_norm(Fusion& fusion, NodeId norm) {
  const GraphNode& node = fusion.node(norm);
  const auto* rms_norm = std::get_if<RmsNorm>(&node.op);
  if (!rms_norm) return;
  const NodeId add = node.inputs[0].node;
  const GraphNode& sum = fusion.node(add);
  if (sum.dead || !is_binary(sum, BinaryKind::add)) return;
  if (!fusion.can_read_earlier(norm, 1, add)) return;
  const AddRmsNorm fused{rms_norm->eps, rms_norm->has_weight, rms_norm->has_bias};
  std::vector<ValueId> inputs = sum.inputs;
  inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
  if (!fusion.is_worthwhile({add, norm}, fused, inputs)) return;
  fusion.set(add, fused, std::move(inputs));
  fusion.replace(norm, add, 1);
}

/// linear(x, w1), linear(x, w2), ... as linear(x, w1, w2, ...), where the first stands.
void LinearGroups::join(Fusion& fusion, NodeId linear) {
  const GraphNode& node = fusion.node(linear);
  if (!std::holds_alternative<Linear>(node.op)) return;
  const auto [found, is_first] = first_.try_emplace({node.inputs[0], node.pin}, linear);
  if (is_first) return;
  const NodeId first = found->second;
  std::vector<ValueId> inputs = fusion.node(first).inputs;
  const auto outputs = static_cast<std::uint32_t>(inputs.size() - 1);
  inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
  if (inputs.size() - 1 > kMostWeights || !fusion.can_read_earlier(linear, 1, first) ||
      !fusion.is_worthwhile({first, linear}, Linear{}, inputs)) {
    found->second = linear;
    return;
  }
  fusion.set(first, Linear{}, std::move(inputs));
  fusion.replace(linear, first, outputs);
}

}  // namespace heddle
