// Element-wise rules.
#include "support/program_rules.h"

#include "heddle/ops.h"

namespace heddle::test {

namespace {

constexpr double kAny = 1e30;

// ---- Unary

Range widened(double lo, double hi) {
  return Range{std::min(lo, hi), std::max(lo, hi)}.widened();
}
template <double (*f)(double)>
Range monotone(Range r) {
  return widened(f(r.lo), f(r.hi));
}
template <int least, int most>
Range fixed(Range) {
  return {least, most};
}
Range mirrored(Range r) {
  return {-r.hi, -r.lo};
}
Range absolute(Range r) {
  return {r.avoids_zero(0) ? std::min(std::abs(r.lo), std::abs(r.hi)) : 0, r.magnitude()};
}
Range squared(Range r) {
  const Range a = absolute(r);
  return widened(a.lo * a.lo, a.hi * a.hi);
}
Range inverse(Range r) {
  return widened(1 / r.lo, 1 / r.hi);
}
Range inverse_root(Range r) {
  return widened(1 / std::sqrt(r.lo), 1 / std::sqrt(r.hi));
}
Range hyperbolic_cosine(Range r) {
  return {1 - 1.0 / 64, std::cosh(r.magnitude()) * 1.02};
}
Range gate(Range r) {  // x times something in [0, 1]
  return Range{std::min(r.lo, 0.0), std::max(r.hi, 0.0)}.widened();
}
Range whole(Range r) {
  return {std::floor(r.lo), std::ceil(r.hi)};
}

struct UnaryRule {
  Array (*f)(const Arg&);
  double least, most;  // of what it is defined for
  Range (*range)(Range);
  bool of_bool = true;
};

const UnaryRule kUnary[] = {
    {heddle::abs, -kAny, kAny, absolute},
    {negative, -kAny, kAny, mirrored, false},
    {sign, -kAny, kAny, fixed<-1, 1>, false},
    {square, -100, 100, squared, false},
    {heddle::sqrt, 0, kAny, monotone<std::sqrt>},
    {rsqrt, 0.01, kAny, inverse_root},
    {reciprocal, 0.01, kAny, inverse},
    {heddle::exp, -kAny, 8, monotone<std::exp>},
    {heddle::expm1, -kAny, 8, monotone<std::expm1>},
    {heddle::log, 0.01, kAny, monotone<std::log>},
    {heddle::log2, 0.01, kAny, monotone<std::log2>},
    {heddle::log10, 0.01, kAny, monotone<std::log10>},
    {heddle::log1p, -0.9, kAny, monotone<std::log1p>},
    {heddle::sin, -kAny, kAny, fixed<-1, 1>},
    {heddle::cos, -kAny, kAny, fixed<-1, 1>},
    {heddle::tan, -1.2, 1.2, fixed<-3, 3>},
    {heddle::sinh, -8, 8, monotone<std::sinh>},
    {heddle::cosh, -8, 8, hyperbolic_cosine},
    {heddle::tanh, -kAny, kAny, fixed<-1, 1>},
    {arcsin, -1, 1, fixed<-2, 2>},
    {arccos, -1, 1, fixed<0, 4>},
    {arctan, -kAny, kAny, fixed<-2, 2>},
    {sigmoid, -kAny, kAny, fixed<0, 1>},
    {silu, -kAny, kAny, gate},
    {gelu, -kAny, kAny, gate},
    {gelu_tanh, -kAny, kAny, gate},
    {relu, -kAny, kAny, gate},
    {heddle::erf, -kAny, kAny, fixed<-1, 1>},
    {heddle::floor, -kAny, kAny, whole},
    {heddle::ceil, -kAny, kAny, whole},
    {heddle::round, -kAny, kAny, whole},
    {logical_not, -kAny, kAny, fixed<0, 1>},
    {heddle::isnan, -kAny, kAny, fixed<0, 1>},
    {heddle::isinf, -kAny, kAny, fixed<0, 1>},
    {heddle::isfinite, -kAny, kAny, fixed<0, 1>},
    {heddle::trunc, -kAny, kAny, whole},
    {arcsinh, -kAny, kAny, monotone<std::asinh>},
    {arccosh, 1, kAny, monotone<std::acosh>},
    {arctanh, -0.9, 0.9, fixed<-2, 2>},
    {erfinv, -0.9, 0.9, fixed<-2, 2>},
};

std::optional<Proposal> propose_unary(Draft& draft) {
  const std::size_t kind = draft.below(std::size(kUnary));
  const UnaryRule& rule = kUnary[kind];
  const auto x = draft.find([&](const Draft::Value& v) {
    return v.range.within(rule.least, rule.most) && (rule.of_bool || !is_boolean(v.spec().dtype));
  });
  if (!x) return std::nullopt;
  return Proposal{{*x}, {static_cast<std::int64_t>(kind)}, rule.range(draft[*x].range)};
}

std::vector<Array> build_unary(const ProgramStep& step, std::vector<Array>& in) {
  return {kUnary[step.numbers[0]].f(in[0])};
}

// ---- Binary

bool broadcasts(const Shape& a, const Shape& b) {
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const std::int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

/// A partner for `a`: most often of its spec, so that results fit into either's memory.
std::size_t partner(Draft& draft, std::size_t a) {
  const TensorSpec spec = draft[a].spec();
  if (draft.chance(50)) {
    const auto b = draft.find([&](const Draft::Value& v) { return v.spec() == spec; });
    if (b) return *b;
  }
  const auto b =
      draft.find([&](const Draft::Value& v) { return broadcasts(v.shape(), spec.shape); });
  return b.value_or(a);
}

using Values = Draft::Value;

bool both_bool(const Values& a, const Values& b) {
  return is_boolean(a.spec().dtype) && is_boolean(b.spec().dtype);
}
bool both_whole(const Values& a, const Values& b) {
  return is_integer(a.spec().dtype) && is_integer(b.spec().dtype);
}

using BinaryRange = std::optional<Range> (*)(const Values& a, const Values& b);

std::optional<Range> range_of_sum(const Values& a, const Values& b) {
  return widened(a.range.lo + b.range.lo, a.range.hi + b.range.hi);
}
std::optional<Range> range_of_difference(const Values& a, const Values& b) {
  if (both_bool(a, b)) return std::nullopt;
  return widened(a.range.lo - b.range.hi, a.range.hi - b.range.lo);
}
std::optional<Range> range_of_product(const Values& a, const Values& b) {
  const double most = a.range.magnitude() * b.range.magnitude();
  const bool positive = a.range.lo >= 0 && b.range.lo >= 0;
  return positive ? widened(a.range.lo * b.range.lo, most) : Range::around_zero(most).widened();
}
std::optional<Range> range_of_quotient(const Values& a, const Values& b) {
  if (!b.range.avoids_zero(0.05)) return std::nullopt;
  const double least = std::min(std::abs(b.range.lo), std::abs(b.range.hi));
  return Range::around_zero(a.range.magnitude() / least + 1).widened();
}
std::optional<Range> range_of_floor_quotient(const Values& a, const Values& b) {
  return both_bool(a, b) ? std::nullopt : range_of_quotient(a, b);
}
std::optional<Range> range_of_remainder(const Values& a, const Values& b) {
  if (both_bool(a, b) || !b.range.avoids_zero(0.05)) return std::nullopt;
  return Range{std::min(b.range.lo, 0.0), std::max(b.range.hi, 0.0)}.widened();
}
std::optional<Range> range_of_power(const Values& a, const Values& b) {
  const bool fits = both_whole(a, b)
                        ? a.range.within(0, 4) && b.range.within(0, 4)
                        : a.range.within(0.25, 4) && b.range.within(-4, 4) && !both_bool(a, b);
  return fits ? std::optional(Range{0, 270}) : std::nullopt;
}
std::optional<Range> range_of_either(const Values& a, const Values& b) {
  return Range::of_both(a.range, b.range);
}
std::optional<Range> range_of_log_sum(const Values& a, const Values& b) {
  if (a.range.magnitude() > 50 || b.range.magnitude() > 50) return std::nullopt;
  return Range{-51, 52};
}
std::optional<Range> range_of_angle(const Values&, const Values&) {
  return Range{-4, 4};
}
std::optional<Range> range_of_truth(const Values&, const Values&) {
  return Range{0, 1};
}
std::optional<Range> range_of_bits(const Values& a, const Values& b) {
  if (both_bool(a, b)) return Range{0, 1};
  if (!both_whole(a, b) || a.range.lo < 0 || b.range.lo < 0) return std::nullopt;
  return Range{0, 2 * std::max(a.range.hi, b.range.hi) + 1};
}
std::optional<Range> range_of_shift(const Values& a, const Values& b) {
  if (!both_whole(a, b) || !a.range.within(0, 1000) || !b.range.within(0, 6)) return std::nullopt;
  return Range{0, a.range.hi * 64};
}

struct BinaryRule {
  Array (*f)(const Arg&, const Arg&);
  BinaryRange range;
};

const BinaryRule kBinary[] = {
    {add, range_of_sum},
    {subtract, range_of_difference},
    {multiply, range_of_product},
    {divide, range_of_quotient},
    {floor_divide, range_of_floor_quotient},
    {heddle::remainder, range_of_remainder},
    {power, range_of_power},
    {maximum, range_of_either},
    {minimum, range_of_either},
    {logaddexp, range_of_log_sum},
    {arctan2, range_of_angle},
    {logical_and, range_of_truth},
    {logical_or, range_of_truth},
    {bitwise_and, range_of_bits},
    {bitwise_or, range_of_bits},
    {bitwise_xor, range_of_bits},
    {left_shift, range_of_shift},
    {right_shift, range_of_shift},
    {equal, range_of_truth},
    {not_equal, range_of_truth},
    {less, range_of_truth},
    {less_equal, range_of_truth},
    {greater, range_of_truth},
    {greater_equal, range_of_truth},
};
constexpr std::size_t kBasic = 3;  // the first of them

std::optional<Proposal> propose_binary(Draft& draft) {
  const std::size_t kind = draft.below(draft.chance(50) ? kBasic : std::size(kBinary));
  std::size_t a = draft.any(), b = partner(draft, a);
  if (draft.chance(50)) std::swap(a, b);
  const auto range = kBinary[kind].range(draft[a], draft[b]);
  if (!range) return std::nullopt;
  return Proposal{{a, b}, {static_cast<std::int64_t>(kind)}, *range};
}

std::vector<Array> build_binary(const ProgramStep& step, std::vector<Array>& in) {
  return {kBinary[step.numbers[0]].f(in[0], in[1])};
}

// ---- The rest

std::optional<Proposal> propose_where(Draft& draft) {
  const std::size_t x = draft.any(), y = partner(draft, x);
  const auto condition = draft.find([&](const Draft::Value& v) {
    return broadcasts(v.shape(), draft[x].shape()) && broadcasts(v.shape(), draft[y].shape());
  });
  if (!condition) return std::nullopt;
  return Proposal{{*condition, x, y}, {}, Range::of_both(draft[x].range, draft[y].range)};
}
std::vector<Array> build_where(const ProgramStep&, std::vector<Array>& in) {
  return {where(in[0], in[1], in[2])};
}

std::optional<Proposal> propose_clip(Draft& draft) {
  const auto x = draft.find_floating();
  if (!x) return std::nullopt;
  return Proposal{{*x}, {}, {-1, 1}};
}
std::vector<Array> build_clip(const ProgramStep&, std::vector<Array>& in) {
  return {clip(in[0], Array(-1.0f), Array(1.0f))};
}

std::optional<Proposal> propose_astype(Draft& draft) {
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64,
                              DType::i32, DType::i64, DType::u8,  DType::bool_};
  const DType dtype = kTypes[draft.below(std::size(kTypes))];
  const std::size_t x = draft.any();
  const Range range = is_boolean(dtype) ? Range{0, 1} : draft[x].range.widened();
  return Proposal{{x}, {static_cast<std::int64_t>(dtype)}, range};
}
std::vector<Array> build_astype(const ProgramStep& step, std::vector<Array>& in) {
  return {astype(in[0], static_cast<DType>(step.numbers[0]))};
}

std::optional<Proposal> propose_gated(Draft& draft) {
  const auto gate_value = draft.find_floating();
  if (!gate_value) return std::nullopt;
  const TensorSpec spec = draft[*gate_value].spec();
  const auto up = draft.find([&](const Draft::Value& v) { return v.spec() == spec; });
  if (!up) return std::nullopt;
  const double most = draft[*gate_value].range.magnitude() * draft[*up].range.magnitude();
  return Proposal{{*gate_value, *up}, {}, Range::around_zero(most).widened()};
}
std::vector<Array> build_gated(const ProgramStep&, std::vector<Array>& in) {
  return {gated_multiply(in[0], in[1])};
}

constexpr Rule kRules[] = {
    {"unary", 24, propose_unary, build_unary},   {"binary", 30, propose_binary, build_binary},
    {"where", 5, propose_where, build_where},    {"clip", 5, propose_clip, build_clip},
    {"astype", 5, propose_astype, build_astype}, {"gated_multiply", 3, propose_gated, build_gated},
};

}  // namespace

std::span<const Rule> elementwise_rules() {
  return kRules;
}

}  // namespace heddle::test
