// Derivatives in a direction. An op's vjp is linear in its cotangents u; the vjp of that, by u, at
// the tangents of the op's inputs, is the op's jvp. u stays a symbol: nothing needs its value.
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "transform/custom.h"
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

using Tangents = std::vector<std::optional<Array>>;

std::vector<Array> symbols(const std::vector<Array>& outputs) {
  std::vector<Array> made;
  for (const Array& output : outputs) {
    made.push_back(heddle::apply(Input{"cotangent", output.spec(), ""}, {}));
  }
  return made;
}

/// The tangents of an op's outputs.
Tangents push(const RecordedOp& op, const Tangents& tangents) {
  const std::vector<Array> outputs = op.outputs();
  std::vector<std::size_t> places;
  std::vector<Array> moving;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i]) continue;
    places.push_back(i);
    moving.push_back(*tangents[i]);
  }
  std::vector<std::size_t> differentiable;
  std::vector<Array> smooth;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_differentiable(outputs[i].dtype())) continue;
    differentiable.push_back(i);
    smooth.push_back(outputs[i]);
  }
  Tangents found(outputs.size());
  if (smooth.empty()) return found;
  const ArraysFunction pull = [&](const std::vector<Array>& u) {
    Tangents cotangents(outputs.size());
    for (std::size_t i = 0; i < u.size(); ++i) cotangents[differentiable[i]] = u[i];
    Backward b{op.inputs, outputs, cotangents, std::vector<bool>(op.inputs.size())};
    for (const std::size_t place : places) b.wanted[place] = true;
    const InputCotangents back = vjp_of(op.op(), b);
    std::vector<Array> pulled;
    for (const std::size_t place : places) {
      pulled.push_back(back[place] ? *back[place] : zeros_like(op.inputs[place]));
    }
    return pulled;
  };
  const std::vector<Array> pushed = vjp(pull, symbols(smooth), moving).second;
  for (std::size_t i = 0; i < pushed.size(); ++i) found[differentiable[i]] = pushed[i];
  return found;
}

/// By a rule of the user's, if the op has one.
std::optional<Tangents> push_by_rule(const RecordedOp& op, const Tangents& tangents) {
  const auto* depends = std::get_if<Depends>(&op.op());
  if (!depends || !depends->rules) return std::nullopt;
  const TransformRules& rules = *depends->rules;
  const auto values = static_cast<std::size_t>(depends->values);
  Tangents found(values);
  if (rules.stops) return found;
  if (!rules.custom.jvp) return std::nullopt;
  const std::vector<Array> arguments(op.inputs.begin() + depends->values, op.inputs.end());
  std::vector<Array> own;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::optional<Array>& tangent = tangents[values + i];
    own.push_back(tangent ? *tangent : zeros_like(arguments[i]));
  }
  const std::vector<Array> pushed = rules.custom.jvp(arguments, own);
  check_like("custom_function: jvp", "tangent", pushed, op.outputs(), "output");
  for (std::size_t i = 0; i < values; ++i) found[i] = pushed[i];
  return found;
}

/// A Depends without a rule for jvp hands on its values' tangents, whatever its rule for vjp says.
std::optional<Tangents> push_values(const RecordedOp& op, const Tangents& tangents) {
  const auto* depends = std::get_if<Depends>(&op.op());
  if (!depends) return std::nullopt;
  return Tangents(tangents.begin(), tangents.begin() + depends->values);
}

/// Scans by logaddexp go back by logarithms of u, and so are pushed by a formula of their own: the
/// sum up to i of t_k e^(x_k - y_i).
std::optional<Tangents> push_logaddexp(const RecordedOp& op, const Tangents& tangents) {
  const auto* scan = std::get_if<Scan>(&op.op());
  if (!scan || scan->kind != ScanKind::logaddexp) return std::nullopt;
  const Array &x = op.inputs[0], &t = *tangents[0];
  const Array y(op.node, 0);
  const Array lowest = scalar(-std::numeric_limits<double>::infinity(), x.dtype());
  const auto part = [&](const Array& positive) {
    const Array some = positive > 0;
    const Array log_t = where(some, log(where(some, positive, ones_like(t))) + x, lowest);
    const Array sums = heddle::apply(*scan, {log_t});
    return exp(where(sums > lowest, sums - y, lowest));
  };
  return Tangents{part(t) - part(-t)};
}

class Forward {
 public:
  void set(const Array& of, const Array& tangent) {
    if (!is_differentiable(of.dtype())) return;
    Tangents& entries = entries_[of.node().get()];
    entries.resize(of.node()->output_count());
    entries[of.output()] = tangent;
  }
  void set(const RecordedOp& op, Tangents tangents) {
    entries_[op.node.get()] = std::move(tangents);
  }
  std::optional<Array> of(const Array& array) const {
    const auto found = entries_.find(array.node().get());
    return found == entries_.end() ? std::nullopt : found->second[array.output()];
  }

 private:
  std::unordered_map<const Node*, Tangents> entries_;
};

void push_on(const RecordedOp& op, Forward& forward) {
  Tangents tangents;
  bool moves = false;
  for (const Array& input : op.inputs) {
    tangents.push_back(forward.of(input));
    moves = moves || tangents.back();
  }
  if (!moves) return;
  for (const auto rule : {push_by_rule, push_values, push_logaddexp}) {
    if (std::optional<Tangents> found = rule(op, tangents)) return forward.set(op, *found);
  }
  forward.set(op, push(op, tangents));
}

}  // namespace

std::pair<std::vector<Array>, std::vector<Array>> jvp(const ArraysFunction& fun,
                                                      const std::vector<Array>& primals,
                                                      const std::vector<Array>& tangents) {
  check_like("jvp", "tangent", tangents, primals, "primal");
  std::vector<Array> arguments;
  for (const Array& primal : primals) arguments.push_back(stand_in(primal));
  const Record made = record(fun, std::move(arguments));
  Forward forward;
  for (std::size_t i = 0; i < tangents.size(); ++i) forward.set(made.arguments[i], tangents[i]);
  for (const RecordedOp& op : made.ops) push_on(op, forward);
  std::vector<Array> results;
  for (const Array& output : made.outputs) {
    const std::optional<Array> tangent = forward.of(output);
    results.push_back(tangent ? *tangent : zeros_like(output));
  }
  return {made.outputs, std::move(results)};
}

std::pair<Array, Array> jvp(const ArrayFunction& fun, const Array& primal, const Array& tangent) {
  const auto [outputs, tangents] =
      jvp([&](const std::vector<Array>& in) { return std::vector<Array>{fun(in[0])}; }, {primal},
          {tangent});
  return {outputs[0], tangents[0]};
}

}  // namespace heddle
