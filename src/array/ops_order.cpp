// Order: where the largest are, sorting and searching.
#include "array/ops_common.h"

namespace heddle {

namespace {

/// All elements as one line.
Array as_line(const Array& a) {
  return reshape(a, {a.size()});
}

/// What `op` gives along `axis`, when it works along the last.
template <class Body>
Array along(const Array& a, std::size_t axis, const Body& op) {
  if (axis + 1 == a.ndim()) return op(a);
  const auto at = static_cast<int>(axis);
  return moveaxis(op(moveaxis(a, at, -1)), -1, at);
}

Array arg_reduce(ArgReduceKind kind, const Arg& a, std::optional<int> axis, bool keepdims) {
  const char* function = kind == ArgReduceKind::max ? "argmax" : "argmin";
  return within(function, a, [&]() -> Array {
    if (axis) {
      const std::size_t at = normalize_axis(*axis, a.ndim(), function);
      return heddle::apply(ArgReduce{kind, static_cast<std::int64_t>(at), keepdims}, {a});
    }
    const Array index = heddle::apply(ArgReduce{kind, 0, false}, {as_line(a)});
    return keepdims ? reshape(index, Shape(a.ndim(), 1)) : index;
  });
}

Array order(const char* function, SortKind kind, const Arg& a, std::optional<int> axis) {
  return within(function, a, [&]() -> Array {
    const auto sorted = [kind](const Array& x) { return heddle::apply(Sort{kind}, {x}); };
    if (!axis) return sorted(as_line(a));
    return along(a, normalize_axis(*axis, a.ndim(), function), sorted);
  });
}

/// A partition is made by sorting, which takes no longer than a selection here: see sort_keys.h.
Array partition_by(const char* function, SortKind kind, const Arg& a, int kth,
                   std::optional<int> axis) {
  return within(function, a, [&]() -> Array {
    const std::int64_t extent =
        axis ? a.shape()[normalize_axis(*axis, a.ndim(), function)] : a.size();
    require(-extent <= kth && kth < extent, ErrorCode::invalid_argument,
            "{}: kth {} is outside [{}, {}) of {}", function, kth, -extent, extent, a.spec());
    return order(function, kind, a, axis);
  });
}

}  // namespace

Array argmax(const Arg& a, bool keepdims) {
  return arg_reduce(ArgReduceKind::max, a, std::nullopt, keepdims);
}
Array argmax(const Arg& a, int axis, bool keepdims) {
  return arg_reduce(ArgReduceKind::max, a, axis, keepdims);
}
Array argmin(const Arg& a, bool keepdims) {
  return arg_reduce(ArgReduceKind::min, a, std::nullopt, keepdims);
}
Array argmin(const Arg& a, int axis, bool keepdims) {
  return arg_reduce(ArgReduceKind::min, a, axis, keepdims);
}

Array sort(const Arg& a) {
  return order("sort", SortKind::sort, a, std::nullopt);
}
Array sort(const Arg& a, int axis) {
  return order("sort", SortKind::sort, a, axis);
}
Array argsort(const Arg& a) {
  return order("argsort", SortKind::argsort, a, std::nullopt);
}
Array argsort(const Arg& a, int axis) {
  return order("argsort", SortKind::argsort, a, axis);
}
Array partition(const Arg& a, int kth) {
  return partition_by("partition", SortKind::sort, a, kth, std::nullopt);
}
Array partition(const Arg& a, int kth, int axis) {
  return partition_by("partition", SortKind::sort, a, kth, axis);
}
Array argpartition(const Arg& a, int kth) {
  return partition_by("argpartition", SortKind::argsort, a, kth, std::nullopt);
}
Array argpartition(const Arg& a, int kth, int axis) {
  return partition_by("argpartition", SortKind::argsort, a, kth, axis);
}

std::pair<Array, Array> topk_with_indices(const Arg& a, int k, int axis) {
  return within("topk_with_indices", a, [&]() -> std::pair<Array, Array> {
    const std::size_t at = normalize_axis(axis, a.ndim(), "topk_with_indices");
    const bool last = at + 1 == a.ndim();
    const Array x = last ? a.array() : moveaxis(a, axis, -1);
    const std::vector<Array> found = apply_multi(TopK{k}, {x});
    if (last) return {found[0], found[1]};
    const auto back = static_cast<int>(at);
    return {moveaxis(found[0], -1, back), moveaxis(found[1], -1, back)};
  });
}

Array topk(const Arg& a, int k, int axis) {
  return within("topk", a, [&]() -> Array { return topk_with_indices(a, k, axis).first; });
}

Array topk(const Arg& a, int k) {
  return within("topk", a, [&]() -> Array { return topk_with_indices(as_line(a), k, 0).first; });
}

// ---- Search

Array searchsorted(const Arg& sorted_sequence, const Arg& values, const std::string& side) {
  return within("searchsorted", sorted_sequence, [&]() -> Array {
    require(side == "left" || side == "right", ErrorCode::invalid_argument,
            "searchsorted: side \"{}\"; it must be left or right", side);
    for (const Arg* a : {&sorted_sequence, &values}) {
      require(!is_block(a->dtype()), ErrorCode::invalid_argument,
              "searchsorted: {} is of a block type; cast it to a plain type first", a->spec());
    }
    const DType dtype = promote_types(sorted_sequence.dtype(), values.dtype());
    return heddle::apply(SearchSorted{side == "right"},
                         {astype(sorted_sequence, dtype), astype(values, dtype)});
  });
}

Array sorted_offsets(const Arg& ids, int groups) {
  return within("sorted_offsets", ids, [&]() -> Array {
    require(ids.ndim() == 1 && is_integer(ids.dtype()), ErrorCode::invalid_argument,
            "sorted_offsets: ids are {}; they must be a vector of integers", ids.spec());
    require(groups >= 0, ErrorCode::invalid_argument, "sorted_offsets: {} groups", groups);
    const bool narrow = item_size(ids.dtype()) < 4;
    const DType dtype = narrow ? DType::i32 : ids.dtype();
    const Array numbers = astype(arange(0, double{1} + groups, 1, DType::i64), dtype);
    return heddle::apply(SearchSorted{false}, {astype(ids, dtype), numbers});
  });
}

}  // namespace heddle
