#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <array>

#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_data();
    add(TokenKind::end, at_, "");
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text, std::size_t at) const {
    return source_.substr(at, text.size()) == text;
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void add(TokenKind kind, std::size_t at, std::string text) {
    tokens_.push_back({kind, at, std::move(text)});
  }
  void move_to(std::size_t end) {
    if (end > at_) at_line_start_ = source_[end - 1] == '\n';
    at_ = end;
  }
  std::size_t skip_spaces(std::size_t at) const { return at + strip_begin(source_.substr(at)); }

  /// Where the next tag opens.
  std::size_t find_tag() const {
    for (std::size_t at = source_.find('{', at_); at != kNone; at = source_.find('{', at + 1)) {
      if (starts("{{", at) || starts("{%", at) || starts("{#", at)) return at;
    }
    return kNone;
  }

  /// The text before a tag with this sign ('-', '+' or another character) after its brackets.
  std::string_view before_tag(std::string_view text, char sign, bool strips_line) const {
    if (sign == '-') return text.substr(0, strip_end(text));
    if (sign == '+' || !strips_line) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == kNone ? 0 : newline + 1;
    const bool whole_line = newline != kNone || at_line_start_;
    return whole_line && strip_begin(text.substr(line)) == text.size() - line ? text.substr(0, line)
                                                                              : text;
  }

  void lex_data() {
    const std::size_t tag = find_tag();
    if (tag == kNone) {
      add(TokenKind::data, at_, std::string(source_.substr(at_)));
      return move_to(source_.size());
    }
    const bool variable = starts("{{", tag);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const std::string_view text =
        before_tag(source_.substr(at_, tag - at_), sign, /*strips_line=*/!variable);
    if (!text.empty()) add(TokenKind::data, at_, std::string(text));
    const std::size_t inside = tag + (sign == '-' || sign == '+' ? 3 : 2);
    move_to(inside);
    if (starts("{#", tag)) return lex_comment(tag);
    if (!variable && lex_raw(tag)) return;
    add(variable ? TokenKind::variable_begin : TokenKind::block_begin, tag, "");
    lex_tag(tag, variable);
  }

  /// If a closing sequence lies at `at`, the place after it and what it swallows.
  std::size_t after_close(std::string_view close, bool trims_line, std::size_t at) const {
    if (starts("-", at) && starts(close, at + 1)) return skip_spaces(at + 1 + close.size());
    if (trims_line && starts("+", at) && starts(close, at + 1)) return at + 1 + close.size();
    if (!starts(close, at)) return kNone;
    const std::size_t end = at + close.size();
    return trims_line && starts("\n", end) ? end + 1 : end;
  }

  void lex_comment(std::size_t tag) {
    const std::size_t close = source_.find("#}", at_);
    if (close == kNone && at_ == source_.size()) return;  // as Jinja has it
    if (close == kNone) throw SyntaxFailure("missing end of comment tag", tag);
    const bool sign = close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+');
    move_to(after_close("#}", true, sign ? close - 1 : close));
  }

  /// {% raw %} up to its end, if that is what begins here.
  bool lex_raw(std::size_t tag) {
    const std::size_t word = skip_spaces(at_);
    if (!starts("raw", word)) return false;
    const std::size_t close = skip_spaces(word + 3);
    if (starts("-%}", close))
      move_to(skip_spaces(close + 3));
    else if (starts("%}", close))
      move_to(close + 2);
    else
      return false;
    const std::size_t content = at_;
    for (std::size_t at = source_.find("{%", content); at != kNone;
         at = source_.find("{%", at + 1)) {
      const char sign = at + 2 < source_.size() ? source_[at + 2] : '\0';
      const std::size_t name = skip_spaces(at + (sign == '-' || sign == '+' ? 3 : 2));
      if (!starts("endraw", name)) continue;
      const std::size_t end = after_close("%}", true, skip_spaces(name + 6));
      if (end == kNone) continue;
      const std::string_view text = before_tag(source_.substr(content, at - content), sign, true);
      if (!text.empty()) add(TokenKind::data, content, std::string(text));
      move_to(end);
      return true;
    }
    if (content < source_.size()) throw SyntaxFailure("missing end of raw directive", tag);
    return true;
  }

  void lex_tag(std::size_t tag, bool variable) {
    std::string open;  // brackets still open
    while (true) {
      at_ = skip_spaces(at_);
      if (at_ >= source_.size())
        throw SyntaxFailure(variable ? "'{{' is never closed" : "'{%' is never closed", tag);
      const std::size_t end = after_close(variable ? "}}" : "%}", !variable, at_);
      if (open.empty() && end != kNone) {
        add(variable ? TokenKind::variable_end : TokenKind::block_end, at_, "");
        return move_to(end);
      }
      lex_token(open);
    }
  }

  void lex_token(std::string& open) {
    const char c = peek();
    if (is_name_start(c)) return lex_name();
    if (is_decimal(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string(c);
    lex_operator(open);
  }

  void lex_name() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && (is_name_start(peek()) || is_decimal(peek()))) ++at_;
    add(TokenKind::name, begin, std::string(source_.substr(begin, at_ - begin)));
  }

  /// Digits that `accept` takes, single underscores between them, without the underscores.
  template <class Accept>
  std::string digits(Accept accept) {
    std::string found;
    while (accept(peek()) || (peek() == '_' && !found.empty() && accept(peek(1)))) {
      if (peek() != '_') found += peek();
      ++at_;
    }
    return found;
  }

  void lex_number() {
    const std::size_t begin = at_;
    const char base = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      at_ += 2;
      const auto accept = [base](char c) {
        if (base == 'x') return is_decimal(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
        return c >= '0' && c < (base == 'o' ? '8' : '2');
      };
      const std::string found = digits(accept);
      if (found.empty()) throw SyntaxFailure("a number has no digits", begin);
      return add(TokenKind::integer, begin, fmt::format("0{}{}", base, found));
    }
    std::string number = digits(is_decimal);
    const bool attribute = begin > 0 && source_[begin - 1] == '.';
    bool floating = false;
    if (!attribute && peek() == '.' && is_decimal(peek(1))) {
      ++at_;
      number += "." + digits(is_decimal);
      floating = true;
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (!attribute && (peek() | 0x20) == 'e' && is_decimal(peek(1 + sign))) {
      number += sign == 0 ? std::string("e") : std::string("e") + peek(1);
      at_ += 1 + sign;
      number += digits(is_decimal);
      floating = true;
    }
    add(floating ? TokenKind::floating : TokenKind::integer, begin, number);
  }

  void lex_string(char quote) {
    const std::size_t begin = at_;
    std::size_t end = begin + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) throw SyntaxFailure("a string is never closed", begin);
    add(TokenKind::string, begin, unescaped(source_.substr(begin + 1, end - begin - 1), begin + 1));
    at_ = end + 1;
  }

  void lex_operator(std::string& open) {
    static constexpr std::array<std::string_view, 26> kOperators{
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!starts(op, at_)) continue;
      track_bracket(op.front(), open);
      add(TokenKind::op, at_, std::string(op));
      at_ += op.size();
      return;
    }
    throw SyntaxFailure(fmt::format("unexpected character '{}'", peek()), at_);
  }

  void track_bracket(char c, std::string& open) const {
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty()) throw SyntaxFailure(fmt::format("unexpected '{}'", c), at_);
    if (open.back() != c)
      throw SyntaxFailure(fmt::format("unexpected '{}', expected '{}'", c, open.back()), at_);
    open.pop_back();
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalized_source(std::string_view source) {
  std::string normal;
  normal.reserve(source.size());
  for (std::size_t at = 0; at < source.size();) {
    const Utf8Unit unit = utf8_unit(source, at);
    if (unit.status != Utf8Status::valid) throw SyntaxFailure("invalid UTF-8", normal.size());
    if (source[at] == '\r')
      normal += source.substr(at, 2) == "\r\n" ? "" : "\n";
    else
      normal += source.substr(at, unit.length);
    at += unit.length;
  }
  if (!normal.empty() && normal.back() == '\n') normal.pop_back();
  return normal;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace heddle::text::jinja
