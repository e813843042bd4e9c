#include "transform/vjp.h"

#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "tensor/format.h"
#include "transform/record.h"

namespace heddle {

namespace {

template <class T>
concept HasRule = requires(const T& op, const Backward& b) {
  vjp_rule(op, b);
};

/// What an op's outputs say about their inputs in steps only: no slope anywhere.
template <class T>
constexpr bool kFlat =
    std::is_same_v<T, Compare> || std::is_same_v<T, ArgReduce> || std::is_same_v<T, Arange> ||
    std::is_same_v<T, SearchSorted> || std::is_same_v<T, Fp8> || std::is_same_v<T, RandomBits>;

using Cotangents = std::vector<std::optional<Array>>;

/// The cotangents of what the nodes of a record give, as they come together.
class Gathered {
 public:
  void add(const Array& of, const Array& cotangent) {
    if (!is_differentiable(of.dtype())) return;
    Cotangents& entries = of_node(of.node().get(), of.node()->output_count());
    std::optional<Array>& entry = entries[of.output()];
    entry = entry ? heddle::add(*entry, cotangent) : cotangent;
  }
  /// Those of all outputs of a node, which are then forgotten; nothing if there are none.
  std::optional<Cotangents> take(const Node* node) {
    const auto found = entries_.find(node);
    if (found == entries_.end()) return std::nullopt;
    Cotangents cotangents = std::move(found->second);
    entries_.erase(found);
    return cotangents;
  }

 private:
  Cotangents& of_node(const Node* node, std::uint32_t outputs) {
    Cotangents& entries = entries_[node];
    entries.resize(outputs);
    return entries;
  }
  std::unordered_map<const Node*, Cotangents> entries_;
};

std::unordered_map<const Node*, bool> dependents(const Record& record) {
  std::unordered_map<const Node*, bool> depends;
  for (const Array& argument : record.arguments) depends[argument.node().get()] = true;
  for (const RecordedOp& op : record.ops) depends[op.node.get()] = true;
  return depends;
}

std::vector<Array> stand_ins(const std::vector<Array>& arrays) {
  std::vector<Array> copies;
  for (const Array& array : arrays) copies.push_back(stand_in(array));
  return copies;
}

/// The cotangents of the arguments, zeros where there are none.
std::vector<Array> backward(const Record& record, const std::vector<Array>& cotangents) {
  Gathered gathered;
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    gathered.add(record.outputs[i], cotangents[i]);
  const auto depends = dependents(record);
  for (std::size_t at = record.ops.size(); at-- > 0;) {
    const RecordedOp& op = record.ops[at];
    const std::optional<Cotangents> g = gathered.take(op.node.get());
    if (!g) continue;
    const std::vector<Array> outputs = op.outputs();
    Backward b{op.inputs, outputs, *g, {}};
    for (const Array& input : op.inputs) {
      b.wanted.push_back(depends.contains(input.node().get()) && is_differentiable(input.dtype()));
    }
    const InputCotangents found = vjp_of(op.op(), b);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] && b.wanted[i]) gathered.add(op.inputs[i], *found[i]);
    }
  }
  std::vector<Array> results;
  for (const Array& argument : record.arguments) {
    const std::optional<Cotangents> g = gathered.take(argument.node().get());
    results.push_back(g && g->front() ? *g->front() : zeros_like(argument));
  }
  return results;
}

void check_argnums(const char* transform, const std::vector<int>& argnums,
                   const std::vector<Array>& arguments) {
  require(!argnums.empty(), ErrorCode::invalid_argument, "{}: no arguments are named", transform);
  std::vector<bool> named(arguments.size());
  for (const int argnum : argnums) {
    const auto count = static_cast<int>(arguments.size());
    require(argnum >= -count && argnum < count, ErrorCode::invalid_argument,
            "{}: argument {} is outside of the {} arguments", transform, argnum, count);
    const std::size_t at = static_cast<std::size_t>(argnum < 0 ? argnum + count : argnum);
    require(!named[at], ErrorCode::invalid_argument, "{}: argument {} is named twice", transform,
            at);
    named[at] = true;
    require(is_differentiable(arguments[at].dtype()), ErrorCode::invalid_argument,
            "{}: argument {} is {}; only floating and complex ones have a gradient", transform, at,
            arguments[at].spec());
  }
}

/// `fun` as a function of some of its arguments, the others fixed.
ArraysFunction of_some(const ArraysFunction& fun, const std::vector<int>& argnums,
                       const std::vector<Array>& arguments) {
  return [&fun, &argnums, &arguments](const std::vector<Array>& some) {
    std::vector<Array> all = arguments;
    for (std::size_t i = 0; i < argnums.size(); ++i) {
      const int at = argnums[i];
      all[static_cast<std::size_t>(at < 0 ? at + static_cast<int>(all.size()) : at)] = some[i];
    }
    return fun(all);
  };
}

