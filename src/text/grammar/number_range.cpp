#include "text/grammar/number_range.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <vector>

#include "base/check.h"

namespace heddle::text::grammar {
namespace {

/// Decimals of so many digits are told apart by binary64, and come back from it as they were.
constexpr std::uint32_t kDigits = 15;
constexpr std::uint32_t kMostDigits = 40;
constexpr int kMostExponent = 400;
constexpr std::size_t kMostStates = 50'000;

const Decimal kZero{false, "0", ""};

int compare_magnitude(const Decimal& a, const Decimal& b) noexcept {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  const int whole = a.whole.compare(b.whole);
  return whole != 0 ? whole : a.fraction.compare(b.fraction);
}

/// How the digits read so far compare with those of a bound.
enum class Order : std::uint8_t { less, same, more };

Order after_digit(Order order, char digit, char bound) {
  if (order != Order::same) return order;
  return digit < bound ? Order::less : digit > bound ? Order::more : Order::same;
}

/// Numbers without a sign, from `min` to `max`.
struct Magnitudes {
  Bound min;
  std::optional<Bound> max;
};

class NumberMachine {
 public:
  NumberMachine(const NumberRange& range, std::string_view where) : range_(range), where_(where) {}

  Machine make() {
    machine_.states.emplace_back();
    add_side("", positive());
    if (const auto negative = negative_side()) add_side("-", *negative);
    return std::move(machine_);
  }

 private:
  /// Where in a number: digits before the point, after it, and how they compare with the bounds.
  struct Place {
    std::uint32_t whole = 0, fraction = 0;
    bool has_point = false;
    Order min = Order::same, max = Order::same;
    std::uint32_t remainder = 0;
    bool is_zero = false;  // a leading 0: no digit may follow
    auto operator<=>(const Place&) const = default;
  };

  std::optional<Magnitudes> positive() const {
    Magnitudes side{{kZero, false}, range_.max};
    if (range_.max && range_.max->value.negative) return std::nullopt;
    if (range_.min && !range_.min->value.negative) side.min = *range_.min;
    return side;
  }
  std::optional<Magnitudes> negative_side() const {
    Magnitudes side{{kZero, true}, std::nullopt};
    if (range_.min) {
      if (!range_.min->value.negative) return std::nullopt;
      side.max = range_.min;
    }
    if (range_.max && range_.max->value.negative) side.min = *range_.max;
    return side;
  }

  void add_side(const char* sign, const std::optional<Magnitudes>& side) {
    if (!side) return;
    const auto digits = static_cast<std::uint32_t>(side->min.value.whole.size());
    require(digits <= kMostDigits, ErrorCode::unsupported,
            "{}: bounds of more than {} digits are not supported", where_, kMostDigits);
    side_ = *side;
    most_digits_ = std::max(kDigits, digits);
    numbers_.clear();
    places_.clear();
    const std::uint32_t start = number_of(Place());
    machine_.states[0].edges.push_back({make_text(sign), start});
    for (std::size_t i = 0; i < places_.size(); ++i) add_edges(places_[i]);
  }

  std::uint32_t number_of(const Place& place) {
    const auto [at, is_new] =
        numbers_.emplace(place, static_cast<std::uint32_t>(machine_.states.size()));
    if (is_new) {
      require(machine_.states.size() < kMostStates, ErrorCode::unsupported,
              "{}: these bounds and multipleOf are too much together", where_);
      machine_.states.push_back({accepts(place), {}});
      places_.push_back(place);
    }
    return at->second;
  }

  void add_edges(const Place place) {
    const std::uint32_t from = numbers_.at(place);
    std::map<Place, std::vector<CharRange>> targets;
    for (char digit = '0'; digit <= '9'; ++digit) {
      const std::optional<Place> next = after(place, digit);
      if (next) targets[*next].push_back({char32_t(digit), char32_t(digit)});
    }
    for (auto& [target, digits] : targets) {
      const std::uint32_t to = number_of(target);
      machine_.states[from].edges.push_back({make_chars(CharSet(std::move(digits))), to});
    }
    const bool may_have_point = !range_.integer && range_.multiple_of == 1 && !place.has_point &&
                                place.whole > 0 && place.whole < kDigits;
    if (!may_have_point) return;
    Place point = place;
    point.has_point = true;
    point.min = at_point(place.whole, place.min, side_.min.value);
    if (side_.max) point.max = at_point(place.whole, place.max, side_.max->value);
    const std::uint32_t to = number_of(point);
    machine_.states[from].edges.push_back({make_text("."), to});
  }

