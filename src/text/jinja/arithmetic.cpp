#include "text/jinja/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

[[noreturn]] void fail_operands(const std::string& op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  fail_render("unsupported operand types for {}: '{}' and '{}'", op, type_name(a), type_name(b));
}

[[noreturn]] void fail_overflow() {
  fail_render("an integer does not fit 64 bits");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_render("integer division or modulo by zero");
  if (b == -1) {
    if (a == std::numeric_limits<std::int64_t>::min()) fail_overflow();
    return -a;
  }
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_render("integer division or modulo by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
  if (b == 0) fail_render("float modulo");
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail_render("0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  }
  return Value::integer(result);
}

Value integers(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "//") {
    result = floor_divide(a, b);
  } else if (op == "%") {
    result = modulo(a, b);
  } else if (op == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) fail_render("division by zero");
    return Value::real(static_cast<double>(a) / static_cast<double>(b));
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

Value reals(const std::string& op, double a, double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "%") return Value::real(modulo(a, b));
  if (op == "**") {
    if (a == 0 && b < 0) fail_render("0.0 cannot be raised to a negative power");
    const double power = std::pow(a, b);
    if (std::isnan(power) && !std::isnan(a) && !std::isnan(b))
      fail_render("a power that is no real number");
    if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail_render("a power too large");
    return Value::real(power);
  }
  if (b == 0) fail_render("float division by zero");
  if (op == "/") return Value::real(a / b);
  return Value::real(std::floor((a - modulo(a, b)) / b + 0.5));
}

Value repeated(Runtime& run, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (const Text* text = value.text()) {
    if (times != 0 && text->size() > run.limits().output_bytes / times)
      run.check_size(run.limits().output_bytes + 1);
    Text all;
    if (!text->empty()) {
      for (std::size_t i = 0; i < times; ++i) all.append(*text);
    }
    return run.string(std::move(all));
  }
  const Sequence& sequence = *value.sequence();
  std::vector<Value> all;
  if (sequence.elements.empty()) return run.sequence(std::move(all), sequence.kind);
  for (std::size_t i = 0; i < times; ++i) {
    run.step(static_cast<std::int64_t>(sequence.elements.size()));
    all.insert(all.end(), sequence.elements.begin(), sequence.elements.end());
  }
  return run.sequence(std::move(all), sequence.kind);
}

bool is_list_or_tuple(const Value& value) {
  return value.sequence() != nullptr && value.sequence()->kind <= SequenceKind::tuple;
}

Value added(Runtime& run, const Value& a, const Value& b) {
  if (a.text() != nullptr && b.text() != nullptr) {
    run.make(a.text()->size() + b.text()->size());
    Text both = *a.text();
    both.append(*b.text());
    return run.string(std::move(both));
  }
  if (is_list_or_tuple(a) && is_list_or_tuple(b) && a.sequence()->kind == b.sequence()->kind) {
    std::vector<Value> both = a.sequence()->elements;
    both.insert(both.end(), b.sequence()->elements.begin(), b.sequence()->elements.end());
    return run.sequence(std::move(both), a.sequence()->kind);
  }
  fail_operands("+", a, b);
}

/// The indices of size elements that a slice takes, as Python counts them.
struct Range {
  std::int64_t begin, end, step;
};

Range slice_range(std::int64_t size, const Value& begin, const Value& end, const Value& step) {
  const auto bound = [](const Value& value) -> std::optional<std::int64_t> {
    if (value.is_none()) return std::nullopt;
    require_defined(value);
    if (!value.integer()) fail_render("slice indices must be integers");
    return value.integer();
  };
  Range range{0, 0, bound(step).value_or(1)};
  if (range.step == 0) fail_render("slice step cannot be zero");
  const std::int64_t low = range.step < 0 ? -1 : 0, high = range.step < 0 ? size - 1 : size;
  const auto clamped = [&](std::optional<std::int64_t> index, std::int64_t otherwise) {
    if (!index) return otherwise;
    return std::clamp(*index < 0 ? *index + size : *index, low, high);
  };
  range.begin = clamped(bound(begin), range.step < 0 ? high : low);
  range.end = clamped(bound(end), range.step < 0 ? low : high);
  return range;
}

template <class Visit>
void each_index(const Range& range, Visit visit) {
  if (range.step > 0) {
    for (std::int64_t i = range.begin; i < range.end;) {
      visit(static_cast<std::size_t>(i));
      if (__builtin_add_overflow(i, range.step, &i)) return;
    }
  } else {
    for (std::int64_t i = range.begin; i > range.end;) {
      visit(static_cast<std::size_t>(i));
      if (__builtin_add_overflow(i, range.step, &i)) return;
    }
  }
}

Value sliced_text(Runtime& run, const Text& text, const Value& begin, const Value& end,
                  const Value& step) {
  run.scan(text.size());
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  const auto range = slice_range(static_cast<std::int64_t>(starts.size()) - 1, begin, end, step);
  Text part;
  if (range.step == 1) {
    if (range.begin < range.end)
      part = text.slice(starts[static_cast<std::size_t>(range.begin)],
                        starts[static_cast<std::size_t>(range.end)]);
  } else {
    each_index(range, [&](std::size_t i) { part.append(text, starts[i], starts[i + 1]); });
  }
  return run.string(std::move(part));
}

}  // namespace

