// Rules for views and data movement.
#include <numeric>

#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

std::vector<std::int64_t> numbers_of(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

std::size_t random_axis(Draft& draft, const Shape& shape) {
  return draft.below(shape.size());
}

std::optional<std::size_t> find_of_rank(Draft& draft, std::size_t least) {
  return draft.find([&](const Draft::Value& v) { return v.shape().size() >= least; });
}

/// As `x`, in another arrangement.
Proposal rearranged(Draft& draft, std::size_t x, std::vector<std::int64_t> numbers) {
  return {{x}, std::move(numbers), draft[x].range};
}

// ---- Views

std::optional<Proposal> propose_reshape(Draft& draft) {
  const std::size_t x = draft.any();
  const std::int64_t count = elements(draft[x].shape());
  std::vector<std::int64_t> shape;
  std::int64_t left = count;
  while (count > 0 && shape.size() < 3 && draft.chance(60)) {
    std::int64_t factor = draft.between(1, 8);
    while (left % factor != 0) --factor;
    shape.push_back(factor);
    left /= factor;
  }
  shape.push_back(left);
  return rearranged(draft, x, shape);
}
std::vector<Array> build_reshape(const ProgramStep& step, std::vector<Array>& in) {
  return {reshape(in[0], shape_of(step.numbers))};
}

std::optional<Proposal> propose_transpose(Draft& draft) {
  const auto x = find_of_rank(draft, 2);
  if (!x) return std::nullopt;
  std::vector<std::int64_t> axes(draft[*x].shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[draft.below(i)]);
  return rearranged(draft, *x, axes);
}
std::vector<Array> build_transpose(const ProgramStep& step, std::vector<Array>& in) {
  return {transpose(in[0], shape_of(step.numbers))};
}

/// Start, stop and stride of each axis, backwards now and then.
std::optional<Proposal> propose_slice(Draft& draft) {
  const auto x = find_of_rank(draft, 1);
  if (!x) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const std::int64_t extent : draft[*x].shape()) {
    if (draft.chance(40) || extent == 0) {
      numbers.insert(numbers.end(), {0, extent, 1});
    } else if (draft.chance(75)) {
      const std::int64_t start = draft.between(0, extent - 1);
      const std::int64_t stop = draft.between(draft.chance(3) ? start : start + 1, extent);
      numbers.insert(numbers.end(), {start, stop, draft.between(1, 3)});
    } else {
      const std::int64_t start = draft.between(0, extent - 1);
      numbers.insert(numbers.end(),
                     {start, draft.chance(50) ? -extent - 1 : 0, -draft.between(1, 3)});
    }
  }
  return rearranged(draft, *x, numbers);
}
struct SliceBounds {
  Dims start, stop, strides;
};
SliceBounds bounds_of(const std::vector<std::int64_t>& numbers) {
  SliceBounds bounds;
  for (std::size_t i = 0; i < numbers.size(); i += 3) {
    bounds.start.push_back(numbers[i]);
    bounds.stop.push_back(numbers[i + 1]);
    bounds.strides.push_back(numbers[i + 2]);
  }
  return bounds;
}
std::vector<Array> build_slice(const ProgramStep& step, std::vector<Array>& in) {
  const auto [start, stop, strides] = bounds_of(step.numbers);
  return {slice(in[0], start, stop, strides)};
}

std::optional<Proposal> propose_broadcast(Draft& draft) {
  const std::size_t x = draft.any();
  std::vector<std::int64_t> shape = numbers_of(draft[x].shape());
  for (std::int64_t& extent : shape) {
    if (extent == 1) extent = draft.between(1, 4);
  }
  if (draft.chance(50)) shape.insert(shape.begin(), draft.between(1, 3));
  return rearranged(draft, x, shape);
}
std::vector<Array> build_broadcast(const ProgramStep& step, std::vector<Array>& in) {
  return {broadcast_to(in[0], shape_of(step.numbers))};
}

std::optional<Proposal> propose_squeeze(Draft& draft) {
  return rearranged(draft, draft.any(), {});
}
std::vector<Array> build_squeeze(const ProgramStep&, std::vector<Array>& in) {
  return {squeeze(in[0])};
}

