// Rules for what works along an axis, or over spatial axes.
#include "heddle/ops.h"
#include "heddle/random.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

/// A value and one of its axes, of extent 1 or more.
struct OnAxis {
  std::size_t x, axis;
  std::int64_t extent;
};
template <class Fits>
std::optional<OnAxis> find_axis(Draft& draft, const Fits& fits) {
  const auto x =
      draft.find([&](const Draft::Value& v) { return !v.shape().empty() && fits(v.spec().dtype); });
  if (!x) return std::nullopt;
  const std::size_t axis = draft.below(draft[*x].shape().size());
  const std::int64_t extent = draft[*x].shape()[axis];
  if (extent == 0) return std::nullopt;
  return OnAxis{*x, axis, extent};
}
std::optional<OnAxis> find_axis(Draft& draft) {
  return find_axis(draft, [](DType) { return true; });
}

// ---- Scans

using ScanFunction = Array (*)(const Arg&, int, bool, bool);
constexpr ScanFunction kScans[] = {cumsum, cummax, cummin, logcumsumexp, cumprod};

/// Numbers: function, axis, reverse. Inclusive, since of nothing there are infinities.
std::optional<Proposal> propose_scan(Draft& draft) {
  const auto found = find_axis(draft);
  if (!found) return std::nullopt;
  const std::size_t function = draft.below(std::size(kScans));
  Range range = draft[found->x].range;
  const auto n = static_cast<double>(found->extent);
  if (function == 0) range = {std::min(range.lo, range.lo * n), std::max(range.hi, range.hi * n)};
  if (function == 3) {
    if (range.magnitude() > 50) return std::nullopt;
    range.hi += std::log(n) + 1;
  }
  if (function == 4) range = Range::around_zero(std::max(std::pow(range.magnitude(), n), 1.0));
  return Proposal{{found->x},
                  {static_cast<std::int64_t>(function), static_cast<std::int64_t>(found->axis),
                   draft.chance(40)},
                  range.widened()};
}
std::vector<Array> build_scan(const ProgramStep& step, std::vector<Array>& in) {
  const int axis = static_cast<int>(step.numbers[1]);
  return {kScans[step.numbers[0]](in[0], axis, step.numbers[2] != 0, true)};
}

// ---- Order

/// Numbers: whether the least, axis, keepdims.
std::optional<Proposal> propose_arg_reduce(Draft& draft) {
  const auto found = find_axis(draft);
  if (!found) return std::nullopt;
  return Proposal{{found->x},
                  {draft.chance(50), static_cast<std::int64_t>(found->axis), draft.chance(50)},
                  {0, static_cast<double>(found->extent)}};
}
std::vector<Array> build_arg_reduce(const ProgramStep& step, std::vector<Array>& in) {
  const int axis = static_cast<int>(step.numbers[1]);
  const bool keepdims = step.numbers[2] != 0;
  return {astype(step.numbers[0] ? argmin(in[0], axis, keepdims) : argmax(in[0], axis, keepdims),
                 DType::i32)};
}

/// A node of two outputs. Numbers: k, axis.
std::optional<Proposal> propose_topk(Draft& draft) {
  const auto found = find_axis(draft);
  if (!found) return std::nullopt;
  const Range indices{0, static_cast<double>(found->extent)};
  return Proposal{{found->x},
                  {draft.between(1, found->extent), static_cast<std::int64_t>(found->axis)},
                  Range::of_both(draft[found->x].range, indices)};
}
std::vector<Array> build_topk(const ProgramStep& step, std::vector<Array>& in) {
  const auto [values, indices] = topk_with_indices(in[0], static_cast<int>(step.numbers[0]),
                                                   static_cast<int>(step.numbers[1]));
  return {values, astype(indices, DType::i32)};
}

// ---- Choice by indices

/// Indices along one axis, for all lines alike.
std::size_t line_of_indices(Draft& draft, const OnAxis& found, std::int64_t count) {
  Shape shape(draft[found.x].shape().size(), 1);
  shape[found.axis] = count;
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(draft.between(0, found.extent - 1)));
  }
  return draft.input_of(draft.chance(50) ? DType::i32 : DType::i64, shape, values);
}

std::optional<Proposal> propose_take_along(Draft& draft) {
  const auto found = find_axis(draft);
  if (!found) return std::nullopt;
  const std::size_t indices = line_of_indices(draft, *found, draft.between(1, 6));
  return Proposal{
      {found->x, indices}, {static_cast<std::int64_t>(found->axis)}, draft[found->x].range};
}
std::vector<Array> build_take_along(const ProgramStep& step, std::vector<Array>& in) {
  return {take_along_axis(in[0], in[1], static_cast<int>(step.numbers[0]))};
}

