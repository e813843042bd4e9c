// Python's `format % arguments` and format.format(arguments).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/native.h"
#include "text/jinja/unicode.h"

namespace heddle::text::jinja {

namespace {

constexpr std::int64_t kMostDigits = 1000;  // of a precision

/// One "%...": flags, width, precision, conversion.
struct Conversion {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  std::int64_t width = 0, precision = -1;
  char type = 's';
};

class PercentFormatter {
 public:
  PercentFormatter(Runtime& run, const Text& format, const Value& arguments)
      : run_(run), format_(format), arguments_(arguments) {}

  Text apply() {
    const std::string& text = format_.bytes();
    std::size_t from = 0;
    while (true) {
      at_ = std::min(text.find('%', from), text.size());
      run_.make(at_ - from);
      out_.append(format_, from, at_);
      if (at_ == text.size()) break;
      ++at_;
      convert();
      from = at_;
      run_.check_size(out_.size());
    }
    const bool counted = is_tuple() || arguments_.dict() == nullptr;
    const bool used = is_tuple() ? next_ == arguments_.sequence()->elements.size()
                                 : next_ == 1 || arguments_.sequence() != nullptr;
    if (counted && !used) fail_render("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  bool is_tuple() const {
    return arguments_.sequence() != nullptr && arguments_.sequence()->kind == SequenceKind::tuple;
  }

  char take() {
    if (at_ >= format_.size()) fail_render("incomplete format");
    return format_.bytes()[at_++];
  }

  Value next_argument() {
    if (!is_tuple()) {
      if (next_++ > 0) fail_render("not enough arguments for format string");
      return arguments_;
    }
    if (next_ >= arguments_.sequence()->elements.size())
      fail_render("not enough arguments for format string");
    return arguments_.sequence()->elements[next_++];
  }

  std::int64_t number(char& c) {
    if (c == '*') {
      const Value value = next_argument();
      if (!value.integer()) fail_render("* wants int");
      c = take();
      return std::clamp<std::int64_t>(*value.integer(), 0, 1 << 30);
    }
    std::int64_t value = 0;
    for (; c >= '0' && c <= '9'; c = take())
      value = std::min<std::int64_t>(value * 10 + (c - '0'), 1 << 30);
    return value;
  }

  void convert() {
    std::optional<Value> named;
    char c = take();
    if (c == '(') {
      const std::size_t begin = at_;
      while (take() != ')') {
      }
      if (arguments_.dict() == nullptr) fail_render("format requires a mapping");
      const std::string name = format_.bytes().substr(begin, at_ - begin - 1);
      const Value* found = find(run_, *arguments_.dict(), name);
      if (found == nullptr) fail_render("no argument '{}'", name);
      named = *found;
      c = take();
    }
    Conversion how;
    for (; std::string_view("-+ 0#").find(c) != std::string_view::npos; c = take()) {
      how.left |= c == '-';
      how.plus |= c == '+';
      how.space |= c == ' ';
      how.zero |= c == '0';
      how.alternate |= c == '#';
    }
    how.width = number(c);
    if (c == '.') {
      c = take();
      how.precision = number(c);
    }
    while (c == 'l' || c == 'h' || c == 'L') c = take();
    how.type = c;
    if (c == '%') return out_.append("%", format_.origin_at(at_ - 1));
    write(how, named ? *named : next_argument());
  }

  void write(const Conversion& how, const Value& value) {
    Text text = converted(how, value);
    const std::int64_t missing =
        how.width - static_cast<std::int64_t>(count_characters(text.bytes()));
    if (missing > 0 && how.left) {
      text = padded(run_, text, 0, missing, Text(" ", Origin::data));
    } else if (missing > 0) {
      const bool zeros =
          how.zero && std::string_view("srac").find(how.type) == std::string_view::npos;
      const std::size_t sign =
          zeros && !text.empty() &&
          std::string_view("+- ").find(text.bytes()[0]) != std::string_view::npos;
      Text front = text.slice(0, sign);
      front.append(padded(run_, text.slice(sign, text.size()), missing, 0,
                          Text(zeros ? "0" : " ", Origin::data)));
      text = std::move(front);
    }
    run_.make(text.size());
    out_.append(text);
  }

  Text cut(Text text, const Conversion& how) const {
    if (how.precision < 0) return text;
    const auto starts = character_starts(text.bytes());
    const std::size_t count = std::min(static_cast<std::size_t>(how.precision), starts.size() - 1);
    return text.slice(0, starts[count]);
  }

  Text converted(const Conversion& how, const Value& value) {
    switch (how.type) {
      case 's':
        return cut(shown(run_, value), how);
      case 'r':
      case 'a': {
        Text text;
        append_repr(run_, text, value);
        return cut(std::move(text), how);
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(how, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(how, value);
      case 'c':
        return character(value);
      default:
        fail_render("unsupported format character '{}'", how.type);
    }
  }

  static Text character(const Value& value) {
    if (value.text() != nullptr && count_characters(value.text()->bytes()) == 1)
      return *value.text();
    const auto code = value.integer();
    if (!code || *code < 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000))
      fail_render("%c requires int or char");
    std::string bytes;
    append_utf8(bytes, static_cast<char32_t>(*code));
    return Text(std::move(bytes), Origin::data);
  }

  static std::string signed_text(const Conversion& how, bool negative, const std::string& digits) {
    return (negative ? "-" : (how.plus ? "+" : (how.space ? " " : ""))) + digits;
  }

  static Text integer(const Conversion& how, const Value& value) {
    require_defined(value);
    const bool decimal = how.type == 'd' || how.type == 'i' || how.type == 'u';
    std::optional<std::int64_t> whole = value.integer();
    if (!whole && decimal && value.is<double>() && std::fabs(*value.real()) < 9.2e18)
      whole = static_cast<std::int64_t>(*value.real());
    if (!whole) fail_render("%{} format: a number is required, not {}", how.type, type_name(value));
    const auto size =
        *whole < 0 ? 0 - static_cast<std::uint64_t>(*whole) : static_cast<std::uint64_t>(*whole);
    std::string digits = how.type == 'x'   ? fmt::format("{:x}", size)
                         : how.type == 'X' ? fmt::format("{:X}", size)
                         : how.type == 'o' ? fmt::format("{:o}", size)
                                           : fmt::format("{}", size);
    const auto wanted =
        static_cast<std::size_t>(std::clamp<std::int64_t>(how.precision, 0, kMostDigits));
    if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
    if (how.alternate && !decimal) digits.insert(0, std::string("0") + how.type);
    return Text(signed_text(how, *whole < 0, digits), Origin::data);
  }

  static Text real(const Conversion& how, const Value& value) {
    require_defined(value);
    if (!value.is_number()) fail_render("must be real number, not {}", type_name(value));
    const double number = std::fabs(*value.real());
    const std::int64_t digits = std::min(how.precision < 0 ? 6 : how.precision, kMostDigits);
    std::string text = how.type == 'e'   ? fmt::format("{:.{}e}", number, digits)
                       : how.type == 'E' ? fmt::format("{:.{}E}", number, digits)
                       : how.type == 'g' ? fmt::format("{:.{}g}", number, digits)
                       : how.type == 'G' ? fmt::format("{:.{}G}", number, digits)
                                         : fmt::format("{:.{}f}", number, digits);
    return Text(signed_text(how, std::signbit(*value.real()) && !std::isnan(number), text),
                Origin::data);
  }

  Runtime& run_;
  const Text& format_;
  const Value& arguments_;
  std::size_t at_ = 0, next_ = 0;
  Text out_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& run, const Text& format, const Arguments& arguments)
      : run_(run), format_(format), arguments_(arguments) {}

  Text apply() {
    const std::string& text = format_.bytes();
    std::size_t from = 0;
    while (true) {
      const std::size_t at = std::min(text.find_first_of("{}", from), text.size());
      run_.make(at - from);
      out_.append(format_, from, at);
      if (at == text.size()) return std::move(out_);
      if (at + 1 < text.size() && text[at + 1] == text[at]) {
        out_.append(format_, at, at + 1);
        from = at + 2;
        continue;
      }
      if (text[at] == '}') fail_render("single '}}' encountered in format string");
      const std::size_t close = text.find('}', at);
      if (close == std::string::npos) fail_render("expected '}}' before end of string");
      replace(text.substr(at + 1, close - at - 1));
      from = close + 1;
    }
  }

 private:
  void replace(const std::string& field) {
    if (field.find_first_of("{:!.[") != std::string::npos)
      fail_render("format(): only plain fields are supported, not '{{{}}}'", field);
    const Text text = shown(run_, argument(field));
    run_.make(text.size());
    run_.check_size(out_.size() + text.size());
    out_.append(text);
  }

  const Value& argument(const std::string& field) {
    std::size_t index = next_;
    if (field.empty()) {
      ++next_;
    } else if (std::all_of(field.begin(), field.end(), is_digit)) {
      const auto parsed = std::from_chars(field.data(), field.data() + field.size(), index);
      if (parsed.ec != std::errc()) index = arguments_.positional.size();
    } else {
      for (const auto& [name, value] : arguments_.named) {
        if (name == field) return value;
      }
      fail_render("format(): no argument '{}'", field);
    }
    if (index >= arguments_.positional.size()) fail_render("format(): no argument {}", index);
    return arguments_.positional[index];
  }

  Runtime& run_;
  const Text& format_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
  Text out_;
};

}  // namespace

Text percent_format(Runtime& run, const Text& format, const Value& arguments) {
  return PercentFormatter(run, format, arguments).apply();
}

Text brace_format(Runtime& run, const Text& format, const Arguments& arguments) {
  return BraceFormatter(run, format, arguments).apply();
}

}  // namespace heddle::text::jinja
