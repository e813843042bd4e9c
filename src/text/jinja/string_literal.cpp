#include "text/jinja/string_literal.h"

#include <charconv>

#include "text/jinja/lexer.h"
#include "text/utf8.h"

namespace heddle::text::jinja {

namespace {

class Unescaper {
 public:
  Unescaper(std::string_view literal, std::size_t at) : literal_(literal), at_(at) {}

  std::string run() {
    while (i_ < literal_.size()) {
      if (literal_[i_] == '\\' && i_ + 1 < literal_.size())
        escape(literal_[i_ + 1]);
      else
        out_ += literal_[i_++];
    }
    return std::move(out_);
  }

 private:
  void escape(char c) {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t k = kLetters.find(c); k != std::string_view::npos) {
      out_ += kMeant[k];
      i_ += 2;
    } else if (c == '\n') {
      i_ += 2;
    } else if (c >= '0' && c <= '7') {
      octal();
    } else if (c == 'x' || c == 'u' || c == 'U') {
      hexadecimal(c == 'x' ? 2 : (c == 'u' ? 4 : 8));
    } else if (c == 'N') {
      throw SyntaxFailure("characters cannot be given by name", at_ + i_);
    } else {
      out_ += '\\';
      ++i_;
    }
  }

  void octal() {
    std::size_t end = i_ + 1;
    while (end < literal_.size() && end < i_ + 4 && literal_[end] >= '0' && literal_[end] <= '7')
      ++end;
    put(i_ + 1, end, 8);
  }

  void hexadecimal(std::size_t digits) {
    const std::size_t end = i_ + 2 + digits;
    if (end > literal_.size()) throw SyntaxFailure("an escape is cut short", at_ + i_);
    put(i_ + 2, end, 16);
  }

  void put(std::size_t begin, std::size_t end, int base) {
    std::uint32_t code = 0;
    const char* last = literal_.data() + end;
    const auto [stopped, error] = std::from_chars(literal_.data() + begin, last, code, base);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (error != std::errc() || stopped != last || code > 0x10FFFF || surrogate)
      throw SyntaxFailure("an escape names no character", at_ + i_);
    append_utf8(out_, code);
    i_ = end;
  }

  std::string_view literal_;
  std::size_t at_, i_ = 0;
  std::string out_;
};

}  // namespace

std::string unescaped(std::string_view literal, std::size_t at) {
  return Unescaper(literal, at).run();
}

}  // namespace heddle::text::jinja