/// Numbers: axis, kind.
std::optional<Proposal> propose_scatter(Draft& draft) {
  constexpr ScatterKind kKinds[] = {ScatterKind::none, ScatterKind::sum, ScatterKind::max,
                                    ScatterKind::min};
  const auto found = find_axis(draft);
  if (!found) return std::nullopt;
  const std::int64_t count = draft.between(1, 6);
  const ScatterKind kind = kKinds[draft.below(std::size(kKinds))];
  const TensorSpec spec = draft[found->x].spec();
  const Range updates = is_boolean(spec.dtype) ? Range{0, 1} : Range{0, 3};
  Shape shape(spec.shape.size(), 1);
  shape[found->axis] = count;
  const std::size_t indices = line_of_indices(draft, *found, count);
  const std::size_t values = draft.input(spec.dtype, shape, updates);
  Range range = Range::of_both(draft[found->x].range, updates);
  if (kind == ScatterKind::sum && !is_boolean(spec.dtype)) range.hi += 3 * count;
  return Proposal{{found->x, indices, values},
                  {static_cast<std::int64_t>(found->axis), static_cast<std::int64_t>(kind)},
                  range.widened()};
}
std::vector<Array> build_scatter(const ProgramStep& step, std::vector<Array>& in) {
  return {scatter_axis(in[0], in[1], in[2], static_cast<int>(step.numbers[0]),
                       static_cast<ScatterKind>(step.numbers[1]))};
}

// ---- Padding and turning round

/// Numbers: edge, then low and high of each axis.
std::optional<Proposal> propose_pad(Draft& draft) {
  const std::size_t x = draft.any();
  const bool edge = draft.chance(50) && elements(draft[x].shape()) > 0;
  std::vector<std::int64_t> numbers{edge};
  for (std::size_t i = 0; i < draft[x].shape().size(); ++i) {
    for (int end = 0; end < 2; ++end) numbers.push_back(draft.chance(60) ? 0 : draft.between(1, 3));
  }
  Range range = draft[x].range;
  if (!edge) range = Range::of_both(range, {1, 1});
  return Proposal{{x}, numbers, range};
}
std::vector<Array> build_pad(const ProgramStep& step, std::vector<Array>& in) {
  std::vector<std::pair<int, int>> widths;
  for (std::size_t i = 1; i < step.numbers.size(); i += 2) {
    widths.emplace_back(static_cast<int>(step.numbers[i]), static_cast<int>(step.numbers[i + 1]));
  }
  return {pad(in[0], widths, Array(1), step.numbers[0] ? "edge" : "constant")};
}

std::optional<Proposal> propose_flip(Draft& draft) {
  const std::size_t x = draft.any();
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < draft[x].shape().size(); ++i) {
    if (draft.chance(60)) axes.push_back(static_cast<std::int64_t>(i));
  }
  return Proposal{{x}, axes, draft[x].range};
}
std::vector<Array> build_flip(const ProgramStep& step, std::vector<Array>& in) {
  return {flip(in[0], shape_of(step.numbers))};
}

// ---- Over spatial axes

std::optional<std::size_t> find_spatial(Draft& draft) {
  return draft.find([](const Draft::Value& v) {
    return is_floating(v.spec().dtype) && v.shape().size() >= 3 && v.shape().size() <= 5 &&
           elements(v.shape()) > 0;
  });
}

/// The window's extent on each axis: 1 to 3, as far as there are elements.
Dims random_window(Draft& draft, const Shape& x) {
  Dims window;
  for (std::size_t i = 1; i + 1 < x.size(); ++i) {
    window.push_back(draft.between(1, std::min<std::int64_t>(3, x[i])));
  }
  return window;
}

/// Numbers: stride, padding.
std::optional<Proposal> propose_conv(Draft& draft) {
  const auto x = find_spatial(draft);
  if (!x) return std::nullopt;
  const Shape shape = draft[*x].shape();
  Shape weights{draft.between(1, 5)};
  double terms = static_cast<double>(shape.back());
  for (const std::int64_t taps : random_window(draft, shape)) {
    weights.push_back(taps);
    terms *= static_cast<double>(taps);
  }
  weights.push_back(shape.back());
  const std::size_t w = draft.input(draft[*x].spec().dtype, weights, {-1, 1});
  return Proposal{{*x, w},
                  {draft.between(1, 2), draft.between(0, 2)},
                  Range::around_zero(draft[*x].range.magnitude() * terms).widened()};
}
std::vector<Array> build_conv(const ProgramStep& step, std::vector<Array>& in) {
  return {conv_general(in[0], in[1], Dims{step.numbers[0]}, Dims{step.numbers[1]},
                       Dims{step.numbers[1]})};
}