std::optional<Proposal> propose_expand(Draft& draft) {
  const std::size_t x = draft.any();
  return rearranged(draft, x,
                    {draft.between(0, static_cast<std::int64_t>(draft[x].shape().size()))});
}
std::vector<Array> build_expand(const ProgramStep& step, std::vector<Array>& in) {
  return {expand_dims(in[0], static_cast<int>(step.numbers[0]))};
}

/// Windows, repeats and skips; or all elements, as often as not backwards. Numbers: offset, rank,
/// shape, strides.
std::optional<Proposal> propose_strided(Draft& draft) {
  const std::size_t x = draft.any();
  const std::int64_t count = elements(draft[x].shape());
  if (count == 0) return std::nullopt;
  if (draft.chance(30)) {
    const bool backwards = draft.chance(50);
    return rearranged(draft, x, {backwards ? count - 1 : 0, 1, count, backwards ? -1 : 1});
  }
  std::vector<std::int64_t> shape, strides;
  std::int64_t lowest = 0, highest = 0;  // from the offset, in elements
  for (std::int64_t rank = draft.between(0, 3); rank > 0; --rank) {
    const std::int64_t extent = draft.between(1, 6), stride = draft.between(-5, 5);
    const std::int64_t reach = (extent - 1) * stride;
    if (highest - lowest + std::abs(reach) >= count) continue;
    (reach < 0 ? lowest : highest) += reach;
    shape.push_back(extent);
    strides.push_back(stride);
  }
  std::vector<std::int64_t> numbers{draft.between(-lowest, count - 1 - highest),
                                    static_cast<std::int64_t>(shape.size())};
  numbers.insert(numbers.end(), shape.begin(), shape.end());
  numbers.insert(numbers.end(), strides.begin(), strides.end());
  return rearranged(draft, x, numbers);
}
std::vector<Array> build_strided(const ProgramStep& step, std::vector<Array>& in) {
  const auto shape = step.numbers.begin() + 2, strides = shape + step.numbers[1];
  return {as_strided(in[0], shape_of({shape, strides}), shape_of({strides, step.numbers.end()}),
                     step.numbers[0])};
}

/// As bytes, which may then become what they were; or the halves of i64. Other numbers would be
/// anything, NaNs included. Numbers: the dtype, whether it goes back.
std::optional<Proposal> propose_view(Draft& draft) {
  const auto x = draft.find(
      [](const Draft::Value& v) { return !v.shape().empty() && v.spec().dtype != DType::u8; });
  if (!x) return std::nullopt;
  const DType from = draft[*x].spec().dtype;
  const Range range = draft[*x].range;
  if (from == DType::i64 && draft.chance(50)) {
    const Range halves{range.lo < 0 ? std::min(range.lo, -1.0) : 0, std::max(range.hi, 0.0)};
    return Proposal{{*x}, {static_cast<std::int64_t>(DType::i32), 0}, halves};
  }
  const bool back = !is_boolean(from) && draft.chance(60);
  const Range bytes{0, is_boolean(from) ? 1.0 : 255.0};
  return Proposal{{*x}, {static_cast<std::int64_t>(DType::u8), back}, back ? range : bytes};
}
std::vector<Array> build_view(const ProgramStep& step, std::vector<Array>& in) {
  const Array seen = view(in[0], static_cast<DType>(step.numbers[0]));
  return {step.numbers[1] ? view(seen, in[0].dtype()) : seen};
}

/// One value or two; the rest is what they wait for. Numbers: how many values.
std::optional<Proposal> propose_depends(Draft& draft) {
  const std::size_t first = draft.any();
  Proposal proposal{{first}, {1}, draft[first].range};
  const DType dtype = draft[first].spec().dtype;
  const auto second = draft.find([&](const Draft::Value& v) { return v.spec().dtype == dtype; });
  if (second && draft.chance(50)) {
    proposal.operands.push_back(*second);
    proposal.numbers[0] = 2;
    proposal.range = Range::of_both(proposal.range, draft[*second].range);
  }
  for (std::int64_t i = draft.between(1, 2); i > 0; --i) proposal.operands.push_back(draft.any());
  return proposal;
}
std::vector<Array> build_depends(const ProgramStep& step, std::vector<Array>& in) {
  const auto rest = in.begin() + step.numbers[0];
  return depends({in.begin(), rest}, {rest, in.end()});
}