std::pair<std::vector<Array>, std::vector<Array>> value_and_grad_at(
    const ArraysFunction& fun, const std::vector<int>& argnums,
    const std::vector<Array>& arguments) {
  check_argnums("value_and_grad", argnums, arguments);
  std::vector<Array> chosen;
  for (const int at : argnums) {
    chosen.push_back(
        arguments[static_cast<std::size_t>(at < 0 ? at + static_cast<int>(arguments.size()) : at)]);
  }
  const Record made = record(of_some(fun, argnums, arguments), stand_ins(chosen));
  require(!made.outputs.empty(), ErrorCode::invalid_argument,
          "value_and_grad: the function gives no array");
  const Array& loss = made.outputs.front();
  require(loss.ndim() == 0 && is_floating(loss.dtype()), ErrorCode::invalid_argument,
          "value_and_grad: the first output is {}; it must be a real floating scalar", loss.spec());
  return {made.outputs, backward(made, {ones_like(loss)})};
}

ArraysFunction as_arrays(const ArrayFunction& fun) {
  return [fun](const std::vector<Array>& arrays) { return std::vector<Array>{fun(arrays[0])}; };
}

}  // namespace

Array Backward::g(std::size_t i) const {
  return cotangents[i] ? *cotangents[i] : zeros_like(out[i]);
}

InputCotangents vjp_of(const Op& op, const Backward& b) {
  return std::visit(
      [&]<class T>(const T& o) -> InputCotangents {
        if constexpr (HasRule<T>) {
          return vjp_rule(o, b);
        } else {
          require(kFlat<T>, ErrorCode::unsupported, "vjp: {} has no derivative", to_string(op));
          return InputCotangents(b.in.size());
        }
      },
      op);
}

InputCotangents vjp_of_parts(const ArraysFunction& parts, const Backward& b) {
  std::vector<Array> cotangents;
  for (std::size_t i = 0; i < b.out.size(); ++i) cotangents.push_back(b.g(i));
  std::vector<std::size_t> places;
  std::vector<Array> wanted;
  for (std::size_t i = 0; i < b.in.size(); ++i) {
    if (!b.wanted[i]) continue;
    places.push_back(i);
    wanted.push_back(b.in[i]);
  }
  const ArraysFunction of_wanted = [&](const std::vector<Array>& some) {
    std::vector<Array> all(b.in.begin(), b.in.end());
    for (std::size_t i = 0; i < some.size(); ++i) all[places[i]] = some[i];
    return parts(all);
  };
  const std::vector<Array> found = vjp(of_wanted, wanted, cotangents).second;
  InputCotangents result(b.in.size());
  for (std::size_t i = 0; i < found.size(); ++i) result[places[i]] = found[i];
  return result;
}

Array sum_to(const Array& a, const Shape& shape) {
  if (a.shape() == shape) return a;
  Dims axes;
  const std::size_t added = a.ndim() - shape.size();
  for (std::size_t i = 0; i < a.ndim(); ++i) {
    const bool was_one = i >= added && shape[i - added] == 1 && a.shape()[i] != 1;
    if (i < added || was_one) axes.push_back(static_cast<std::int64_t>(i));
  }
  return reshape(sum(a, axes, true), shape);
}

Array sum_of_products(const Array& a, const Array& b) {
  return squeeze(matmul(expand_dims(a, -2), expand_dims(b, -1)), Dims{-1});
}

Dims inverse_order(const Dims& order) {
  Dims back(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return back;
}

Array widened(const Array& x) {
  const bool half = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  return half ? astype(x, DType::f32) : x;
}

std::pair<std::vector<Array>, std::vector<Array>> vjp(const ArraysFunction& fun,
                                                      const std::vector<Array>& primals,
                                                      const std::vector<Array>& cotangents) {
  const Record made = record(fun, stand_ins(primals));
  check_like("vjp", "cotangent", cotangents, made.outputs, "output");
  return {made.outputs, backward(made, cotangents)};
}

std::pair<Array, Array> vjp(const ArrayFunction& fun, const Array& primal, const Array& cotangent) {
  const auto [outputs, found] = vjp(as_arrays(fun), {primal}, {cotangent});
  return {outputs[0], found[0]};
}

ValueAndGradFunction value_and_grad(const ArraysFunction& fun, const std::vector<int>& argnums) {
  return [fun, argnums](const std::vector<Array>& arguments) {
    return value_and_grad_at(fun, argnums, arguments);
  };
}
ValueAndGradFunction value_and_grad(const ArraysFunction& fun, int argnum) {
  return value_and_grad(fun, std::vector<int>{argnum});
}
std::function<std::pair<Array, Array>(const Array&)> value_and_grad(const ArrayFunction& fun) {
  return [fun](const Array& argument) {
    const auto [values, gradients] = value_and_grad_at(as_arrays(fun), {0}, {argument});
    return std::pair(values[0], gradients[0]);
  };
}

ArraysFunction grad(const ArraysFunction& fun, const std::vector<int>& argnums) {
  return [fun, argnums](const std::vector<Array>& arguments) {
    return value_and_grad_at(fun, argnums, arguments).second;
  };
}
ArraysFunction grad(const ArraysFunction& fun, int argnum) {
  return grad(fun, std::vector<int>{argnum});
}
ArrayFunction grad(const ArrayFunction& fun) {
  return [fun](const Array& argument) {
    return value_and_grad_at(as_arrays(fun), {0}, {argument}).second[0];
  };
}

}  // namespace heddle
