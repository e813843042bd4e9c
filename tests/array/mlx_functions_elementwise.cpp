// Of ops_elementwise.h, ops_shape.h and ops_reduce.h.
#include "mlx_functions.h"

#include "heddle/ops.h"

namespace heddle::test {

// clang-format off
#define HEDDLE_NAMES(X) \
  X(abs) X(add) X(all) X(allclose) X(any) X(arange) X(arccos) X(arccosh) X(arcsin) X(arcsinh) \
  X(arctan) X(arctan2) X(arctanh) X(array_equal) X(as_strided) X(astype) X(atleast_1d) \
  X(atleast_2d) X(atleast_3d) X(bitwise_and) X(bitwise_invert) X(bitwise_or) X(bitwise_xor) \
  X(broadcast_arrays) X(broadcast_to) X(ceil) X(clip) X(concatenate) X(conjugate) X(contiguous) \
  X(copy) X(cos) X(cosh) X(count_nonzero) X(cummax) X(cummin) X(cumprod) X(cumsum) X(degrees) \
  X(depends) X(diag) X(diagonal) X(diff) X(divide) X(divmod) X(equal) X(erf) X(erfinv) X(exp) \
  X(expand_dims) X(expm1) X(eye) X(flatten) X(flip) X(floor) X(floor_divide) X(full) \
  X(full_like) X(greater) X(greater_equal) X(identity) X(imag) X(isclose) X(isfinite) X(isinf) \
  X(isnan) X(isneginf) X(isposinf) X(left_shift) X(less) X(less_equal) X(linspace) X(log) \
  X(log10) X(log1p) X(log2) X(logaddexp) X(logcumsumexp) X(logical_and) X(logical_not) \
  X(logical_or) X(logical_xor) X(logsumexp) X(max) X(maximum) X(mean) X(median) X(meshgrid) \
  X(min) X(minimum) X(moveaxis) X(multiply) X(nan_to_num) X(negative) X(not_equal) \
  X(number_of_elements) X(ones) X(ones_like) X(pad) X(positive) X(power) X(prod) X(radians) \
  X(real) X(reciprocal) X(remainder) X(repeat) X(reshape) X(right_shift) X(roll) X(round) \
  X(rsqrt) X(sigmoid) X(sign) X(sin) X(sinh) X(slice) X(softmax) X(split) X(sqrt) X(square) \
  X(squeeze) X(stack) X(std) X(stop_gradient) X(subtract) X(sum) X(swapaxes) X(tan) X(tanh) \
  X(tile) X(trace) X(transpose) X(tri) X(tril) X(triu) X(trunc) X(unflatten) X(unstack) X(var) \
  X(view) X(where) X(zeros) X(zeros_like)
// clang-format on
HEDDLE_HAS("ops.h", HEDDLE_NAMES)

}  // namespace heddle::test
