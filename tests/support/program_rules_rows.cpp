// Rules for reductions, normalisations, products, and rows chosen by indices.
#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

Shape without_first(const Shape& shape) {
  return Shape(std::span(shape.begin(), shape.size()).subspan(1));
}

// ---- Reductions

/// Bounds of reducing `count` values.
std::optional<Range> reduced_range(ReduceKind kind, Range r, std::int64_t count) {
  const auto n = static_cast<double>(count);
  switch (kind) {
    case ReduceKind::sum:
      return Range{std::min(r.lo * n, 0.0), std::max(r.hi * n, 0.0)}.widened();
    case ReduceKind::prod: {
      const double most = std::max(std::pow(r.magnitude(), n), 1.0);
      return Range::around_zero(most).widened();
    }
    case ReduceKind::all:
    case ReduceKind::any:
      return Range{0, 1};
    default:
      if (count == 0) return std::nullopt;
      return r.widened();
  }
}

/// Numbers: kind, keepdims, axes.
std::optional<Proposal> propose_reduce(Draft& draft) {
  constexpr ReduceKind kKinds[] = {ReduceKind::sum, ReduceKind::sum, ReduceKind::mean,
                                   ReduceKind::max, ReduceKind::min, ReduceKind::prod,
                                   ReduceKind::all, ReduceKind::any};
  const ReduceKind kind = kKinds[draft.below(std::size(kKinds))];
  const std::size_t x = draft.any();
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(kind), draft.chance(50)};
  std::int64_t count = 1;
  for (std::size_t i = 0; i < draft[x].shape().size(); ++i) {
    if (!draft.chance(50)) continue;
    numbers.push_back(static_cast<std::int64_t>(i));
    count *= draft[x].shape()[i];
  }
  const auto range = reduced_range(kind, draft[x].range, count);
  if (!range) return std::nullopt;
  return Proposal{{x}, numbers, *range};
}

std::vector<Array> build_reduce(const ProgramStep& step, std::vector<Array>& in) {
  const Dims axes = shape_of(step.numbers, 2);
  const bool keepdims = step.numbers[1];
  switch (static_cast<ReduceKind>(step.numbers[0])) {
    case ReduceKind::sum:
      return {sum(in[0], axes, keepdims)};
    case ReduceKind::mean:
      return {mean(in[0], axes, keepdims)};
    case ReduceKind::max:
      return {max(in[0], axes, keepdims)};
    case ReduceKind::min:
      return {min(in[0], axes, keepdims)};
    case ReduceKind::all:
      return {all(in[0], axes, keepdims)};
    case ReduceKind::any:
      return {any(in[0], axes, keepdims)};
    case ReduceKind::prod:
      break;
  }
  return {prod(in[0], axes, keepdims)};
}

std::optional<Proposal> propose_softmax(Draft& draft) {
  const auto x = draft.find([](const Draft::Value& v) { return !v.shape().empty(); });
  if (!x) return std::nullopt;
  return Proposal{{*x}, {static_cast<std::int64_t>(draft.below(draft[*x].shape().size()))}, {0, 1}};
}
std::vector<Array> build_softmax(const ProgramStep& step, std::vector<Array>& in) {
  return {softmax(in[0], static_cast<int>(step.numbers[0]))};
}

std::optional<Proposal> propose_causal_softmax(Draft& draft) {
  const auto x = draft.find_floating(2);
  if (!x) return std::nullopt;
  return Proposal{{*x}, {}, {0, 1}};
}
std::vector<Array> build_causal_softmax(const ProgramStep&, std::vector<Array>& in) {
  return {causal_softmax(in[0])};
}

// ---- Normalisations

