// Functions of functions: gradients, directional derivatives, maps over a batch.
//
// A transform calls the function once, on arrays that stand for its arguments, and follows the ops
// from them to its results. What comes out are ordinary lazy arrays, so transforms nest in any
// order and depth. The function may look at values on its way (but not under `vmap`, where an
// argument stands for many), and may use arrays that it captured: those count as constants of the
// innermost transform and as variables of those outside that follow them.
//
// Gradients of complex arrays are those with respect to real and imaginary part, as one complex
// number: of a real L, dL/dRe + i dL/dIm, as in MLX and PyTorch.
//
// All functions here throw invalid_argument, naming the transform, for arguments that do not fit.
// Any thread may transform anything; errors of the function go through.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/array.h"
#include "heddle/ops.h"
#include "heddle/tree.h"

namespace heddle {

using ArraysFunction = std::function<std::vector<Array>(const std::vector<Array>&)>;
using ArrayFunction = std::function<Array(const Array&)>;

/// The outputs of `fun` at `primals`, and for each primal the sum of the cotangents times the
/// derivative of their outputs by it. There is one cotangent for each output, of its shape and
/// dtype. Primals that are not floating or complex, or that no output depends on, get zeros.
std::pair<std::vector<Array>, std::vector<Array>> vjp(const ArraysFunction& fun,
                                                      const std::vector<Array>& primals,
                                                      const std::vector<Array>& cotangents);
std::pair<Array, Array> vjp(const ArrayFunction& fun, const Array& primal, const Array& cotangent);

/// The outputs of `fun` at `primals`, and their derivatives in the direction of the tangents (one
/// for each primal, of its shape and dtype; those of integers count as zero).
std::pair<std::vector<Array>, std::vector<Array>> jvp(const ArraysFunction& fun,
                                                      const std::vector<Array>& primals,
                                                      const std::vector<Array>& tangents);
std::pair<Array, Array> jvp(const ArrayFunction& fun, const Array& primal, const Array& tangent);

using ValueAndGradFunction =
    std::function<std::pair<std::vector<Array>, std::vector<Array>>(const std::vector<Array>&)>;

/// A function that gives the outputs of `fun` and the gradients of its first output, a real
/// floating scalar, by the arguments `argnums` (negative ones count from the end), which are
/// floating or complex.
ValueAndGradFunction value_and_grad(const ArraysFunction& fun, const std::vector<int>& argnums);
ValueAndGradFunction value_and_grad(const ArraysFunction& fun, int argnum = 0);
std::function<std::pair<Array, Array>(const Array&)> value_and_grad(const ArrayFunction& fun);

/// The gradients alone.
ArraysFunction grad(const ArraysFunction& fun, const std::vector<int>& argnums);
ArraysFunction grad(const ArraysFunction& fun, int argnum = 0);
ArrayFunction grad(const ArrayFunction& fun);

/// `fun` for each index along the axes `in_axes` of its arguments (of one extent; -1 for an
/// argument that is the same for all), with the results put side by side along `out_axes` of the
/// outputs (-1 for one that is the same for all: that of the first index). Without axes: 0 for all.
ArraysFunction vmap(const ArraysFunction& fun, const std::vector<int>& in_axes = {},
                    const std::vector<int>& out_axes = {});
ArrayFunction vmap(const ArrayFunction& fun, int in_axis = 0, int out_axis = 0);

/// `fun`, for gradients that keep its arguments only: what it computes on its way is computed again
/// once the gradient is on its way back.
ArraysFunction checkpoint(const ArraysFunction& fun);

/// Rules of one's own. Each is optional; where one is missing, `fun` itself is transformed.
struct CustomRules {
  /// (arguments, cotangents, outputs) -> a cotangent for each argument
  std::function<std::vector<Array>(const std::vector<Array>&, const std::vector<Array>&,
                                   const std::vector<Array>&)>
      vjp;
  /// (arguments, tangents) -> a tangent for each output
  std::function<std::vector<Array>(const std::vector<Array>&, const std::vector<Array>&)> jvp;
  /// (arguments, axes; -1: none) -> (outputs, axes)
  std::function<std::pair<std::vector<Array>, std::vector<int>>(const std::vector<Array>&,
                                                                const std::vector<int>&)>
      vmap;
};
ArraysFunction custom_function(const ArraysFunction& fun, const CustomRules& rules);
/// With a rule for vjp only.
ArraysFunction custom_vjp(const ArraysFunction& fun, const decltype(CustomRules::vjp)& fun_vjp);

// ---- Over trees (heddle/tree.h)

/// Calls visit(array&) for each array of `tree`, which is not const, in order.
template <class T, class Visit>
void visit_mutable_leaves(T& tree, const Visit& visit) {
  // What `leaves` and ranges show of an object that is not const is not const either.
  visit_leaves(std::as_const(tree), [&](const Array& leaf) { visit(const_cast<Array&>(leaf)); });
}

template <class T>
concept ArrayTree = !std::is_arithmetic_v<T> && !std::is_same_v<T, std::vector<int>>;

/// loss(parameters, arguments...) and its gradients by all floating arrays of the tree
/// `parameters`, as a tree like it (zeros for the others). The loss is a scalar, or a std::pair of
/// one and anything else, which is handed through.
template <class Loss, ArrayTree Tree, class... Args>
auto value_and_grad(const Loss& loss, const Tree& parameters, const Args&... arguments) {
  using Result = std::decay_t<decltype(loss(parameters, arguments...))>;
  std::optional<Result> result;
  const ArraysFunction flat = [&](const std::vector<Array>& leaves) {
    Tree tree = parameters;
    std::size_t next = 0;
    visit_mutable_leaves(tree, [&](Array& leaf) { leaf = leaves[next++]; });
    result.emplace(loss(std::as_const(tree), arguments...));
    if constexpr (std::is_same_v<Result, Array>) {
      return std::vector<Array>{*result};
    } else {
      return leaves_of(*result);
    }
  };
  const auto has_gradient = [](const Array& leaf) {
    return is_floating(leaf.dtype()) || leaf.dtype() == DType::complex64;
  };
  const std::vector<Array> leaves = leaves_of(parameters);
  std::vector<int> argnums;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (has_gradient(leaves[i])) argnums.push_back(static_cast<int>(i));
  }
  const auto [values, gradients] = value_and_grad(flat, argnums)(leaves);
  auto value = values.begin();
  visit_mutable_leaves(*result, [&](Array& leaf) { leaf = *value++; });
  auto gradient = gradients.begin();
  Tree tree = parameters;
  visit_mutable_leaves(
      tree, [&](Array& leaf) { leaf = has_gradient(leaf) ? *gradient++ : zeros_like(leaf); });
  return std::pair(std::move(*result), std::move(tree));
}

}  // namespace heddle
