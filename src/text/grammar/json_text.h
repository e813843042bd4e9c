// How JSON is written where a grammar makes it: on one line, with at most one space after a comma
// or a colon, so that a model cannot go on with white space for ever.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "text/grammar/char_dfa.h"
#include "text/grammar/expr.h"

namespace heddle::text::grammar {

/// Between quotes, with the escapes that JSON asks for.
std::string json_string(std::string_view utf8);

/// A comma or a colon, with or without a space.
Expr json_comma();
Expr json_colon();
/// "[" and "]" or "{" and "}" around a list of `items`: at least `min`, at most `max`.
Expr json_list(std::string_view open, Expr item, std::uint32_t min, std::uint32_t max,
               std::string_view close);
/// This value and no other.
Expr json_value(const nlohmann::ordered_json& value);

/// The strings of a language, with no escapes but those that JSON asks for. Control characters that
/// have no short escape are left out.
Machine json_strings(const CharDfa& dfa);
/// One of these texts.
Machine one_of(std::span<const std::string> texts);

/// How deep values of which nothing is known may nest.
inline constexpr int kOpenNesting = 32;

/// The rules for JSON of which nothing is known, shared within a grammar.
class OpenJson {
 public:
  explicit OpenJson(Rules& rules) : rules_(rules) {}
  /// With all escapes, surrogates in pairs.
  Expr string();
  /// Of at least `min` and at most `max` characters.
  Expr string(std::uint32_t min, std::uint32_t max);
  Expr value() { return make_rule(value_rule()); }
  /// With any keys and values.
  Expr object();
  Expr array();

 private:
  RuleId add(const char* name, Expr body);
  RuleId value_rule();
  Expr character();

  static constexpr RuleId kNone = ~RuleId{0};
  Rules& rules_;
  RuleId escape_ = kNone, string_ = kNone;
  RuleId value_ = kNone, object_ = kNone, array_ = kNone;  // the outermost
};

}  // namespace heddle::text::grammar
