#include "device/lower.h"

#include <algorithm>

#include "base/check.h"
#include "device/lower_build.h"

namespace heddle {

LoweredBuilder::Value LoweredBuilder::add(Op op, std::vector<Value> sources) {
  std::vector<TensorSpec> specs;
  specs.reserve(sources.size());
  for (const Value& source : sources) specs.push_back(spec(source));
  specs_.push_back(infer(op, specs));
  lowered_.steps.push_back({std::move(op), std::move(sources)});
  return {false, lowered_.steps.size() - 1, 0};
}

LoweredBuilder::Value LoweredBuilder::cast(Value x, DType to) {
  return dtype(x) == to ? x : add(Cast{to}, {x});
}

LoweredBuilder::Value LoweredBuilder::reshape(Value x, const Shape& to) {
  return shape(x) == to ? x : add(Reshape{to}, {x});
}

LoweredBuilder::Value LoweredBuilder::slice(Value x, std::size_t axis, std::int64_t begin,
                                            std::int64_t end, std::int64_t step) {
  const Shape& whole = shape(x);
  Slice op{Dims(whole.size(), 0), whole, Dims(whole.size(), 1)};
  op.start[axis] = begin;
  op.stop[axis] = end;
  op.step[axis] = step;
  return add(op, {x});
}

LoweredBuilder::Value LoweredBuilder::reduce_last(ReduceKind kind, Value x) {
  return add(Reduce{kind, {static_cast<std::int64_t>(shape(x).size()) - 1}, true}, {x});
}

namespace {

template <class T>
concept HasRule = requires(const T& op, LowerInputs in) {
  { lower_op(op, in) } -> std::same_as<MaybeLowered>;
};

/// How deep lowered forms may nest; the deepest there are take half of it.
constexpr int kMaxDepth = 24;

std::vector<TensorSpec> specs_of(std::span<const OperandSpec> operands) {
  std::vector<TensorSpec> specs;
  for (const OperandSpec& operand : operands) specs.push_back(operand.spec);
  return specs;
}

class Legalizer {
 public:
  explicit Legalizer(Device& device) : device_(device) {}

  /// `known` is what `infer` gives, if somebody has asked it.
  Legal run(const Op& op, std::span<const OperandSpec> inputs, std::span<const TensorSpec> known,
            int depth);

 private:
  bool with_copies(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs, const std::vector<bool>& copy,
                   Legal& legal);
  bool some_contiguous(const Op& op, std::span<const OperandSpec> inputs,
                       std::span<const OperandSpec> outputs, Legal& legal);
  std::string trouble_with(const Lowered& lowered, std::span<const OperandSpec> inputs, int depth);
  std::vector<OperandSpec> results_of(const Op& op, std::span<const OperandSpec> inputs);

  Device& device_;
};

/// What a step leaves for later ones: a view where strides can express it, else a contiguous copy.
std::vector<OperandSpec> Legalizer::results_of(const Op& op, std::span<const OperandSpec> inputs) {
  const std::vector<TensorSpec> outputs = infer(op, specs_of(inputs));
  if (is_view(op)) {
    if (const std::optional<ViewOf> view = view_of(op, inputs[0])) {
      return {{outputs[0], view->layout}};
    }
  }
  return output_operands(op, outputs);
}

/// Tries the op with the inputs marked in `copy` contiguous.
bool Legalizer::with_copies(const Op& op, std::span<const OperandSpec> inputs,
                            std::span<const OperandSpec> outputs, const std::vector<bool>& copy,
                            Legal& legal) {
  std::vector<OperandSpec> copied(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (copy[i]) copied[i] = OperandSpec::contiguous(inputs[i].spec);
  }
  const Prepared prepared = device_.prepare_cached(op, copied, outputs);
  if (!prepared) return false;
  legal.how = Legal::How::contiguous;
  legal.kernel = prepared.kernel;
  legal.copy = copy;
  return true;
}

/// One input copied, or else all those that are not contiguous. A state is never copied.
bool Legalizer::some_contiguous(const Op& op, std::span<const OperandSpec> inputs,
                                std::span<const OperandSpec> outputs, Legal& legal) {
  std::vector<bool> all(inputs.size());
  for (std::size_t i = writes_state(op) ? 1 : 0; i < inputs.size(); ++i) {
    if (inputs[i].layout.kind != LayoutKind::strided || is_contiguous(inputs[i])) continue;
    const OperandSpec target = OperandSpec::contiguous(inputs[i].spec);
    all[i] =
        bool(device_.prepare_cached(Contiguous{}, std::span(&inputs[i], 1), std::span(&target, 1)));
  }
  if (std::ranges::count(all, true) > 1) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<bool> one(inputs.size());
      one[i] = true;
      if (all[i] && with_copies(op, inputs, outputs, one, legal)) return true;
    }
  }
  return std::ranges::count(all, true) > 0 && with_copies(op, inputs, outputs, all, legal);
}

