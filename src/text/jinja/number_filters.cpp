// Filters that make numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

/// Without white space around, a plus sign, and single underscores between digits, which Python
/// allows and from_chars does not.
std::optional<std::string> plain_number(std::string_view text) {
  text = text.substr(0, strip_end(text));
  text.remove_prefix(strip_begin(text));
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit_after =
        i + 1 < text.size() && isxdigit(static_cast<unsigned char>(text[i + 1]));
    if (text[i] != '_')
      plain += text[i];
    else if (plain.empty() || !isxdigit(static_cast<unsigned char>(plain.back())) || !digit_after)
      return std::nullopt;
  }
  return plain;
}

template <class T, class... Options>
std::optional<T> parsed(const std::optional<std::string>& text, Options... options) {
  if (!text) return std::nullopt;
  T value{};
  const char* end = text->data() + text->size();
  const auto [stopped, error] = std::from_chars(text->data(), end, value, options...);
  if (stopped != end || text->empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) fail_render("the number {} is too large", *text);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

Value truncated(double value) {
  if (!(std::fabs(value) < 9.2e18))
    fail_render("cannot convert {} to an integer", float_text(value));
  return Value::integer(static_cast<std::int64_t>(value));
}

/// int(default=0, base=10)
Value to_int(Runtime& run, const Value& self, const Bound& a) {
  require_defined(self);
  const Value otherwise = a.value_or(0, Value::integer(0));
  if (self.is<double>()) return truncated(*self.real());
  if (self.integer()) return Value::integer(*self.integer());
  if (self.text() == nullptr) return otherwise;
  run.scan(self.text()->size());
  const std::int64_t base = a.integer_or(1, 10);
  std::optional<std::string> text = plain_number(self.text()->bytes());
  if (text && text->size() > 2 && (*text)[0] == '0') {
    const char prefix = static_cast<char>((*text)[1] | 0x20);
    if ((base == 16 && prefix == 'x') || (base == 8 && prefix == 'o') ||
        (base == 2 && prefix == 'b'))
      text->erase(0, 2);
  }
  if (base < 2 || base > 36) return otherwise;
  if (const auto integer = parsed<std::int64_t>(text, static_cast<int>(base)))
    return Value::integer(*integer);
  if (const auto real = parsed<double>(plain_number(self.text()->bytes()))) return truncated(*real);
  return otherwise;
}

Value to_float(Runtime& run, const Value& self, const Bound& a) {
  require_defined(self);
  if (self.is_number()) return Value::real(*self.real());
  if (self.text() != nullptr) {
    run.scan(self.text()->size());
    if (const auto real = parsed<double>(plain_number(self.text()->bytes())))
      return Value::real(*real);
  }
  return a.value_or(0, Value::real(0));
}

Value abs_filter(Runtime&, const Value& self, const Bound&) {
  require_defined(self);
  if (self.is<double>()) return Value::real(std::fabs(*self.real()));
  if (!self.integer()) fail_render("bad operand type for abs(): '{}'", type_name(self));
  if (*self.integer() == std::numeric_limits<std::int64_t>::min())
    fail_render("an integer does not fit 64 bits");
  return Value::integer(std::abs(*self.integer()));
}

/// Half to even on the exact decimal value, as Python does: printf rounds so too.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 330) return value;
  if (digits < -330) return std::copysign(0.0, value);
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Value rounded(std::int64_t value, std::int64_t digits) {
  if (digits >= 0) return Value::integer(value);
  if (digits < -18) return Value::integer(0);
  std::int64_t scale = 1;
  for (; digits < 0; ++digits) scale *= 10;
  std::int64_t rest = value % scale, whole = value - rest;
  const std::int64_t twice = std::abs(rest) * 2;
  const bool away = twice > scale || (twice == scale && (whole / scale) % 2 != 0);
  if (away && __builtin_add_overflow(whole, rest < 0 ? -scale : scale, &whole))
    fail_render("an integer does not fit 64 bits");
  return Value::integer(whole);
}

/// round(precision=0, method='common')
Value round_filter(Runtime&, const Value& self, const Bound& a) {
  require_defined(self);
  const std::int64_t digits = a.integer_or(0, 0);
  const std::string method = a.given(1) ? a.text(1).bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail_render("method must be common, ceil or floor");
  if (!self.is_number()) fail_render("cannot round '{}'", type_name(self));
  if (method == "common")
    return self.integer() ? rounded(*self.integer(), digits)
                          : Value::real(rounded(*self.real(), digits));
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = *self.real() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

}  // namespace

const Natives& number_filters() {
  static const Natives all = natives({{"int", "default? base?", to_int},
                                      {"float", "default?", to_float},
                                      {"abs", "", abs_filter},
                                      {"round", "precision? method?", round_filter}});
  return all;
}

}  // namespace heddle::text::jinja