/// Numbers: whether the mean, window.
std::optional<Proposal> propose_pool(Draft& draft) {
  const auto x = find_spatial(draft);
  if (!x) return std::nullopt;
  std::vector<std::int64_t> numbers{draft.chance(50)};
  for (const std::int64_t taps : random_window(draft, draft[*x].shape())) numbers.push_back(taps);
  return Proposal{{*x}, numbers, draft[*x].range.widened()};
}
std::vector<Array> build_pool(const ProgramStep& step, std::vector<Array>& in) {
  const Dims window = shape_of(step.numbers, 1);
  return {step.numbers[0] ? mean_pool(in[0], window) : max_pool(in[0], window)};
}

/// Numbers: whether linear, size.
std::optional<Proposal> propose_resize(Draft& draft) {
  const auto x = find_spatial(draft);
  if (!x) return std::nullopt;
  std::vector<std::int64_t> numbers{draft.chance(50)};
  for (std::size_t i = 1; i + 1 < draft[*x].shape().size(); ++i) {
    numbers.push_back(draft.between(1, 5));
  }
  return Proposal{{*x}, numbers, draft[*x].range.widened()};
}
std::vector<Array> build_resize(const ProgramStep& step, std::vector<Array>& in) {
  return {resize(in[0], shape_of(step.numbers, 1),
                 step.numbers[0] ? ResizeKind::linear : ResizeKind::nearest)};
}

/// Along any axis, or in groups of two channels. Numbers: axis, or -1.
std::optional<Proposal> propose_channel_norm(Draft& draft) {
  const auto found = find_axis(draft, [](DType dtype) { return is_floating(dtype); });
  if (!found) return std::nullopt;
  const Shape shape = draft[found->x].shape();
  const bool groups = shape.size() >= 2 && shape.back() % 2 == 0 && draft.chance(50);
  const std::int64_t channels = groups ? shape.back() : found->extent;
  const std::size_t weight = draft.input(draft[found->x].spec().dtype, {channels}, {-2, 2});
  const auto most = std::sqrt(static_cast<double>(elements(shape)));
  return Proposal{{found->x, weight},
                  {groups ? -1 : static_cast<std::int64_t>(found->axis)},
                  Range::around_zero(2 * most + 1)};
}
std::vector<Array> build_channel_norm(const ProgramStep& step, std::vector<Array>& in) {
  if (step.numbers[0] < 0) return {fast::group_norm(in[0], 2, in[1], std::nullopt, 1e-3f)};
  return {fast::channel_norm(in[0], static_cast<int>(step.numbers[0]), in[1], std::nullopt, 1e-3f)};
}

// ---- Experts

std::optional<Proposal> propose_grouped_linear(Draft& draft) {
  const auto x = draft.find(
      [](const Draft::Value& v) { return is_floating(v.spec().dtype) && v.shape().size() == 2; });
  if (!x) return std::nullopt;
  const std::int64_t tokens = draft[*x].shape()[0], depth = draft[*x].shape()[1];
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  const std::size_t weights =
      draft.input(kTypes[draft.below(3)], {3, draft.between(1, 9), depth}, {-1, 1});
  std::vector<double> experts;
  for (std::int64_t t = 0; t < tokens; ++t) {
    experts.push_back(static_cast<double>(draft.between(-1, 2)));
  }
  const double most = draft[*x].range.magnitude() * static_cast<double>(depth);
  return Proposal{{*x, weights, draft.input_of(DType::i32, {tokens}, experts)},
                  {},
                  Range::around_zero(most).widened()};
}
std::vector<Array> build_grouped_linear(const ProgramStep&, std::vector<Array>& in) {
  return {grouped_linear(in[0], in[1], in[2])};
}

// ---- Random numbers

/// From a key of the program's own. Numbers: the shape.
std::optional<Proposal> propose_random(Draft& draft) {
  const std::size_t key = draft.indices(2, 1000);
  return Proposal{{key}, {draft.between(0, 5), draft.between(1, 40)}, {0, 1}};
}
std::vector<Array> build_random(const ProgramStep& step, std::vector<Array>& in) {
  return {random::uniform(shape_of(step.numbers), astype(in[0], DType::u32))};
}

constexpr Rule kRules[] = {
    {"scan", 4, propose_scan, build_scan},
    {"arg_reduce", 2, propose_arg_reduce, build_arg_reduce},
    {"topk", 3, propose_topk, build_topk},
    {"take_along_axis", 3, propose_take_along, build_take_along},
    {"scatter_axis", 5, propose_scatter, build_scatter},
    {"pad", 3, propose_pad, build_pad},
    {"flip", 3, propose_flip, build_flip},
    {"conv", 3, propose_conv, build_conv},
    {"pool", 2, propose_pool, build_pool},
    {"resize", 2, propose_resize, build_resize},
    {"channel_norm", 2, propose_channel_norm, build_channel_norm},
    {"grouped_linear", 2, propose_grouped_linear, build_grouped_linear},
    {"random", 2, propose_random, build_random},
};

}  // namespace

std::span<const Rule> axis_rules() {
  return kRules;
}

}  // namespace heddle::test
