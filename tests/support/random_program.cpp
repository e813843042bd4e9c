#include "support/random_program.h"

#include <fmt/format.h>

#include <numeric>

#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

constexpr std::int64_t kMostElements = 4096;
constexpr double kLargest = 2e4;  // well within f16

/// Whether the type holds all of the range (floats: with room to spare).
bool holds(DType dtype, Range range) {
  switch (dtype) {
    case DType::bool_:
      return range.within(0, 1);
    case DType::u8:
      return range.within(0, 255);
    case DType::i32:
    case DType::i64:
      return range.magnitude() <= 1e9;
    default:
      return range.magnitude() <= kLargest;
  }
}

const Rule& rule_of(std::size_t rule) {
  return rule == kFailingRule ? failing_rule() : program_rules()[rule];
}

}  // namespace

std::span<const Rule> program_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all = {{"input", 0, nullptr, nullptr}};
    for (const auto family : {elementwise_rules(), shape_rules(), row_rules(), axis_rules(),
                              order_rules(), linalg_rules()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rules;
}

// ---- Drafts

std::size_t Draft::any() {
  const std::size_t recent = std::min<std::size_t>(values_.size(), 12);
  return chance(75) ? values_.size() - 1 - below(recent) : below(values_.size());
}

std::optional<std::size_t> Draft::find_floating(std::size_t min_rank) {
  return find(
      [&](const Value& v) { return is_floating(v.spec().dtype) && v.shape().size() >= min_rank; });
}

std::size_t Draft::input(DType dtype, const Shape& shape, Range range) {
  std::uniform_real_distribution<double> spread(range.lo, range.hi);
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  for (double& value : values)
    value = is_floating(dtype) ? spread(random_) : std::round(spread(random_));
  return input_of(dtype, shape, values);
}

std::size_t Draft::input_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  if (is_half(dtype) && !halves_) dtype = DType::f32;
  const Array array = astype(Array(values, shape), dtype);
  program_.inputs.push_back({array.spec(), array.to_bytes()});
  Range range;
  if (!values.empty()) {
    const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
    range = {*lo, *hi};
  }
  ProgramStep step{
      kInputRule, {}, {static_cast<std::int64_t>(program_.inputs.size() - 1)}, {}, false};
  append(std::move(step), {array}, is_floating(dtype) ? range.widened() : range);
  return values_.size() - 1;
}

std::size_t Draft::indices(std::int64_t count, std::int64_t limit) {
  constexpr DType kTypes[] = {DType::i32, DType::i64, DType::u8};
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(between(0, limit - 1)));
  return input_of(limit > 255 ? DType::i32 : kTypes[below(3)], {count}, values);
}

bool Draft::is_welcome(const Array& array, Range range) const {
  const bool small = array.ndim() <= 5 && array.size() <= kMostElements;
  return small && holds(array.dtype(), range) && (halves_ || !is_half(array.dtype()));
}

void Draft::append(ProgramStep step, std::vector<Array> arrays, Range range) {
  for (Array& array : arrays) {
    step.outputs.push_back(array.spec());
    values_.push_back({std::move(array), range});
  }
  program_.steps.push_back(std::move(step));
}

void Draft::grow(std::size_t rule) {
  std::optional<Proposal> proposal = rule_of(rule).propose(*this);
  if (!proposal) return;
  ProgramStep step{
      rule, std::move(proposal->operands), std::move(proposal->numbers), {}, proposal->fails};
  std::vector<Array> operands;
  for (const std::size_t value : step.operands) operands.push_back(values_[value].array);
  std::vector<Array> arrays = rule_of(rule).build(step, operands);
  for (const Array& array : arrays) {
    if (!is_welcome(array, proposal->range)) return;
  }
  append(std::move(step), std::move(arrays), proposal->range);
}

Program Draft::finish() {
  const std::size_t count = values_.size();
  for (std::size_t value = 0; value < count; ++value) {
    if (value + 3 >= count || chance(12)) program_.results.push_back(value);
  }
  return std::move(program_);
}

namespace {

void add_inputs(Draft& draft) {
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16,
                              DType::f64, DType::i32, DType::i64, DType::u8,  DType::bool_};
  const Shape shapes[] = {{4, 32}, {4, 32}, {32}, {4, 1}, {2, 3, 8}, {5}, {}};
  for (const Shape& shape : shapes) {
    const DType dtype = kTypes[draft.below(std::size(kTypes))];
    const bool positive = draft.chance(50) || dtype == DType::u8 || is_boolean(dtype);
    const double most = is_boolean(dtype) ? 1 : is_floating(dtype) ? 2 : 20;
    draft.input(dtype, shape, {positive ? (is_floating(dtype) ? 0.1 : 0) : -most, most});
  }
  draft.input(DType::f32, {4, 32}, {-2, 2});  // so that there is always something to do
}

std::size_t choose_rule(Draft& draft) {
  const std::span<const Rule> rules = program_rules();
  static const int total = std::accumulate(
      rules.begin(), rules.end(), 0, [](int sum, const Rule& rule) { return sum + rule.weight; });
  auto left = static_cast<int>(draft.below(static_cast<std::size_t>(total)));
  std::size_t rule = 0;
  while ((left -= rules[rule].weight) >= 0) ++rule;
  return rule;
}

}  // namespace

Program random_program(unsigned seed, const ProgramOptions& options) {
  Draft draft(seed, options.halves);
  add_inputs(draft);
  for (int i = 0; i < options.steps; ++i) {
    draft.grow(draft.chance(options.failing) ? kFailingRule : choose_rule(draft));
  }
  return draft.finish();
}

// ---- Text

std::size_t Program::value_count() const {
  return std::accumulate(
      steps.begin(), steps.end(), std::size_t{0},
      [](std::size_t sum, const ProgramStep& step) { return sum + step.outputs.size(); });
}

std::string to_string(const Program& program) {
  std::string text = fmt::format("program of seed {}:\n", program.seed);
  std::size_t next = 0;
  for (const ProgramStep& step : program.steps) {
    std::string outputs, operands;
    for (const TensorSpec& spec : step.outputs)
      outputs += fmt::format(" %{}:{}", next++, to_string(spec));
    for (const std::size_t value : step.operands) operands += fmt::format(" %{}", value);
    text += fmt::format(" {} = {}{} <{}>\n", outputs, rule_of(step.rule).name, operands,
                        fmt::join(step.numbers, ", "));
  }
  return text + fmt::format("  results: {}\n", fmt::join(program.results, " "));
}

}  // namespace heddle::test
