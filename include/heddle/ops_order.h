// Functions that put in order and search. heddle/op_order.h says what the order is: NaN is larger
// than all numbers.
#pragma once

#include <string>
#include <utility>

#include "heddle/array.h"

namespace heddle {

// ---- u32 indices along an axis, or into all elements; the first of equals. NaN is the smallest
// for argmin.
Array argmax(const Arg& a, bool keepdims = false);
Array argmax(const Arg& a, int axis, bool keepdims = false);
Array argmin(const Arg& a, bool keepdims = false);
Array argmin(const Arg& a, int axis, bool keepdims = false);

/// In ascending order: along `axis`, or all elements as one row. -0 comes before 0, and NaNs lose
/// their sign.
Array sort(const Arg& a);
Array sort(const Arg& a, int axis);
/// The u32 indices that put it in order, equals in the order they have.
Array argsort(const Arg& a);
Array argsort(const Arg& a, int axis);
/// Such that element `kth` (negative: from the end) is where sorting would put it, what is before
/// it is not larger and what is behind it not smaller. As it is, all of it is in order.
Array partition(const Arg& a, int kth);
Array partition(const Arg& a, int kth, int axis);
Array argpartition(const Arg& a, int kth);
Array argpartition(const Arg& a, int kth, int axis);
/// The k largest, the largest first: of all elements, or along `axis`.
Array topk(const Arg& a, int k);
Array topk(const Arg& a, int k, int axis);
/// And their u32 indices along the axis.
std::pair<Array, Array> topk_with_indices(const Arg& a, int k, int axis = -1);

/// Where each of `values` can be inserted into `sorted_sequence` [n], which is in ascending order:
/// u32 of values' shape, in [0, n]. `side` is "left", before its equals, or "right", behind them.
/// In the dtype that both promote to.
Array searchsorted(const Arg& sorted_sequence, const Arg& values, const std::string& side = "left");
/// u32 [groups + 1]: the first place of each group in `ids` [T], integers in ascending order, and
/// where the last one ends. Group g is ids[offsets[g]:offsets[g + 1]], and empty if its offsets are
/// equal.
Array sorted_offsets(const Arg& ids, int groups);

}  // namespace heddle
