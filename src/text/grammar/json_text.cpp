#include "text/grammar/json_text.h"

#include <map>

#include "text/grammar/number_range.h"

namespace heddle::text::grammar {
namespace {

constexpr CharRange kControls{0, 0x1F};

struct ShortEscape {
  char32_t character;
  const char* text;
};
constexpr ShortEscape kShortEscapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"},
                                         {'\f', "\\f"}, {'\n', "\\n"},  {'\r', "\\r"},
                                         {'\t', "\\t"}};

/// What a string may hold as it is.
const CharSet& plain_characters() {
  static const CharSet set = CharSet({kControls, {'"', '"'}, {'\\', '\\'}}).complement();
  return set;
}

CharSet hex_digits(std::string_view digits) {
  std::vector<CharRange> ranges;
  for (const char c : digits) ranges.push_back({char32_t(c), char32_t(c)});
  return CharSet(std::move(ranges));
}

/// What may follow a backslash. Half a surrogate pair is no character, and many readers refuse it.
Expr escape_body() {
  const auto one_of = [](std::string_view digits) { return make_chars(hex_digits(digits)); };
  const Expr any = one_of("0123456789abcdefABCDEF");
  const Expr no_surrogate =
      make_choice({make_sequence({one_of("0123456789abcefABCEF"), any, any, any}),
                   make_sequence({one_of("dD"), one_of("01234567"), any, any})});
  const Expr pair = make_sequence({one_of("dD"), one_of("89abAB"), any, any, make_text("\\u"),
                                   one_of("dD"), one_of("cdefCDEF"), any, any});
  return make_choice(
      {one_of("\"\\/bfnrt"), make_sequence({make_text("u"), make_choice({no_surrogate, pair})})});
}

Expr with_space(const char* text) {
  return make_sequence({make_text(text), make_optional(make_text(" "))});
}

}  // namespace

std::string json_string(std::string_view utf8) {
  return nlohmann::ordered_json(utf8).dump(-1, ' ', false,
                                           nlohmann::ordered_json::error_handler_t::replace);
}

Expr json_comma() {
  return with_space(",");
}
Expr json_colon() {
  return with_space(":");
}

Expr json_list(std::string_view open, Expr item, std::uint32_t min, std::uint32_t max,
               std::string_view close) {
  if (max == 0) return make_text(std::string(open) + std::string(close));
  const std::uint32_t more_min = min > 0 ? min - 1 : 0;
  const std::uint32_t more_max = max == Expr::kUnbounded ? max : max - 1;
  Expr more = make_repeat(make_sequence({json_comma(), item}), more_min, more_max);
  Expr items = make_sequence({std::move(item), std::move(more)});
  if (min == 0) items = make_optional(std::move(items));
  return make_sequence({make_text(open), std::move(items), make_text(close)});
}

Expr json_value(const nlohmann::ordered_json& value) {
  if (!value.is_structured() || value.empty())
    return make_text(value.is_string() ? json_string(value.get_ref<const std::string&>())
                                       : value.dump());
  std::vector<Expr> parts;
  parts.push_back(make_text(value.is_object() ? "{" : "["));
  for (auto item = value.begin(); item != value.end(); ++item) {
    if (item != value.begin()) parts.push_back(json_comma());
    if (value.is_object()) {
      parts.push_back(make_text(json_string(item.key())));
      parts.push_back(json_colon());
    }
    parts.push_back(json_value(*item));
  }
  parts.push_back(make_text(value.is_object() ? "}" : "]"));
  return make_sequence(std::move(parts));
}

Machine json_strings(const CharDfa& dfa) {
  Machine machine;
  machine.states.resize(dfa.states.size() + 2);
  const auto end = static_cast<std::uint32_t>(dfa.states.size() + 1);
  machine.states[0].edges.push_back({make_text("\""), 1});
  machine.states[end].accepts = true;
  for (std::size_t i = 0; i < dfa.states.size(); ++i) {
    Machine::State& state = machine.states[i + 1];
    for (const CharDfa::Edge& edge : dfa.states[i].edges) {
      state.edges.push_back({make_chars(edge.chars & plain_characters()), edge.target + 1});
      for (const ShortEscape& escape : kShortEscapes) {
        if (edge.chars.contains(escape.character))
          state.edges.push_back({make_text(escape.text), edge.target + 1});
      }
    }
    if (dfa.states[i].accepts) state.edges.push_back({make_text("\""), end});
  }
  return machine;
}

Machine one_of(std::span<const std::string> texts) {
  Machine machine;
  machine.states.emplace_back();
  std::map<std::pair<std::uint32_t, char32_t>, std::uint32_t> children;
  for (const std::string& text : texts) {
    std::uint32_t at = 0;
    for (const char32_t c : make_text(text).text) {
      const auto fresh = static_cast<std::uint32_t>(machine.states.size());
      const auto [child, is_new] = children.emplace(std::pair(at, c), fresh);
      if (is_new) {
        machine.states[at].edges.push_back({make_chars(CharSet(c)), fresh});
        machine.states.emplace_back();
      }
      at = child->second;
    }
    machine.states[at].accepts = true;
  }
  return machine;
}

RuleId OpenJson::add(const char* name, Expr body) {
  rules_.push_back({name, std::move(body)});
  return static_cast<RuleId>(rules_.size() - 1);
}

Expr OpenJson::character() {
  if (escape_ == kNone) escape_ = add("escape", escape_body());
  return make_choice(
      {make_chars(plain_characters()), make_sequence({make_text("\\"), make_rule(escape_)})});
}

Expr OpenJson::string() {
  if (string_ == kNone) string_ = add("string", string(0, Expr::kUnbounded));
  return make_rule(string_);
}

Expr OpenJson::string(std::uint32_t min, std::uint32_t max) {
  return make_sequence({make_text("\""), make_repeat(character(), min, max), make_text("\"")});
}

RuleId OpenJson::value_rule() {
  if (value_ != kNone) return value_;
  const Expr number = make_rule(add("number", any_number(false)));
  RuleId inner = kNone;
  for (int level = 0; level <= kOpenNesting; ++level) {
    std::vector<Expr> values{string(), number, make_text("true"), make_text("false"),
                             make_text("null")};
    if (level > 0) {
      const Expr pair = make_sequence({string(), json_colon(), make_rule(inner)});
      object_ = add("object", json_list("{", pair, 0, Expr::kUnbounded, "}"));
      array_ = add("array", json_list("[", make_rule(inner), 0, Expr::kUnbounded, "]"));
      values.push_back(make_rule(object_));
      values.push_back(make_rule(array_));
    }
    inner = add("value", make_choice(std::move(values)));
  }
  return value_ = inner;
}

Expr OpenJson::object() {
  value_rule();
  return make_rule(object_);
}

Expr OpenJson::array() {
  value_rule();
  return make_rule(array_);
}

}  // namespace heddle::text::grammar
