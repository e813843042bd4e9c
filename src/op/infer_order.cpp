// By indices and in order: gather, scatter, sort and search_sorted.
#include <limits>

#include "op/infer.h"

namespace heddle {

namespace {

/// Operands 1, 2, ... are one array of indices for each of `axes`, of one shape, which is the
/// result.
Shape check_indices(const Operands& in, const Dims& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    in.check_axis(0, axes[i]);
    for (std::size_t j = 0; j < i; ++j) {
      in.check(axes[j] != axes[i], "axis {} is named twice", axes[i]);
    }
    const TensorSpec& indices = in[1 + i];
    in.check(is_integer(indices.dtype), "indices are {}; they must be integers", indices);
    in.check(indices.shape == in[1].shape, "indices {} and {} differ in shape", in[1], indices);
  }
  return axes.empty() ? Shape{} : in[1].shape;
}

void check_rank(const Operands& in, std::size_t rank, std::size_t indices) {
  in.check(rank <= kMaxRank,
           "{} indices and slices of {} make {} dimensions; at most {} are supported", indices,
           in[0], rank, kMaxRank);
}

void check_countable(const Operands& in, std::int64_t extent, const TensorSpec& spec) {
  in.check(extent <= std::numeric_limits<std::uint32_t>::max(),
           "the {} elements in a line of {} are more than u32 indices tell apart", extent, spec);
}

}  // namespace

Specs infer_op(const Gather& op, const Operands& in) {
  in.check_count(1 + op.axes.size(), "x, indices for each axis");
  in.check_plain(0);
  Shape result = check_indices(in, op.axes);
  const Shape& shape = in[0].shape;
  in.check(op.slice_sizes.size() == shape.size(), "slices of {} do not fit {}", op.slice_sizes,
           in[0]);
  check_rank(in, result.size() + shape.size(), result.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t size = op.slice_sizes[i];
    in.check(size >= 0 && size <= shape[i], "slices of {} do not lie within {}", op.slice_sizes,
             in[0]);
    result.push_back(size);
  }
  return {{in[0].dtype, result}};
}

Specs infer_op(const Scatter& op, const Operands& in) {
  in.check_count(2 + op.axes.size(), "x, indices for each axis, updates");
  const bool ordered = op.kind == ScatterKind::max || op.kind == ScatterKind::min;
  in.check_kind(0, ordered ? kOrdered : kPlain);
  const Shape indices = check_indices(in, op.axes);
  const TensorSpec& updates = in[in.size() - 1];
  const Shape &shape = in[0].shape, &given = updates.shape;
  in.check(updates.dtype == in[0].dtype, "updates {} and {} differ in dtype", updates, in[0]);
  bool fits = given.size() == indices.size() + shape.size();
  for (std::size_t i = 0; fits && i < indices.size(); ++i) fits = given[i] == indices[i];
  in.check(fits, "updates are {}; they must be of {} and a slice of {}", updates, indices, in[0]);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    in.check(given[indices.size() + i] <= shape[i], "slices of updates {} do not lie within {}",
             updates, in[0]);
  }
  return {in[0]};
}

Specs infer_op(const Sort& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_min_rank(0, 1, "x");
  in.check_kind(0, kPlain);
  check_countable(in, in[0].shape.back(), in[0]);
  return {{op.kind == SortKind::sort ? in[0].dtype : DType::u32, in[0].shape}};
}

Specs infer_op(const SearchSorted&, const Operands& in) {
  in.check_count(2, "sorted, values");
  in.check_rank(0, 1, "what is sorted");
  in.check_kind(0, kPlain);
  in.check(in[0].dtype == in[1].dtype, "{} and {} differ in dtype", in[0], in[1]);
  check_countable(in, in[0].shape[0], in[0]);
  return {{DType::u32, in[1].shape}};
}

}  // namespace heddle
