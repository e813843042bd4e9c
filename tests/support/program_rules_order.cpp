// Rules for slices at indices, sorting and searching.
#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

/// A value with elements, of one dimension at least.
std::optional<std::size_t> find_filled(Draft& draft, std::size_t most_rank = 7) {
  return draft.find([&](const Draft::Value& v) {
    return !v.shape().empty() && v.shape().size() <= most_rank && elements(v.shape()) > 0;
  });
}

Dims pick_axes(Draft& draft, const Shape& shape) {
  Dims axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (draft.chance(50)) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) axes.push_back(static_cast<std::int64_t>(draft.below(shape.size())));
  return axes;
}

Shape pick_slice(Draft& draft, const Shape& shape) {
  Shape slice;
  for (const std::int64_t extent : shape) slice.push_back(draft.between(1, extent));
  return slice;
}

/// Where slices of `size` may begin along an axis of `extent`, counted from either end.
std::size_t pick_starts(Draft& draft, std::int64_t count, std::int64_t extent, std::int64_t size) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t start = draft.between(0, extent - size);
    values.push_back(static_cast<double>(draft.chance(30) ? start - extent : start));
  }
  return draft.input_of(draft.chance(50) ? DType::i32 : DType::i64, {count}, values);
}

struct SlicesAt {
  std::size_t x;
  Dims axes;
  Shape slice;
  std::int64_t count;
  std::vector<std::size_t> indices;  // operands
};
std::optional<SlicesAt> find_slices(Draft& draft) {
  const auto x = find_filled(draft);
  if (!x) return std::nullopt;
  const Shape shape = draft[*x].shape();
  SlicesAt found{*x, pick_axes(draft, shape), pick_slice(draft, shape), draft.between(1, 4), {}};
  for (const std::int64_t axis : found.axes) {
    found.indices.push_back(pick_starts(draft, found.count, shape[axis], found.slice[axis]));
  }
  return found;
}

/// Numbers: how many axes, the axes, the slice.
std::optional<Proposal> propose_gather(Draft& draft) {
  const auto found = find_slices(draft);
  if (!found) return std::nullopt;
  Proposal proposal{{found->x}, {static_cast<std::int64_t>(found->axes.size())}, {}};
  proposal.range = draft[found->x].range;
  for (const std::size_t operand : found->indices) proposal.operands.push_back(operand);
  for (const std::int64_t axis : found->axes) proposal.numbers.push_back(axis);
  for (const std::int64_t size : found->slice) proposal.numbers.push_back(size);
  return proposal;
}
std::vector<Array> build_gather(const ProgramStep& step, std::vector<Array>& in) {
  const auto count = static_cast<std::size_t>(step.numbers[0]);
  const Dims axes(std::span(step.numbers).subspan(1, count));
  const std::vector<Array> indices(in.begin() + 1, in.end());
  return {gather(in[0], indices, axes, shape_of(step.numbers, 1 + count))};
}

/// Numbers: kind, the axes.
std::optional<Proposal> propose_scatter(Draft& draft) {
  constexpr ScatterKind kKinds[] = {ScatterKind::none, ScatterKind::sum, ScatterKind::max,
                                    ScatterKind::min};
  const auto found = find_slices(draft);
  if (!found) return std::nullopt;
  const ScatterKind kind = kKinds[draft.below(std::size(kKinds))];
  const DType dtype = draft[found->x].spec().dtype;
  const Range updates = is_boolean(dtype) ? Range{0, 1} : Range{0, 3};
  Range range = Range::of_both(draft[found->x].range, updates);
  if (kind == ScatterKind::sum && !is_boolean(dtype)) {
    range.hi += 3 * static_cast<double>(found->count);
  }
  Proposal proposal{{found->x}, {static_cast<std::int64_t>(kind)}, range.widened()};
  for (const std::size_t operand : found->indices) proposal.operands.push_back(operand);
  Shape shape = found->slice;
  shape.insert(0, found->count);
  proposal.operands.push_back(draft.input(dtype, shape, updates));
  for (const std::int64_t axis : found->axes) proposal.numbers.push_back(axis);
  return proposal;
}
std::vector<Array> build_scatter(const ProgramStep& step, std::vector<Array>& in) {
  const Dims axes(std::span(step.numbers).subspan(1));
  const std::vector<Array> indices(in.begin() + 1, in.end() - 1);
  switch (static_cast<ScatterKind>(step.numbers[0])) {
    case ScatterKind::sum:
      return {scatter_add(in[0], indices, in.back(), axes)};
    case ScatterKind::max:
      return {scatter_max(in[0], indices, in.back(), axes)};
    case ScatterKind::min:
      return {scatter_min(in[0], indices, in.back(), axes)};
    default:
      return {scatter(in[0], indices, in.back(), axes)};
  }
}

/// Numbers: the axes, behind the slice for slice.
std::optional<Proposal> propose_dynamic_slice(Draft& draft) {
  const auto x = find_filled(draft);
  if (!x) return std::nullopt;
  const Shape shape = draft[*x].shape();
  const std::size_t axis = draft.below(shape.size());
  const Shape slice = pick_slice(draft, shape);
  const std::size_t start = pick_starts(draft, 1, shape[axis], slice[axis]);
  Proposal proposal{{*x, start}, {static_cast<std::int64_t>(axis)}, draft[*x].range};
  for (const std::int64_t size : slice) proposal.numbers.push_back(size);
  return proposal;
}
/// Read, turned round and written back, in place where nothing else sees it.
std::vector<Array> build_dynamic_slice(const ProgramStep& step, std::vector<Array>& in) {
  const Dims axes{step.numbers[0]};
  const Array part = slice(in[0], in[1], axes, shape_of(step.numbers, 1));
  return {slice_update(in[0], flip(part), in[1], axes), part};
}

/// Numbers: whether the indices, axis.
std::optional<Proposal> propose_sort(Draft& draft) {
  const auto x = find_filled(draft);
  if (!x) return std::nullopt;
  const std::size_t axis = draft.below(draft[*x].shape().size());
  const bool indices = draft.chance(50);
  const auto extent = static_cast<double>(draft[*x].shape()[axis]);
  return Proposal{{*x},
                  {indices, static_cast<std::int64_t>(axis)},
                  indices ? Range{0, extent} : draft[*x].range};
}
std::vector<Array> build_sort(const ProgramStep& step, std::vector<Array>& in) {
  const int axis = static_cast<int>(step.numbers[1]);
  return {step.numbers[0] ? astype(argsort(in[0], axis), DType::i32) : sort(in[0], axis)};
}

/// All of a value sorted, and each of its elements found in it. Numbers: whether to the right.
std::optional<Proposal> propose_search(Draft& draft) {
  const auto x = find_filled(draft);
  if (!x) return std::nullopt;
  return Proposal{{*x}, {draft.chance(50)}, {0, static_cast<double>(elements(draft[*x].shape()))}};
}
std::vector<Array> build_search(const ProgramStep& step, std::vector<Array>& in) {
  return {astype(searchsorted(sort(in[0]), in[0], step.numbers[0] ? "right" : "left"), DType::i32)};
}

constexpr Rule kRules[] = {
    {"gather", 3, propose_gather, build_gather},
    {"scatter", 5, propose_scatter, build_scatter},
    {"dynamic_slice", 3, propose_dynamic_slice, build_dynamic_slice},
    {"sort", 3, propose_sort, build_sort},
    {"searchsorted", 2, propose_search, build_search},
};

}  // namespace

std::span<const Rule> order_rules() {
  return kRules;
}

}  // namespace heddle::test