// ---- Copies

std::optional<Proposal> propose_copy(Draft& draft) {
  return rearranged(draft, draft.any(), {draft.between(0, 1)});
}
std::vector<Array> build_copy(const ProgramStep& step, std::vector<Array>& in) {
  return {step.numbers[0] ? contiguous(in[0]) : copy(in[0])};
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    const std::int64_t extent = from[from.size() - i];
    if (extent != 1 && extent != to[to.size() - i]) return false;
  }
  return true;
}

/// Start, stop and stride of each axis, forwards or backwards.
std::optional<Proposal> propose_slice_update(Draft& draft) {
  const auto base = find_of_rank(draft, 1);
  if (!base) return std::nullopt;
  Proposal proposal{{*base}, {}, draft[*base].range};
  Shape part;
  for (const std::int64_t extent : draft[*base].shape()) {
    const std::int64_t n =
        draft.chance(30) || extent == 0 ? extent : draft.between(draft.chance(3) ? 0 : 1, extent);
    std::int64_t stride = n < 2 ? 1 : draft.between(1, (extent - 1) / (n - 1));
    const std::int64_t reach = std::max<std::int64_t>(n - 1, 0) * stride;
    std::int64_t first = n == 0 ? 0 : draft.between(0, extent - 1 - reach);
    if (n > 0 && draft.chance(40)) first += reach, stride = -stride;
    // Just beyond the last element; before the first one, what Python takes for that.
    const std::int64_t end = n == 0 ? first : first + (n - 1) * stride + (stride > 0 ? 1 : -1);
    proposal.numbers.insert(proposal.numbers.end(), {first, end < 0 ? -extent - 1 : end, stride});
    part.push_back(n);
  }
  const DType dtype = draft[*base].spec().dtype;
  const auto found =
      draft.find([&](const Draft::Value& v) { return broadcasts_to(v.shape(), part); });
  const std::size_t update = found ? *found : draft.input(dtype, part, {0, 1});
  Range written = draft[update].range.widened();
  if (!is_floating(dtype)) written = {std::floor(written.lo), std::ceil(written.hi)};
  if (is_boolean(dtype)) written = {0, 1};
  proposal.operands.push_back(update);
  proposal.range = Range::of_both(proposal.range, written);
  return proposal;
}
std::vector<Array> build_slice_update(const ProgramStep& step, std::vector<Array>& in) {
  const auto [start, stop, strides] = bounds_of(step.numbers);
  return {slice_update(std::move(in[0]), in[1], start, stop, strides)};
}

/// Values that continue the first one along the axis.
std::optional<Proposal> propose_concatenate(Draft& draft) {
  const auto first = find_of_rank(draft, 1);
  if (!first) return std::nullopt;
  const Shape shape = draft[*first].shape();
  const std::size_t axis = random_axis(draft, shape);
  Proposal proposal{{*first}, {static_cast<std::int64_t>(axis)}, draft[*first].range};
  for (std::int64_t i = draft.between(1, 2); i > 0; --i) {
    const auto next = draft.find([&](const Draft::Value& v) {
      if (v.shape().size() != shape.size()) return false;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (d != axis && v.shape()[d] != shape[d]) return false;
      }
      return true;
    });
    proposal.operands.push_back(next.value_or(*first));
    proposal.range = Range::of_both(proposal.range, draft[proposal.operands.back()].range);
  }
  return proposal;
}
std::vector<Array> build_concatenate(const ProgramStep& step, std::vector<Array>& in) {
  return {concatenate(in, static_cast<int>(step.numbers[0]))};
}

