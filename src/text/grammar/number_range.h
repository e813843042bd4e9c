// JSON numbers within bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/grammar/expr.h"

namespace heddle::text::grammar {

/// A number by its digits, exact.
struct Decimal {
  bool negative = false;  // never of zero
  std::string whole;      // no leading zeros, but at least one digit
  std::string fraction;   // no trailing zeros

  bool is_zero() const noexcept { return whole == "0" && fraction.empty(); }
};

/// Of JSON's notation. Nothing if it has more than 400 digits when written out.
std::optional<Decimal> parse_decimal(std::string_view json);
/// Negative, 0 or positive, like a - b.
int compare(const Decimal& a, const Decimal& b) noexcept;

struct Bound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<Bound> min, max;
  bool integer = false;
  std::uint32_t multiple_of = 1;  // more than 1: integers only

  bool contains(const Decimal& number) const;
};

/// A lower bound that is the harder to meet of the two; with `upper`, an upper bound.
std::optional<Bound> tighter(const std::optional<Bound>& a, const Bound& b, bool upper);

/// The numbers of a range with up to 15 digits, or as many as its bounds have: what floating point
/// tells apart. Throws unsupported, `where` first.
Machine number_machine(const NumberRange& range, std::string_view where);
/// All numbers, or integers, of up to 15 digits, and exponents up to 99.
Expr any_number(bool integer);

}  // namespace heddle::text::grammar
