#include "transform/record.h"

#include <unordered_set>
#include <utility>

#include "array/reach.h"
#include "array/tracer.h"
#include "base/check.h"
#include "tensor/format.h"

namespace heddle {

std::vector<Array> RecordedOp::outputs() const {
  std::vector<Array> outputs;
  for (std::uint32_t i = 0; i < node->output_count(); ++i) outputs.emplace_back(node, i);
  return outputs;
}

Array stand_in(const Array& a) {
  return heddle::apply(Reshape{a.shape()}, {a});
}

Record record(const ArraysFunction& fun, std::vector<Array> arguments) {
  const TracerScope scope;
  Record record{std::move(arguments), {}, {}};
  record.outputs = fun(record.arguments);
  std::unordered_set<const Node*> dependent;
  for (const Array& argument : record.arguments) dependent.insert(argument.node().get());
  const auto is_argument = [&](const Node& node) { return dependent.contains(&node); };
  std::vector<Reached> reached = reach(record.outputs, is_argument);
  for (Reached& next : reached) {
    const auto depends = [&](const Array& input) { return dependent.contains(input.node().get()); };
    if (next.done || std::ranges::none_of(next.inputs, depends)) continue;
    dependent.insert(next.node.get());
    record.ops.push_back({std::move(next.node), std::move(next.inputs)});
  }
  return record;
}

bool is_differentiable(DType dtype) noexcept {
  return is_floating(dtype) || dtype == DType::complex64;
}

void check_like(const char* transform, const char* what, const std::vector<Array>& arrays,
                const std::vector<Array>& like, const char* of) {
  require(arrays.size() == like.size(), ErrorCode::invalid_argument,
          "{}: there are {} {}s for {} {}s", transform, arrays.size(), what, like.size(), of);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    require(arrays[i].spec() == like[i].spec(), ErrorCode::invalid_argument,
            "{}: {} {} is {}; it must be {}, as {} {} is", transform, what, i, arrays[i].spec(),
            like[i].spec(), of, i);
  }
}

Array scalar(double value, DType dtype) {
  const Array exact(std::span<const double>(&value, 1), Shape{});
  return astype(exact, dtype);
}

}  // namespace heddle