/// x, and a weight and a bias as often as not. Numbers: layer norm, weight, bias.
std::optional<Proposal> propose_norm(Draft& draft) {
  const auto x = draft.find_floating(1);
  if (!x) return std::nullopt;
  const std::int64_t width = draft[*x].shape().back();
  const DType dtype = draft[*x].spec().dtype;
  Proposal proposal{{*x},
                    {draft.chance(50), draft.chance(50), draft.chance(50)},
                    Range::around_zero(2 * std::sqrt(static_cast<double>(width)) + 3)};
  for (int i = 1; i <= 2; ++i) {
    if (proposal.numbers[i]) proposal.operands.push_back(draft.input(dtype, {width}, {-2, 2}));
  }
  return proposal;
}
std::vector<Array> build_norm(const ProgramStep& step, std::vector<Array>& in) {
  std::optional<Array> weight, bias;
  if (step.numbers[1]) weight = in[1];
  if (step.numbers[2]) bias = in.back();
  return {step.numbers[0] ? fast::layer_norm(in[0], weight, bias, 1e-3f)
                          : fast::rms_norm(in[0], weight, 1e-3f, bias)};
}

/// Two outputs that may lie in either operand. Numbers: whether there is a weight.
std::optional<Proposal> propose_add_norm(Draft& draft) {
  const auto a = draft.find_floating(1);
  if (!a) return std::nullopt;
  const TensorSpec spec = draft[*a].spec();
  const auto b = draft.find([&](const Draft::Value& v) { return v.spec() == spec; });
  const std::int64_t width = spec.shape.back();
  Proposal proposal{{*a, b.value_or(*a)}, {draft.chance(50)}, {}};
  const double sum = draft[*a].range.magnitude() + draft[proposal.operands[1]].range.magnitude();
  proposal.range =
      Range::of_both(Range::around_zero(sum).widened(),
                     Range::around_zero(2 * std::sqrt(static_cast<double>(width)) + 1));
  if (proposal.numbers[0]) proposal.operands.push_back(draft.input(spec.dtype, {width}, {-2, 2}));
  return proposal;
}
std::vector<Array> build_add_norm(const ProgramStep& step, std::vector<Array>& in) {
  return apply_multi(AddRmsNorm{.eps = 1e-3f, .has_weight = step.numbers[0] != 0}, std::move(in));
}

// ---- Products

Range product_range(const Draft& draft, std::size_t a, std::size_t b, std::int64_t depth) {
  const double each = draft[a].range.magnitude() * draft[b].range.magnitude();
  return Range::around_zero(each * static_cast<double>(depth)).widened();
}

std::optional<Proposal> propose_matmul(Draft& draft) {
  const auto a = draft.find_floating(1);
  if (!a) return std::nullopt;
  const std::int64_t depth = draft[*a].shape().back();
  const auto b = draft.find([&](const Draft::Value& v) {
    return v.shape().size() == 2 && v.shape()[0] == depth && is_floating(v.spec().dtype);
  });
  const std::size_t right =
      b ? *b : draft.input(draft[*a].spec().dtype, {depth, draft.between(1, 9)}, {-1, 1});
  return Proposal{{*a, right}, {}, product_range(draft, *a, right, depth)};
}
std::vector<Array> build_matmul(const ProgramStep&, std::vector<Array>& in) {
  return {matmul(in[0], in[1])};
}

/// One weight, or two: a node of several outputs.
std::optional<Proposal> propose_linear(Draft& draft) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  const auto x = draft.find_floating(1);
  if (!x) return std::nullopt;
  const std::int64_t depth = draft[*x].shape().back();
  Proposal proposal{{*x}, {}, {}};
  for (std::int64_t i = draft.between(1, 2); i > 0; --i) {
    const std::size_t weight =
        draft.input(kTypes[draft.below(3)], {draft.between(1, 9), depth}, {-1, 1});
    proposal.operands.push_back(weight);
    proposal.range = Range::of_both(proposal.range, product_range(draft, *x, weight, depth));
  }
  return proposal;
}
std::vector<Array> build_linear(const ProgramStep&, std::vector<Array>& in) {
  return linear(in[0], std::vector<Array>(in.begin() + 1, in.end()));
}

// ---- Rows

std::optional<Proposal> propose_take(Draft& draft) {
  const auto x = draft.find([](const Draft::Value& v) { return !v.shape().empty(); });
  if (!x) return std::nullopt;
  const std::size_t axis = draft.below(draft[*x].shape().size());
  const std::int64_t extent = draft[*x].shape()[axis];
  if (extent == 0) return std::nullopt;
  const std::size_t rows = draft.indices(draft.between(1, 6), extent);
  return Proposal{{*x, rows}, {static_cast<std::int64_t>(axis)}, draft[*x].range};
}
std::vector<Array> build_take(const ProgramStep& step, std::vector<Array>& in) {
  return {take(in[0], in[1], static_cast<int>(step.numbers[0]))};
}