std::optional<Proposal> propose_stack(Draft& draft) {
  const std::size_t first = draft.any();
  const Shape shape = draft[first].shape();
  const auto second = draft.find([&](const Draft::Value& v) { return v.shape() == shape; });
  const std::size_t other = second.value_or(first);
  return Proposal{{first, other},
                  {draft.between(0, static_cast<std::int64_t>(shape.size()))},
                  Range::of_both(draft[first].range, draft[other].range)};
}
std::vector<Array> build_stack(const ProgramStep& step, std::vector<Array>& in) {
  return {stack(in, static_cast<int>(step.numbers[0]))};
}

std::optional<Proposal> propose_split(Draft& draft) {
  const auto x = find_of_rank(draft, 1);
  if (!x) return std::nullopt;
  const std::size_t axis = random_axis(draft, draft[*x].shape());
  const std::int64_t extent = draft[*x].shape()[axis];
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(axis), draft.between(0, extent)};
  if (draft.chance(30)) numbers.push_back(draft.between(numbers[1], extent));
  return rearranged(draft, *x, numbers);
}
std::vector<Array> build_split(const ProgramStep& step, std::vector<Array>& in) {
  const std::vector<std::int64_t> at(step.numbers.begin() + 1, step.numbers.end());
  return split(in[0], at, static_cast<int>(step.numbers[0]));
}

std::optional<Proposal> propose_halves(Draft& draft) {
  const auto x = draft.find(
      [](const Draft::Value& v) { return !v.shape().empty() && v.shape().back() % 2 == 0; });
  if (!x) return std::nullopt;
  return rearranged(draft, *x, {});
}
std::vector<Array> build_halves(const ProgramStep&, std::vector<Array>& in) {
  return split(in[0], 2, -1);
}

std::optional<Proposal> propose_repeat(Draft& draft) {
  const auto x = find_of_rank(draft, 1);
  if (!x) return std::nullopt;
  const std::size_t axis = random_axis(draft, draft[*x].shape());
  return rearranged(draft, *x, {draft.between(1, 3), static_cast<std::int64_t>(axis)});
}
std::vector<Array> build_repeat(const ProgramStep& step, std::vector<Array>& in) {
  return {repeat(in[0], static_cast<int>(step.numbers[0]), static_cast<int>(step.numbers[1]))};
}

std::optional<Proposal> propose_arange(Draft& draft) {
  const std::int64_t count = draft.between(1, 64);
  const bool whole = draft.chance(30);
  return Proposal{{}, {count, whole}, {0, static_cast<double>(count)}};
}
std::vector<Array> build_arange(const ProgramStep& step, std::vector<Array>&) {
  return {arange(static_cast<double>(step.numbers[0]), step.numbers[1] ? DType::i32 : DType::f32)};
}

std::optional<Proposal> propose_ones(Draft& draft) {
  return Proposal{{draft.any()}, {draft.between(0, 1)}, {0, 1}};
}
std::vector<Array> build_ones(const ProgramStep& step, std::vector<Array>& in) {
  return {step.numbers[0] ? ones_like(in[0]) : zeros_like(in[0])};
}

constexpr Rule kRules[] = {
    {"reshape", 6, propose_reshape, build_reshape},
    {"transpose", 6, propose_transpose, build_transpose},
    {"slice", 8, propose_slice, build_slice},
    {"broadcast_to", 3, propose_broadcast, build_broadcast},
    {"squeeze", 2, propose_squeeze, build_squeeze},
    {"expand_dims", 2, propose_expand, build_expand},
    {"as_strided", 4, propose_strided, build_strided},
    {"view", 5, propose_view, build_view},
    {"depends", 4, propose_depends, build_depends},
    {"slice_update", 8, propose_slice_update, build_slice_update},
    {"copy", 3, propose_copy, build_copy},
    {"concatenate", 4, propose_concatenate, build_concatenate},
    {"stack", 2, propose_stack, build_stack},
    {"split", 3, propose_split, build_split},
    {"halves", 3, propose_halves, build_halves},
    {"repeat", 2, propose_repeat, build_repeat},
    {"arange", 2, propose_arange, build_arange},
    {"ones_or_zeros", 2, propose_ones, build_ones},
};

}  // namespace

std::span<const Rule> shape_rules() {
  return kRules;
}

}  // namespace heddle::test
