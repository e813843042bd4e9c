// Functions over axes: reductions, softmax and scans. Negative axes count from the end; without
// axes, over all of them. Half types accumulate in f32.
#pragma once

#include <optional>

#include "heddle/array.h"

namespace heddle {

// ---- Reductions
/// Sums and products of bool and small integers are i32.
Array sum(const Arg& a, bool keepdims = false);
Array sum(const Arg& a, int axis, bool keepdims = false);
Array sum(const Arg& a, const Dims& axes, bool keepdims = false);
Array prod(const Arg& a, bool keepdims = false);
Array prod(const Arg& a, int axis, bool keepdims = false);
Array prod(const Arg& a, const Dims& axes, bool keepdims = false);
/// Of integers f32.
Array mean(const Arg& a, bool keepdims = false);
Array mean(const Arg& a, int axis, bool keepdims = false);
Array mean(const Arg& a, const Dims& axes, bool keepdims = false);
/// NaN if there is one.
Array max(const Arg& a, bool keepdims = false);
Array max(const Arg& a, int axis, bool keepdims = false);
Array max(const Arg& a, const Dims& axes, bool keepdims = false);
Array min(const Arg& a, bool keepdims = false);
Array min(const Arg& a, int axis, bool keepdims = false);
Array min(const Arg& a, const Dims& axes, bool keepdims = false);
/// Whether all elements, or any, are other than 0.
Array all(const Arg& a, bool keepdims = false);
Array all(const Arg& a, int axis, bool keepdims = false);
Array all(const Arg& a, const Dims& axes, bool keepdims = false);
Array any(const Arg& a, bool keepdims = false);
Array any(const Arg& a, int axis, bool keepdims = false);
Array any(const Arg& a, const Dims& axes, bool keepdims = false);
/// The mean squared distance from the mean, but divided by the number of elements less `ddof`. Of
/// integers and complex64 f32.
Array var(const Arg& a, bool keepdims = false, int ddof = 0);
Array var(const Arg& a, int axis, bool keepdims = false, int ddof = 0);
Array var(const Arg& a, const Dims& axes, bool keepdims = false, int ddof = 0);
Array std(const Arg& a, bool keepdims = false, int ddof = 0);
Array std(const Arg& a, int axis, bool keepdims = false, int ddof = 0);
Array std(const Arg& a, const Dims& axes, bool keepdims = false, int ddof = 0);
/// The middle element, or the mean of the middle two; NaN if there is one. Of integers f32.
Array median(const Arg& a, bool keepdims = false);
Array median(const Arg& a, int axis, bool keepdims = false);
Array median(const Arg& a, const Dims& axes, bool keepdims = false);
/// log of the sum of e^x, without overflowing. Of integers f32.
Array logsumexp(const Arg& a, bool keepdims = false);
Array logsumexp(const Arg& a, int axis, bool keepdims = false);
Array logsumexp(const Arg& a, const Dims& axes, bool keepdims = false);
/// i32.
Array count_nonzero(const Arg& a, bool keepdims = false);
Array count_nonzero(const Arg& a, int axis, bool keepdims = false);
Array count_nonzero(const Arg& a, const Dims& axes, bool keepdims = false);
/// The differences of neighbours along `axis`, `n` times over; of bools, whether they differ. What
/// is given to prepend or append is put there first, an extent of 1 where it is a scalar.
Array diff(const Arg& a, int n = 1, int axis = -1,
           const std::optional<Array>& prepend = std::nullopt,
           const std::optional<Array>& append = std::nullopt);
/// e^x over the sum of e^x; what is all -inf gives zeros. Of integers f32. `precise` asks for sums
/// in f32, which they are anyway.
Array softmax(const Arg& a, bool precise = false);
Array softmax(const Arg& a, int axis, bool precise = false);
Array softmax(const Arg& a, const Dims& axes, bool precise = false);

// ---- Scans along an axis, or of all elements in row-major order. As in MLX, cumsum of bool is
// i32, all else keeps its dtype; logcumsumexp of integers is f32. From the end with `reverse`;
// without the element itself unless `inclusive`.
Array cumsum(const Arg& a, bool reverse = false, bool inclusive = true);
Array cumsum(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cumprod(const Arg& a, bool reverse = false, bool inclusive = true);
Array cumprod(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cummax(const Arg& a, bool reverse = false, bool inclusive = true);
Array cummax(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array cummin(const Arg& a, bool reverse = false, bool inclusive = true);
Array cummin(const Arg& a, int axis, bool reverse = false, bool inclusive = true);
Array logcumsumexp(const Arg& a, bool reverse = false, bool inclusive = true);
Array logcumsumexp(const Arg& a, int axis, bool reverse = false, bool inclusive = true);

}  // namespace heddle
