#include "text/grammar/gbnf.h"

#include <map>
#include <optional>

#include "base/check.h"
#include "text/utf8.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kMostNesting = 200;
constexpr int kMostRepeated = 3;  // as in a+?*

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {}

  Rules parse() {
    require(text_.size() <= kMostBytes, ErrorCode::invalid_argument,
            "grammar: {} bytes are too long; the limit is {}", text_.size(), kMostBytes);
    rule_of("root", 0);
    for (skip_space(true); at_ < text_.size(); skip_space(true)) parse_rule();
    for (RuleId id = 0; id < rules_.size(); ++id) {
      if (defined_[id]) continue;
      require(id != 0, ErrorCode::invalid_argument,
              "grammar: there is no rule \"root\", with which a text begins");
      at_ = used_at_[id];
      refuse(fmt::format("there is no rule \"{}\"", rules_[id].name));
    }
    return std::move(rules_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    std::size_t line = 1, begin = 0;
    for (std::size_t i = 0; i < at_; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      begin = i + 1;
    }
    std::size_t column = 1;
    for (std::size_t i = begin; i < at_; i += utf8_unit(text_, i).length) ++column;
    fail(ErrorCode::invalid_argument, "grammar, line {}, column {}: {}", line, column, what);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool is_next(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!is_next(what)) return false;
    at_ += what.size();
    return true;
  }

  /// Comments are space, and end with their line.
  void skip_space(bool newlines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view parse_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) refuse("expected the name of a rule (letters, digits, -)");
    return text_.substr(begin, at_ - begin);
  }

  RuleId rule_of(std::string_view name, std::size_t at) {
    const auto [known, is_new] =
        by_name_.emplace(std::string(name), static_cast<RuleId>(rules_.size()));
    if (is_new) {
      rules_.push_back({std::string(name), Expr()});
      defined_.push_back(false);
      used_at_.push_back(at);
    }
    return known->second;
  }

  void parse_rule() {
    const std::size_t begin = at_;
    const RuleId id = rule_of(parse_name(), begin);
    if (defined_[id]) {
      at_ = begin;
      refuse(fmt::format("there is a rule \"{}\" already", rules_[id].name));
    }
    defined_[id] = true;
    skip_space(false);
    if (!take("::=")) refuse(fmt::format("expected ::= after \"{}\"", rules_[id].name));
    skip_space(true);
    Expr body = parse_choice(0);
    rules_[id].body = std::move(body);
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r')
      refuse(peek() == ')'
                 ? "this ) closes no ("
                 : "expected a literal, a class, a rule, a group, | or the end of the line");
  }

  Expr parse_choice(int nesting) {
    std::vector<Expr> alternatives;
    do {
      if (!alternatives.empty()) skip_space(true);
      alternatives.push_back(parse_sequence(nesting));
    } while (take_bar(nesting));
    return make_choice(std::move(alternatives));
  }

  /// A line may begin with the bar, too.
  bool take_bar(int nesting) {
    const std::size_t before = at_;
    skip_space(true);
    if (take("|")) return true;
    if (nesting == 0) at_ = before;
    return false;
  }

  Expr parse_sequence(int nesting) {
    std::vector<Expr> parts;
    for (;;) {
      skip_space(nesting > 0);
      std::optional<Expr> part = parse_part(nesting);
      if (!part) break;
      for (int i = 0; std::optional<Expr> repeated = parse_repetition(*part); ++i) {
        if (i == kMostRepeated) refuse("what is repeated is repeated again too often");
        part = std::move(repeated);
      }
      parts.push_back(std::move(*part));
    }
    return make_sequence(std::move(parts));
  }

  std::optional<Expr> parse_part(int nesting) {
    const char c = peek();
    if (at_ >= text_.size()) return std::nullopt;
    if (c == '"') return parse_literal();
    if (c == '[') return parse_class();
    if (c == '(') return parse_group(nesting);
    if (take(".")) return make_chars(CharSet::all());
    if (is_name(c)) {
      const std::size_t begin = at_;
      const std::string_view name = parse_name();
      return make_rule(rule_of(name, begin));
    }
    if (c == '*' || c == '+' || c == '?' || c == '{')
      refuse(fmt::format("there is nothing before this {} to repeat", c));
    if (c == '<' || c == '!') refuse("tokens cannot be named in a grammar here, only their text");
    return std::nullopt;
  }

  Expr parse_group(int nesting) {
    if (nesting == kMostNesting)
      refuse(fmt::format("groups are nested more than {} deep", kMostNesting));
    const std::size_t begin = at_++;
    skip_space(true);
    Expr group = parse_choice(nesting + 1);
    if (take(")")) return group;
    if (at_ < text_.size()) refuse("expected a literal, a class, a rule, a group, | or )");
    at_ = begin;
    refuse("this ( is never closed");
  }

  Expr parse_literal() {
    Expr literal;
    const std::size_t begin = at_++;
    while (peek() != '"') {
      if (at_ >= text_.size()) {
        at_ = begin;
        refuse("this \" is never closed");
      }
      literal.text += parse_char();
    }
    ++at_;
    return literal;
  }

  Expr parse_class() {
    const std::size_t begin = at_++;
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (peek() != ']') {
      if (at_ >= text_.size()) {
        at_ = begin;
        refuse("this [ is never closed");
      }
      const std::size_t range = at_;
      const char32_t first = parse_char();
      char32_t last = first;
      if (is_next("-") && !is_next("-]") && at_ + 1 < text_.size()) {
        ++at_;
        last = parse_char();
      }
      if (last < first) {
        at_ = range;
        refuse("this range ends before it begins");
      }
      ranges.push_back({first, last});
    }
    ++at_;
    const CharSet chars(std::move(ranges));
    return make_chars(negated ? chars.complement() : chars);
  }

  char32_t parse_char() {
    if (peek() == '\\') return parse_escape();
    const Utf8Unit unit = utf8_unit(text_, at_);
    if (unit.status != Utf8Status::valid) refuse("this byte is not part of valid UTF-8");
    at_ += unit.length;
    return unit.code_point;
  }

  char32_t parse_escape() {
    const std::size_t begin = at_++;
    const char c = peek();
    if (at_ < text_.size()) ++at_;
    switch (c) {
      case 'x':
        return parse_hex(begin, 2);
      case 'u':
        return parse_hex(begin, 4);
      case 'U':
        return parse_hex(begin, 8);
      case 't':
        return U'\t';
      case 'r':
        return U'\r';
      case 'n':
        return U'\n';
      case '\\':
      case '"':
      case '[':
      case ']':
        return static_cast<char32_t>(c);
      default:
        at_ = begin;
        refuse("unknown escape; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\xNN \\uNNNN \\UNNNNNNNN");
    }
  }

  char32_t parse_hex(std::size_t begin, int digits) {
    std::uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        at_ = begin;
        refuse(fmt::format("this escape needs {} hexadecimal digits", digits));
      }
      value = value << 4 | static_cast<std::uint32_t>(digit);
    }
    if (value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF)) return value;
    at_ = begin;
    refuse(fmt::format("U+{:04X} is not a character", value));
  }

  std::optional<Expr> parse_repetition(Expr& part) {
    skip_space(false);
    if (take("?")) return make_optional(std::move(part));
    if (take("*")) return make_repeat(std::move(part), 0, Expr::kUnbounded);
    if (take("+")) return make_repeat(std::move(part), 1, Expr::kUnbounded);
    const std::size_t begin = at_;
    if (!take("{")) return std::nullopt;
    skip_space(false);
    const std::uint32_t min = parse_count();
    std::uint32_t max = min;
    skip_space(false);
    if (take(",")) {
      skip_space(false);
      max = is_digit(peek()) ? parse_count() : Expr::kUnbounded;
      skip_space(false);
    }
    if (!take("}")) refuse("expected } after the counts; as in {2}, {2,} or {2,4}");
    if (max >= min) return make_repeat(std::move(part), min, max);
    at_ = begin;
    refuse(fmt::format("{} repetitions at least, but {} at most", min, max));
  }

  std::uint32_t parse_count() {
    const std::size_t begin = at_;
    if (!is_digit(peek())) refuse("expected a count; as in {2}, {2,} or {2,4}");
    std::uint32_t count = 0;
    for (; is_digit(peek()); ++at_) {
      count = count * 10 + static_cast<std::uint32_t>(peek() - '0');
      if (count <= Expr::kMostRepetitions) continue;
      at_ = begin;
      refuse(fmt::format("more than {} repetitions", Expr::kMostRepetitions));
    }
    return count;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Rules rules_;
  std::map<std::string, RuleId, std::less<>> by_name_;
  std::vector<bool> defined_;
  std::vector<std::size_t> used_at_;  // first, for errors
};

}  // namespace

Rules parse_gbnf(std::string_view text) {
  return GbnfParser(text).parse();
}

}  // namespace heddle::text::grammar
