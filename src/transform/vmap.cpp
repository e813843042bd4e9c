// The function is called once, on symbols of one example; what depends on them is then made again
// for the batch.
#include "transform/vmap.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "tensor/format.h"
#include "transform/custom.h"
#include "transform/record.h"

namespace heddle {

namespace {

/// Axis of argument i, counted from the front; nothing where it is the same for all.
std::vector<std::optional<std::size_t>> axes_of(const char* what, const std::vector<int>& axes,
                                                const std::vector<Array>& arrays, bool adds_one) {
  require(axes.empty() || axes.size() == arrays.size(), ErrorCode::invalid_argument,
          "vmap: there are {} {} for {} arrays", axes.size(), what, arrays.size());
  std::vector<std::optional<std::size_t>> found;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const int axis = axes.empty() ? 0 : axes[i];
    const auto rank = static_cast<int>(arrays[i].ndim()) + (adds_one ? 1 : 0);
    require(axis >= -1 && axis < rank, ErrorCode::invalid_argument,
            "vmap: {} {} is {}, which {} does not have; use -1 for none", what, i, axis,
            arrays[i].spec());
    found.push_back(axis < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(axis)));
  }
  return found;
}

std::int64_t batch_size(const std::vector<Array>& arguments,
                        const std::vector<std::optional<std::size_t>>& axes) {
  std::optional<std::int64_t> size;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!axes[i]) continue;
    const std::int64_t extent = arguments[i].shape()[*axes[i]];
    require(!size || *size == extent, ErrorCode::invalid_argument,
            "vmap: argument {} has {} examples along axis {}, those before it {}", i, extent,
            *axes[i], *size);
    size = extent;
  }
  require(size.has_value(), ErrorCode::invalid_argument,
          "vmap: no argument has an axis to map over");
  require(*size > 0, ErrorCode::invalid_argument,
          "vmap: there are no examples; the function's outputs cannot be known without one");
  return *size;
}

/// What the function sees in place of an argument: nothing that could be evaluated, since it stands
/// for many.
Array symbol(const Array& argument, std::size_t axis) {
  TensorSpec spec = argument.spec();
  spec.shape.erase(axis);
  return heddle::apply(Input{"an argument of vmap", spec, ""}, {});
}

class Mapper {
 public:
  explicit Mapper(std::int64_t size) : size_(size) {}

  void set(const Array& symbol, const Array& batch) {
    made_[symbol.node().get()] = {std::optional(batch)};
  }
  std::optional<Array> of(const Array& array) const {
    const auto found = made_.find(array.node().get());
    return found == made_.end() ? std::nullopt : found->second[array.output()];
  }
  void add(const RecordedOp& op) {
    std::vector<Array> inputs;
    std::vector<bool> differs;
    for (const Array& input : op.inputs) {
      const std::optional<Array> batch = of(input);
      inputs.push_back(batch ? *batch : input);
      differs.push_back(batch.has_value());
    }
    made_[op.node.get()] = map(op.op(), {inputs, differs, size_});
  }

 private:
  using Outputs = std::vector<std::optional<Array>>;  // nothing where it is the same for all

  Outputs map(const Op& op, const Batched& batch) {
    const auto* depends = std::get_if<Depends>(&op);
    if (depends) return map_values(*depends, batch);
    Outputs outputs;
    for (Array& output : vmap_of(op, batch)) outputs.emplace_back(std::move(output));
    return outputs;
  }

  /// By the user's rule, or else value by value under the same rules.
  Outputs map_values(const Depends& op, const Batched& batch) {
    const auto values = static_cast<std::size_t>(op.values);
    if (op.rules && op.rules->custom.vmap) return map_by_rule(op, batch);
    std::vector<Array> all;
    for (std::size_t i = 0; i < batch.in.size(); ++i) {
      all.push_back(i < values ? batch.all(i) : batch.in[i]);
    }
    Depends same = op;
    // Rules for one example do not fit a batch; what they stand for was mapped itself.
    if (op.rules && !op.rules->stops) same.rules = nullptr;
    Outputs outputs;
    for (Array& output : apply_multi(same, std::move(all))) outputs.emplace_back(std::move(output));
    return outputs;
  }

  Outputs map_by_rule(const Depends& op, const Batched& batch) {
    const std::vector<Array> arguments(batch.in.begin() + op.values, batch.in.end());
    std::vector<int> axes;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      axes.push_back(batch.differs[static_cast<std::size_t>(op.values) + i] ? 0 : -1);
    }
    const auto [found, found_axes] = op.rules->custom.vmap(arguments, axes);
    require(
        found.size() == static_cast<std::size_t>(op.values) && found_axes.size() == found.size(),
        ErrorCode::invalid_argument,
        "custom_function: vmap gave {} outputs and {} axes for the function's {}", found.size(),
        found_axes.size(), op.values);
    Outputs outputs;
    for (std::size_t i = 0; i < found.size(); ++i) {
      outputs.push_back(found_axes[i] < 0 ? broadcast_batch(found[i])
                                          : moveaxis(found[i], found_axes[i], 0));
    }
    return outputs;
  }

  Array broadcast_batch(const Array& same) const {
    Shape shape = same.shape();
    shape.insert(0, size_);
    return broadcast_to(expand_dims(same, 0), shape);
  }

  const std::int64_t size_;
  std::unordered_map<const Node*, Outputs> made_;
};

std::vector<Array> map_over(const ArraysFunction& fun, const std::vector<int>& in_axes,
                            const std::vector<int>& out_axes, const std::vector<Array>& arguments) {
  const auto axes = axes_of("in_axes", in_axes, arguments, false);
  Mapper mapper(batch_size(arguments, axes));
  std::vector<Array> examples;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    examples.push_back(axes[i] ? symbol(arguments[i], *axes[i]) : arguments[i]);
  }
  // Only the symbols stand for arguments: what is the same for all stays what it is.
  std::vector<Array> symbols;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (axes[i]) symbols.push_back(examples[i]);
  }
  const Record made = record([&](const std::vector<Array>&) { return fun(examples); }, symbols);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (axes[i]) mapper.set(examples[i], moveaxis(arguments[i], static_cast<int>(*axes[i]), 0));
  }
  for (const RecordedOp& op : made.ops) mapper.add(op);
  const auto to = axes_of("out_axes", out_axes, made.outputs, true);
  std::vector<Array> results;
  const std::int64_t size = batch_size(arguments, axes);
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    const Array& output = made.outputs[i];
    const std::optional<Array> batch = mapper.of(output);
    const Array one[] = {batch ? *batch : output};
    const Array all = Batched{one, {batch.has_value()}, size}.all(0);
    results.push_back(to[i] ? moveaxis(all, 0, static_cast<int>(*to[i])) : take(all, Array(0), 0));
  }
  return results;
}

}  // namespace

ArraysFunction vmap(const ArraysFunction& fun, const std::vector<int>& in_axes,
                    const std::vector<int>& out_axes) {
  return [fun, in_axes, out_axes](const std::vector<Array>& arguments) {
    return map_over(fun, in_axes, out_axes, arguments);
  };
}

ArrayFunction vmap(const ArrayFunction& fun, int in_axis, int out_axis) {
  return [fun, in_axis, out_axis](const Array& argument) {
    const ArraysFunction arrays = [&](const std::vector<Array>& in) {
      return std::vector<Array>{fun(in[0])};
    };
    return map_over(arrays, {in_axis}, {out_axis}, {argument}).front();
  };
}

}  // namespace heddle