  std::optional<Place> after(Place p, char digit) const {
    const auto bound_digit = [&](const Decimal& bound) {
      const std::string& digits = p.has_point ? bound.fraction : bound.whole;
      const std::uint32_t at = p.has_point ? p.fraction : p.whole;
      return at < digits.size() ? digits[at] : '0';
    };
    if (p.has_point ? p.whole + p.fraction >= kDigits : p.is_zero || p.whole >= most_digits_)
      return std::nullopt;
    p.min = after_digit(p.min, digit, bound_digit(side_.min.value));
    if (side_.max) p.max = after_digit(p.max, digit, bound_digit(side_.max->value));
    p.is_zero = !p.has_point && p.whole == 0 && digit == '0';
    ++(p.has_point ? p.fraction : p.whole);
    p.remainder = (p.remainder * 10 + static_cast<std::uint32_t>(digit - '0')) % range_.multiple_of;
    return p;
  }

  /// More digits before the point than the bound has are more, whatever they are.
  static Order at_point(std::uint32_t digits, Order order, const Decimal& bound) {
    if (digits != bound.whole.size())
      return digits < bound.whole.size() ? Order::less : Order::more;
    return order;
  }

  static Order at_end(const Place& p, Order order, const Decimal& bound) {
    if (!p.has_point) order = at_point(p.whole, order, bound);
    // Fractions have no trailing zeros, so what is left of one counts.
    return order == Order::same && p.fraction < bound.fraction.size() ? Order::less : order;
  }

  bool accepts(const Place& p) const {
    if (p.whole == 0 || (p.has_point && p.fraction == 0) || p.remainder != 0) return false;
    const Order min = at_end(p, p.min, side_.min.value);
    if (min == Order::less || (min == Order::same && side_.min.exclusive)) return false;
    if (!side_.max) return true;
    const Order max = at_end(p, p.max, side_.max->value);
    return max == Order::less || (max == Order::same && !side_.max->exclusive);
  }

  const NumberRange& range_;
  std::string_view where_;
  Machine machine_;
  Magnitudes side_;
  std::uint32_t most_digits_ = kDigits;
  std::map<Place, std::uint32_t> numbers_;
  std::vector<Place> places_;
};

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view json) {
  Decimal d;
  d.negative = json.starts_with('-');
  if (d.negative) json.remove_prefix(1);
  const std::size_t e = json.find_first_of("eE");
  int exponent = 0;
  if (e != json.npos) {
    std::string_view digits = json.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    json = json.substr(0, e);
  }
  if (std::abs(exponent) > kMostExponent) return std::nullopt;
  const std::size_t point = std::min(json.find('.'), json.size());
  std::string digits(json.substr(0, point));
  if (point < json.size()) digits += json.substr(point + 1);
  std::ptrdiff_t whole = static_cast<std::ptrdiff_t>(point) + exponent;
  if (whole < 0) {
    digits.insert(0, static_cast<std::size_t>(-whole), '0');
    whole = 0;
  }
  digits.resize(std::max(digits.size(), static_cast<std::size_t>(whole)), '0');
  d.whole = digits.substr(0, static_cast<std::size_t>(whole));
  d.fraction = digits.substr(static_cast<std::size_t>(whole));
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  if (d.whole.empty()) d.whole.push_back('0');
  while (d.fraction.ends_with('0')) d.fraction.pop_back();
  if (d.is_zero()) d.negative = false;
  return d;
}

int compare(const Decimal& a, const Decimal& b) noexcept {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

bool NumberRange::contains(const Decimal& number) const {
  if ((integer || multiple_of > 1) && !number.fraction.empty()) return false;
  std::uint64_t remainder = 0;
  for (const char digit : number.whole)
    remainder = (remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % multiple_of;
  if (remainder != 0) return false;
  const int from_min = min ? compare(number, min->value) : 1;
  const int from_max = max ? compare(number, max->value) : -1;
  return (from_min > 0 || (from_min == 0 && !min->exclusive)) &&
         (from_max < 0 || (from_max == 0 && !max->exclusive));
}

std::optional<Bound> tighter(const std::optional<Bound>& a, const Bound& b, bool upper) {
  if (!a) return b;
  const int order = upper ? compare(b.value, a->value) : compare(a->value, b.value);
  if (order == 0) return b.exclusive ? b : *a;
  return order < 0 ? b : *a;
}

Machine number_machine(const NumberRange& range, std::string_view where) {
  return NumberMachine(range, where).make();
}

Expr any_number(bool integer) {
  const auto digits = [](char32_t first) { return make_chars(CharSet({{first, '9'}})); };
  const Expr whole = make_sequence({digits('1'), make_repeat(digits('0'), 0, kDigits - 1)});
  if (integer)
    return make_choice({make_text("0"), make_sequence({make_optional(make_text("-")), whole})});
  const Expr fraction = make_sequence({make_text("."), make_repeat(digits('0'), 1, kDigits)});
  const Expr exponent = make_sequence({make_chars(CharSet({{'E', 'E'}, {'e', 'e'}})),
                                       make_optional(make_chars(CharSet({{'+', '+'}, {'-', '-'}}))),
                                       make_repeat(digits('0'), 1, 2)});
  return make_sequence({make_optional(make_text("-")), make_choice({make_text("0"), whole}),
                        make_optional(fraction), make_optional(exponent)});
}

}  // namespace heddle::text::grammar