/// Why the device cannot run one of the steps; empty if it can run all.
std::string Legalizer::trouble_with(const Lowered& lowered, std::span<const OperandSpec> inputs,
                                    int depth) {
  std::vector<std::vector<OperandSpec>> results;
  for (const LoweredStep& step : lowered.steps) {
    std::vector<OperandSpec> operands;
    for (const LoweredStep::Source& source : step.sources) {
      operands.push_back(source.from_input ? inputs[source.index]
                                           : results[source.index][source.output]);
    }
    const Legal legal = run(step.op, operands, {}, depth + 1);
    if (legal.how == Legal::How::no) return legal.reason;
    results.push_back(results_of(step.op, operands));
  }
  return {};
}

Legal Legalizer::run(const Op& op, std::span<const OperandSpec> inputs,
                     std::span<const TensorSpec> known, int depth) {
  Legal legal;
  const std::vector<OperandSpec> outputs =
      known.empty() ? output_operands(op, infer(op, specs_of(inputs))) : output_operands(op, known);
  if (is_leaf(op) || (is_view(op) && view_of(op, inputs[0]))) {
    legal.how = Legal::How::direct;
    return legal;
  }
  std::string reason;
  if (is_view(op)) {
    reason = fmt::format("no strides express it for {}", to_string(inputs[0]));
  } else {
    Prepared prepared = device_.prepare_cached(op, inputs, outputs);
    if (prepared) {
      legal.how = Legal::How::direct;
      legal.kernel = std::move(prepared.kernel);
      return legal;
    }
    if (some_contiguous(op, inputs, outputs, legal)) return legal;
    reason = std::move(prepared.reason);
  }
  legal.reason = fmt::format("{} on {}: {}", name(op), device_.name(), reason);
  std::optional<Lowered> lowered = lower(op, specs_of(inputs));
  if (!lowered) return legal;
  if (depth >= kMaxDepth) {
    legal.reason += fmt::format("; lowered {} times over without an end", depth);
    return legal;
  }
  const std::string trouble = trouble_with(*lowered, inputs, depth);
  if (!trouble.empty()) {
    legal.reason += fmt::format("; nor as simpler ops: {}", trouble);
    return legal;
  }
  legal.how = Legal::How::lowered;
  legal.lowered = std::move(*lowered);
  legal.reason.clear();
  return legal;
}

}  // namespace

std::optional<Lowered> lower(const Op& op, std::span<const TensorSpec> inputs) {
  return std::visit(
      [&]<class T>(const T& o) -> std::optional<Lowered> {
        if constexpr (HasRule<T>) return lower_op(o, inputs);
        if (!is_view(op)) return std::nullopt;
        LoweredBuilder b(inputs);
        const LoweredBuilder::Value copy = b.contiguous(LoweredBuilder::input(0));
        return b.finish({b.add(op, {copy})});
      },
      op);
}

Legal legalize(Device& device, const Op& op, std::span<const OperandSpec> inputs,
               std::span<const TensorSpec> outputs) {
  return Legalizer(device).run(op, inputs, outputs, 0);
}

}  // namespace heddle
