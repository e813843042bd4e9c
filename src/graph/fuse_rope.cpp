// Bias, rope and write_rows: what happens to q, k and v between their products and attention.
#include "graph/fusion.h"

namespace heddle {

namespace {

/// x = reshape(y + bias) [T, H, D], or x = y + bias in three dimensions, with a bias of one number
/// for each feature of a token.
struct Biased {
  NodeId add;
  std::optional<NodeId> reshape;
  ValueId without_bias, bias;
};

/// The vector behind an operand of an addition that repeats it for every row, if it is one.
std::optional<ValueId> bias_vector(const Fusion& fusion, ValueId operand, std::int64_t features) {
  const GraphNode& maker = fusion.node(operand.node);
  if (std::holds_alternative<Broadcast>(maker.op)) operand = maker.inputs[0];
  if (fusion.spec(operand).shape != Shape{features}) return std::nullopt;
  return operand;
}

/// `at` is the node that would add the bias.
std::optional<Biased> match_bias(const Fusion& fusion, ValueId x, NodeId at) {
  Biased match;
  const TensorSpec& spec = fusion.spec(x);
  if (spec.shape.size() != 3) return std::nullopt;
  if (fusion.sole_use_of<Reshape>(x)) {
    match.reshape = x.node;
    x = fusion.node(x.node).inputs[0];
  }
  const auto* add = fusion.sole_use_of<Binary>(x);
  if (!add || add->kind != BinaryKind::add || !fusion.can_read_later(x.node, at)) {
    return std::nullopt;
  }
  match.add = x.node;
  const Shape& sum = fusion.spec(x).shape;
  const std::int64_t features = spec.shape[1] * spec.shape[2];
  if (sum.empty() || sum.back() != features || sum[0] != spec.shape[0]) return std::nullopt;
  for (const std::size_t side : {1u, 0u}) {
    const ValueId other = fusion.node(match.add).inputs[1 - side];
    const auto bias = bias_vector(fusion, fusion.node(match.add).inputs[side], features);
    if (!bias || fusion.spec(other) != fusion.spec(x)) continue;
    if (!is_contiguous(fusion.layout(other))) continue;  // the reshape would have to copy it
    match.without_bias = other;
    match.bias = *bias;
    return match;
  }
  return std::nullopt;
}

/// Takes the addition out: what read the sum now reads the summand. Returns x without its bias.
ValueId take_bias_out(Fusion& fusion, const Biased& biased) {
  if (biased.reshape) fusion.set_view_source(*biased.reshape, biased.without_bias);
  fusion.drop(biased.add);
  return biased.reshape ? ValueId{*biased.reshape, 0} : biased.without_bias;
}

RopeWriteRows write_of(const Rope* rope, bool has_bias) {
  return rope ? RopeWriteRows{has_bias, true, rope->angles} : RopeWriteRows{has_bias, false, {}};
}

/// state, x, row, then [bias], and what rope has besides x and the bias.
std::vector<ValueId> write_inputs(const GraphNode& write, ValueId x, std::optional<ValueId> bias,
                                  const GraphNode* rope) {
  std::vector<ValueId> inputs{write.inputs[0], x, write.inputs[2]};
  if (bias) inputs.push_back(*bias);
  if (rope) inputs.insert(inputs.end(), rope->inputs.begin() + 1, rope->inputs.end());
  return inputs;
}

/// write_rows(state, y + bias, row)
bool join_bias_write(Fusion& fusion, NodeId write) {
  const ValueId x = fusion.node(write).inputs[1];
  const auto biased = match_bias(fusion, x, write);
  if (!biased) return false;
  const RopeWriteRows fused = write_of(nullptr, true);
  std::vector<ValueId> inputs = write_inputs(fusion.node(write), x, biased->bias, nullptr);
  if (!fusion.is_worthwhile({biased->add, write}, fused, inputs)) return false;
  inputs[1] = take_bias_out(fusion, *biased);
  fusion.set(write, fused, std::move(inputs));
  return true;
}

/// write_rows(state, rope(y + bias), row), where the rope has not taken the bias in.
bool join_bias_rope_write(Fusion& fusion, NodeId write, NodeId rope) {
  const Rope& rope_op = std::get<Rope>(fusion.node(rope).op);
  const ValueId x = fusion.node(rope).inputs[0];
  const auto biased = rope_op.has_bias ? std::nullopt : match_bias(fusion, x, write);
  if (!biased) return false;
  const RopeWriteRows fused = write_of(&rope_op, true);
  std::vector<ValueId> inputs =
      write_inputs(fusion.node(write), x, biased->bias, &fusion.node(rope));
  if (!fusion.is_worthwhile({biased->add, rope, write}, fused, inputs)) return false;
  inputs[1] = take_bias_out(fusion, *biased);
  fusion.set(write, fused, std::move(inputs));
  fusion.drop(rope);
  return true;
}

/// Puts `fused`, which turns rows and writes them, where the write stands.
bool join_turn_into_write(Fusion& fusion, NodeId write, NodeId turn, const Op& fused) {
  const GraphNode& node = fusion.node(turn);
  std::vector<ValueId> inputs =
      write_inputs(fusion.node(write), node.inputs[0], std::nullopt, &node);
  if (!fusion.is_worthwhile({turn, write}, fused, inputs)) return false;
  fusion.set(write, fused, std::move(inputs));
  fusion.drop(turn);
  return true;
}

/// write_rows(state, norm_rope(x, ...), row)
bool join_norm_rope_write(Fusion& fusion, NodeId write) {
  const ValueId turned = fusion.node(write).inputs[1];
  const auto* norm_rope = fusion.sole_use_of<NormRope>(turned);
  if (!norm_rope || !fusion.can_read_later(turned.node, write)) return false;
  const NormRopeWriteRows fused{norm_rope->eps, norm_rope->has_weight, norm_rope->angles};
  return join_turn_into_write(fusion, write, turned.node, fused);
}

/// write_rows(state, rope(x, ...), row)
bool join_rope_write(Fusion& fusion, NodeId write) {
  const ValueId turned = fusion.node(write).inputs[1];
  const auto* rope = fusion.sole_use_of<Rope>(turned);
  if (!rope || !fusion.can_read_later(turned.node, write)) return false;
  if (join_bias_rope_write(fusion, write, turned.node)) return true;
  return join_turn_into_write(fusion, write, turned.node, write_of(rope, rope->has_bias));
}

}  // namespace

/// rope(rms_norm(x, weight), ...)
void join_norm_rope(Fusion& fusion, NodeId rope) {
  const GraphNode& node = fusion.node(rope);
  const auto* op = std::get_if<Rope>(&node.op);
  if (!op || op->has_bias) return;
  const NodeId norm = node.inputs[0].node;
  const auto* rms_norm = fusion.sole_use_of<RmsNorm>(node.inputs[0]);
  if (!rms_norm || rms_norm->has_bias || !fusion.can_read_later(norm, rope)) return;
  const NormRope fused{rms_norm->eps, rms_norm->has_weight, op->angles};
  std::vector<ValueId> inputs = fusion.node(norm).inputs;
  inputs.insert(inputs.end(), node.inputs.begin() + 1, node.inputs.end());
  if (!fusion.is_worthwhile({norm, rope}, fused, inputs)) return;
  fusion.set(rope, fused, std::move(inputs));
  fusion.drop(norm);
}

/// rope(y + bias, ...)
void join_bias_rope(Fusion& fusion, NodeId rope) {
  const GraphNode& node = fusion.node(rope);
  const auto* op = std::get_if<Rope>(&node.op);
  if (!op || op->has_bias) return;
  const auto biased = match_bias(fusion, node.inputs[0], rope);
  if (!biased) return;
  const Rope fused{op->angles, true};
  std::vector<ValueId> inputs = node.inputs;
  inputs.insert(inputs.begin() + 1, biased->bias);
  if (!fusion.is_worthwhile({biased->add, rope}, fused, inputs)) return;
  inputs[0] = take_bias_out(fusion, *biased);
  fusion.set(rope, fused, std::move(inputs));
}

void join_write(Fusion& fusion, NodeId write) {
  if (!std::holds_alternative<WriteRows>(fusion.node(write).op)) return;
  if (join_norm_rope_write(fusion, write) || join_rope_write(fusion, write)) return;
  join_bias_write(fusion, write);
}

}  // namespace heddle
