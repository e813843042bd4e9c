#include "text/grammar/pattern_syntax.h"

#include <optional>

#include "base/check.h"
#include "text/utf8.h"

namespace heddle::text::grammar {
namespace {

constexpr std::size_t kMostBytes = 10'000;
constexpr int kMostNesting = 100;
constexpr std::uint32_t kMostRepetitions = 10'000;

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const CharSet kAscii({{0, 0x7F}});
/// Letters, and two signs, that are no digits or spaces to any engine.
const CharSet kLatin({{0xC0, 0x2AF}});
const CharSet kDigits({{'0', '9'}});
const CharSet kWord({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
const CharSet kSpace({{'\t', '\r'}, {' ', ' '}});
/// Spaces to some engines only.
const CharSet kMaybeSpace({{0x1C, 0x1F}});
const CharSet kNewlines({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});

class PatternParser {
 public:
  PatternParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Pattern parse() {
    require(text_.size() <= kMostBytes, ErrorCode::unsupported,
            "{}: a pattern of {} bytes is too long; the limit is {}", where_, text_.size(),
            kMostBytes);
    Pattern pattern = parse_choice(0);
    if (at_ < text_.size()) refuse(ErrorCode::invalid_argument, "this ) closes no (");
    return pattern;
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, std::string_view what) const {
    fail(code, "{}: pattern \"{}\", at byte {}: {}", where_, text_, at_, what);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t take_char() {
    const Utf8Unit unit = utf8_unit(text_, at_);
    if (unit.status != Utf8Status::valid)
      refuse(ErrorCode::invalid_argument, "this byte is not part of valid UTF-8");
    at_ += unit.length;
    return unit.code_point;
  }

  static Pattern of(CharSet chars) { return {Pattern::Kind::chars, std::move(chars), {}}; }

  Pattern parse_choice(int nesting) {
    if (nesting > kMostNesting)
      refuse(ErrorCode::unsupported, fmt::format("groups nest more than {} deep", kMostNesting));
    Pattern choice{Pattern::Kind::choice, {}, {}};
    do choice.parts.push_back(parse_sequence(nesting));
    while (take("|"));
    return choice;
  }

  Pattern parse_sequence(int nesting) {
    Pattern sequence{Pattern::Kind::sequence, {}, {}};
    while (!at_end() && peek() != '|' && peek() != ')') {
      Pattern part = parse_part(nesting);
      sequence.parts.push_back(parse_quantifier(std::move(part)));
    }
    return sequence;
  }

  Pattern parse_part(int nesting) {
    if (take("^")) return {Pattern::Kind::begin, {}, {}};
    if (take("$")) return {Pattern::Kind::end, {}, {}};
    if (take(".")) return of(kNewlines.complement());
    if (peek() == '(') return parse_group(nesting);
    if (take("[")) return of(parse_class());
    if (peek() == '*' || peek() == '+' || peek() == '?')
      refuse(ErrorCode::invalid_argument, "there is nothing before this to repeat");
    if (peek() != '\\') return of(CharSet(take_char()));
    bool is_set = false;
    return of(parse_escape(false, is_set, ignored_));
  }

  Pattern parse_group(int nesting) {
    const std::size_t begin = at_++;
    for (const std::string_view look : {"?=", "?!", "?<=", "?<!"}) {
      if (text_.substr(at_).starts_with(look))
        refuse(ErrorCode::unsupported, "look-ahead and look-behind are not supported");
    }
    if (take("?<") || take("?P<")) {
      while (!at_end() && peek() != '>') ++at_;
      take(">");
    } else if (!take("?:") && peek() == '?') {
      refuse(ErrorCode::unsupported, "groups with flags are not supported");
    }
    Pattern group = parse_choice(nesting + 1);
    if (take(")")) return group;
    at_ = begin;
    refuse(ErrorCode::invalid_argument, "this ( is never closed");
  }

  Pattern parse_quantifier(Pattern part) {
    std::uint32_t min = 0, max = Pattern::kUnbounded;
    if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (!take("*") && !parse_counts(min, max)) {
      return part;
    }
    take("?");  // lazy: the same texts
    if (peek() == '*' || peek() == '+' || peek() == '?')
      refuse(ErrorCode::invalid_argument,
             "what is repeated cannot be repeated again without a group");
    Pattern repeat{Pattern::Kind::repeat, {}, {}, min, max};
    repeat.parts.push_back(std::move(part));
    return repeat;
  }

  /// A { that begins no counts is a character like any other.
  bool parse_counts(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t begin = at_;
    const auto number = [&]() -> std::optional<std::uint32_t> {
      if (!is_digit(static_cast<unsigned char>(peek()))) return std::nullopt;
      std::uint32_t n = 0;
      for (; is_digit(static_cast<unsigned char>(peek())); ++at_) {
        n = n * 10 + static_cast<std::uint32_t>(peek() - '0');
        if (n > kMostRepetitions)
          refuse(ErrorCode::unsupported, fmt::format("more than {} repetitions", kMostRepetitions));
      }
      return n;
    };
    if (!take("{")) return false;
    const auto least = number();
    const bool comma = take(",");
    const auto most = comma ? number() : least;
    if (!least || !take("}")) {
      at_ = begin;
      return false;
    }
    min = *least;
    max = most.value_or(Pattern::kUnbounded);
    if (max < min) refuse(ErrorCode::invalid_argument, "these counts are the wrong way round");
    return true;
  }

  CharSet parse_class() {
    const std::size_t begin = at_;
    const bool negated = take("^");
    CharSet chars, agreed = CharSet::all();
    while (!take("]")) {
      if (at_end()) {
        at_ = begin;
        refuse(ErrorCode::invalid_argument, "this [ is never closed");
      }
      bool is_set = false;
      CharSet first = parse_class_atom(is_set, agreed);
      const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (is_range && !is_set) {
        ++at_;
        const CharSet last = parse_class_atom(is_set, agreed);
        if (is_set) refuse(ErrorCode::invalid_argument, "a range ends with a class");
        const CharRange range{first.ranges().front().first, last.ranges().front().first};
        if (range.last < range.first)
          refuse(ErrorCode::invalid_argument, "this range ends before it begins");
        first = CharSet({range});
      }
      chars = chars | first;
    }
    return negated ? chars.complement() & agreed : chars;
  }

  CharSet parse_class_atom(bool& is_set, CharSet& agreed) {
    if (peek() == '\\') return parse_escape(true, is_set, agreed);
    return CharSet(take_char());
  }

  /// `agreed`: loses what engines do not agree to be outside of a class like this one.
  CharSet parse_escape(bool in_class, bool& is_set, CharSet& agreed) {
    const std::size_t begin = at_++;
    if (at_end()) refuse(ErrorCode::invalid_argument, "a \\ at the end");
    const char32_t c = take_char();
    is_set = true;
    const CharSet latin = kAscii | kLatin;
    switch (c) {
      case 'd':
        agreed = agreed & latin;
        return kDigits;
      case 'D':
        agreed = agreed & kAscii;
        return latin - kDigits;
      case 's':
        agreed = agreed & (latin - kMaybeSpace);
        return kSpace;
      case 'S':
        agreed = agreed & kAscii;
        return latin - kSpace - kMaybeSpace;
      case 'w':
        agreed = agreed & kAscii;
        return kWord;
      case 'W':
        agreed = agreed & kAscii;
        return kAscii - kWord;
      default:
        break;
    }
    is_set = false;
    return CharSet(parse_char_escape(c, in_class, begin));
  }

  char32_t parse_char_escape(char32_t c, bool in_class, std::size_t begin) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return parse_hex(2);
      case 'u':
        return parse_hex(4);
      case 'b':
        if (in_class) return '\b';
        break;
      case '0':
        if (!is_digit(static_cast<unsigned char>(peek()))) return 0;
        break;
      default:
        if (!is_letter(c) && !is_digit(c)) return c;
    }
    at_ = begin;
    refuse(ErrorCode::unsupported, is_digit(c)            ? "back references are not supported"
                                   : c == 'b' || c == 'B' ? "word boundaries are not supported"
                                   : c == 'p' || c == 'P' ? "Unicode properties are not supported"
                                                          : "this escape is not supported");
  }

  char32_t parse_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0)
        refuse(ErrorCode::invalid_argument, fmt::format("expected {} hexadecimal digits", digits));
      ++at_;
      value = value << 4 | static_cast<char32_t>(digit);
    }
    if (value >= 0xD800 && value <= 0xDFFF)
      refuse(ErrorCode::unsupported, "halves of surrogate pairs are not supported");
    return value;
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
  CharSet ignored_;  // of classes that stand alone
};

}  // namespace

Pattern parse_pattern(std::string_view pattern, std::string_view where) {
  return PatternParser(pattern, where).parse();
}

}  // namespace heddle::text::grammar
