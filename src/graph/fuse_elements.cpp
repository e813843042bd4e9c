// Chains and trees of element-wise ops, each as one program.
#include <algorithm>
#include <memory>
#include <optional>
#include <ranges>

#include "graph/fusion.h"
#include "heddle/op_fused.h"

namespace heddle {

namespace {

/// More in one program gains nothing: what they share is by then a small part of the work.
constexpr std::size_t kMostSteps = 48;
constexpr std::size_t kMostInputs = 8;
/// Inputs of one element, which take no memory traffic.
constexpr std::size_t kMostNumbers = 32;

std::optional<ElementStep> step_of(const GraphNode& node) {
  ElementStep step{};
  if (const auto* unary = std::get_if<Unary>(&node.op)) {
    step.op = *unary;
  } else if (const auto* binary = std::get_if<Binary>(&node.op)) {
    step.op = *binary;
  } else if (const auto* compare = std::get_if<Compare>(&node.op)) {
    step.op = *compare;
  } else if (const auto* select = std::get_if<Select>(&node.op)) {
    step.op = *select;
  } else if (const auto* cast = std::get_if<Cast>(&node.op)) {
    if (cast->dtype == DType::f16 || cast->dtype == DType::bf16) return std::nullopt;
    step.op = *cast;
  } else {
    return std::nullopt;
  }
  return step;
}

/// The nodes that one program is to do, and what it reads.
class Program {
 public:
  Program(const Fusion& fusion, NodeId root) : fusion_(fusion), root_(root), parts_{root} {}

  /// Takes in, one by one, what has the program's shape and is read by the program only, or as well
  /// computed again.
  void grow() {
    for (bool grown = true; grown && parts_.size() < kMostSteps;) {
      grown = false;
      for (const ValueId value : read()) {
        if (!may_join(value)) continue;
        const bool is_repeated = !is_only_ours(value);
        parts_.push_back(value.node);
        if (!few_enough(read())) {
          parts_.pop_back();
          continue;
        }
        if (is_repeated) repeated_.push_back(value.node);
        grown = true;
        break;
      }
    }
    std::ranges::sort(parts_);
  }

  const std::vector<NodeId>& parts() const { return parts_; }

  /// What the parts read of others, each once.
  std::vector<ValueId> read() const {
    std::vector<ValueId> values;
    for (const NodeId part : parts_) {
      for (const ValueId input : fusion_.node(part).inputs) {
        if (has(input.node) || std::ranges::count(values, input)) continue;
        values.push_back(input);
      }
    }
    return values;
  }

  ElementProgram program(const std::vector<ValueId>& inputs) const {
    ElementProgram program{static_cast<std::uint32_t>(inputs.size()), {}};
    const auto number = [&](ValueId value) {
      const auto part = std::ranges::find(parts_, value.node);
      if (part != parts_.end()) {
        return program.inputs + static_cast<std::uint32_t>(part - parts_.begin());
      }
      return static_cast<std::uint32_t>(std::ranges::find(inputs, value) - inputs.begin());
    };
    for (const NodeId part : parts_) {
      const GraphNode& node = fusion_.node(part);
      ElementStep step = *step_of(node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        step.operands[i] = number(node.inputs[i]);
      program.steps.push_back(step);
    }
    return program;
  }

 private:
  bool few_enough(const std::vector<ValueId>& inputs) const {
    const auto numbers = static_cast<std::size_t>(std::ranges::count_if(
        inputs, [&](ValueId value) { return elements(fusion_.spec(value).shape) == 1; }));
    return numbers <= kMostNumbers && inputs.size() - numbers <= kMostInputs;
  }

  bool has(NodeId node) const { return std::ranges::count(parts_, node) > 0; }

  /// Of this program, or of another with elements like its own.
  bool may_be_step(const GraphNode& node) const {
    const GraphNode& root = fusion_.node(root_);
    return !node.dead && node.pin == root.pin && step_of(node) &&
           node.outputs[0].shape == root.outputs[0].shape;
  }

  bool may_join(ValueId value) const {
    if (!may_be_step(fusion_.node(value.node))) return false;
    const bool may = is_only_ours(value) || may_be_repeated(value);
    return may && fusion_.can_read_later(value.node, root_);
  }

  /// Whether only parts read the value, none of which is done by others too.
  bool is_only_ours(ValueId value) const {
    std::size_t reads = 0;
    for (const NodeId part : parts_) {
      const auto here =
          static_cast<std::size_t>(std::ranges::count(fusion_.node(part).inputs, value));
      if (here > 0 && std::ranges::count(repeated_, part) > 0) return false;
      reads += here;
    }
    return reads == fusion_.uses(value);
  }

  /// A step with a number takes less time than to read its result: where all readers can do it
  /// themselves, they shall.
  bool may_be_repeated(ValueId value) const {
    const GraphNode& maker = fusion_.node(value.node);
    const auto* op = std::get_if<Binary>(&maker.op);
    const bool is_quick = op && (op->kind == BinaryKind::add || op->kind == BinaryKind::subtract ||
                                 op->kind == BinaryKind::multiply);
    const auto is_number = [&](ValueId input) { return elements(fusion_.spec(input).shape) == 1; };
    return is_quick && std::ranges::any_of(maker.inputs, is_number) && all_readers_may_join(value);
  }

  bool all_readers_may_join(ValueId value) const {
    std::size_t found = 0;
    for (NodeId id = value.node + 1; id < fusion_.size(); ++id) {
      const GraphNode& reader = fusion_.node(id);
      const auto reads = static_cast<std::size_t>(std::ranges::count(reader.inputs, value));
      if (reader.dead || reads == 0) continue;
      if (!may_be_step(reader)) return false;
      found += reads;
    }
    return found == fusion_.uses(value);
  }

  const Fusion& fusion_;
  const NodeId root_;
  std::vector<NodeId> parts_;
  std::vector<NodeId> repeated_;  // those that others do as well
};

}  // namespace

void join_elements(Fusion& fusion, NodeId root) {
  if (fusion.node(root).dead || !step_of(fusion.node(root))) return;
  Program program(fusion, root);
  program.grow();
  if (program.parts().size() < 2) return;
  const std::vector<ValueId> inputs = program.read();
  const Fused fused{std::make_shared<const ElementProgram>(program.program(inputs))};
  if (!fusion.is_worthwhile(program.parts(), fused, inputs)) return;
  fusion.set(root, fused, inputs);
  for (const NodeId part : std::views::reverse(program.parts())) {
    if (part != root && fusion.uses({part, 0}) == 0) fusion.drop(part);
  }
}

}  // namespace heddle