/// Each row at most once; the rest of what is given is left out.
std::size_t distinct_rows(Draft& draft, std::int64_t count, std::int64_t limit) {
  std::vector<double> rows;
  for (std::int64_t row = 0; row < std::max(count, limit); ++row) {
    rows.push_back(row < limit && draft.chance(80) ? static_cast<double>(row) : -1.0);
  }
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[draft.below(i)]);
  rows.resize(static_cast<std::size_t>(count));
  return draft.input_of(DType::i32, {count}, rows);
}

std::optional<Proposal> propose_write_rows(Draft& draft) {
  const auto state = draft.find_floating(1);
  if (!state) return std::nullopt;
  const Shape row = without_first(draft[*state].shape());
  const auto found = draft.find([&](const Draft::Value& v) {
    return is_floating(v.spec().dtype) && !v.shape().empty() && without_first(v.shape()) == row;
  });
  const std::size_t x = found.value_or(*state);
  const Range range = Range::of_both(draft[*state].range, draft[x].range).widened();
  const std::size_t rows = distinct_rows(draft, draft[x].shape()[0], draft[*state].shape()[0]);
  return Proposal{{*state, x, rows}, {}, range};
}
std::vector<Array> build_write_rows(const ProgramStep&, std::vector<Array>& in) {
  return {write_rows(std::move(in[0]), in[1], in[2])};
}

std::optional<Proposal> propose_rope(Draft& draft) {
  const auto x = draft.find([](const Draft::Value& v) {
    return is_floating(v.spec().dtype) && v.shape().size() == 3 && v.shape()[2] >= 2;
  });
  if (!x) return std::nullopt;
  const std::size_t positions = draft.indices(draft[*x].shape()[0], 200);
  const std::int64_t dims = draft[*x].shape()[2] / 2 * 2;
  return Proposal{{*x, positions},
                  {dims, draft.between(0, 1)},
                  Range::around_zero(2 * draft[*x].range.magnitude())};
}
std::vector<Array> build_rope(const ProgramStep& step, std::vector<Array>& in) {
  const RopeStyle style = step.numbers[1] ? RopeStyle::interleaved : RopeStyle::split_half;
  return {rope(in[0], in[1], RopeAngles{style, step.numbers[0], 10000.0f, 1.0f, false})};
}

// ---- What fails

std::optional<Proposal> propose_beyond(Draft& draft) {
  const auto x = draft.find(
      [](const Draft::Value& v) { return !v.shape().empty() && v.shape()[0] > 0; });
  if (!x) return std::nullopt;
  const auto beyond = static_cast<double>(draft[*x].shape()[0]);
  const std::size_t row = draft.input_of(DType::i32, {1}, {beyond});
  return Proposal{{*x, row}, {}, draft[*x].range, true};
}
std::vector<Array> build_beyond(const ProgramStep&, std::vector<Array>& in) {
  return {take(in[0], in[1], 0)};
}

constexpr Rule kRules[] = {
    {"reduce", 8, propose_reduce, build_reduce},
    {"softmax", 5, propose_softmax, build_softmax},
    {"causal_softmax", 2, propose_causal_softmax, build_causal_softmax},
    {"norm", 4, propose_norm, build_norm},
    {"add_rms_norm", 6, propose_add_norm, build_add_norm},
    {"matmul", 4, propose_matmul, build_matmul},
    {"linear", 3, propose_linear, build_linear},
    {"take", 4, propose_take, build_take},
    {"write_rows", 8, propose_write_rows, build_write_rows},
    {"rope", 2, propose_rope, build_rope},
};
constexpr Rule kFailing = {"take_beyond_the_end", 0, propose_beyond, build_beyond};

}  // namespace

std::span<const Rule> row_rules() {
  return kRules;
}

const Rule& failing_rule() {
  return kFailing;
}

}  // namespace heddle::test