Value arithmetic(Runtime& run, const std::string& op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.integer() && b.integer() ? integers(op, *a.integer(), *b.integer())
                                      : reals(op, *a.real(), *b.real());
  if (op == "+") return added(run, a, b);
  if (op == "*") {
    const auto repeats = [](const Value& value) {
      return value.text() != nullptr || is_list_or_tuple(value);
    };
    if (repeats(a) && b.integer()) return repeated(run, a, *b.integer());
    if (repeats(b) && a.integer()) return repeated(run, b, *a.integer());
  }
  if (op == "%" && a.text() != nullptr) return run.string(percent_format(run, *a.text(), b));
  fail_operands(op, a, b);
}

Value negated(const Value& value) {
  require_defined(value);
  if (value.is<double>()) return Value::real(-*value.real());
  if (!value.integer()) fail_render("bad operand type for unary -: '{}'", type_name(value));
  return integers("-", 0, *value.integer());
}

Value plus(const Value& value) {
  require_defined(value);
  if (!value.is_number()) fail_render("bad operand type for unary +: '{}'", type_name(value));
  return value.is<bool>() ? Value::integer(*value.integer()) : value;
}

bool related(Runtime& run, const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(run, a, b);
  if (op == "!=") return !equal(run, a, b);
  if (op == "in") return contains(run, b, a);
  if (op == "not in") return !contains(run, b, a);
  const bool nan =
      (a.is<double>() && std::isnan(*a.real())) || (b.is<double>() && std::isnan(*b.real()));
  const int order = compare(run, a, b, op);
  if (nan) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

Value sliced(Runtime& run, const Value& value, const Value& begin, const Value& end,
             const Value& step) {
  require_defined(value);
  if (const Text* text = value.text()) return sliced_text(run, *text, begin, end, step);
  const Sequence* sequence = value.sequence();
  const bool can =
      sequence != nullptr && (is_list_or_tuple(value) || sequence->kind == SequenceKind::range);
  if (!can) fail_render("'{}' object cannot be sliced", type_name(value));
  std::vector<Value> part;
  const auto range =
      slice_range(static_cast<std::int64_t>(sequence->elements.size()), begin, end, step);
  each_index(range, [&](std::size_t i) { part.push_back(sequence->elements[i]); });
  const bool tuple = sequence->kind == SequenceKind::tuple;
  return run.sequence(std::move(part), tuple ? SequenceKind::tuple : SequenceKind::list);
}

}  // namespace heddle::text::jinja
