#include "text/jinja/unicode.h"

#include <string.h>  // memmem
#include <wchar.h>
#include <wctype.h>

#include <algorithm>
#include <clocale>

namespace heddle::text::jinja {

namespace {

/// The C library's Unicode tables, whatever locale the program is in; null where there are none.
locale_t unicode_locale() noexcept {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

bool in_class(char32_t c, int (*wide)(wint_t, locale_t), bool otherwise) noexcept {
  const locale_t locale = unicode_locale();
  return locale == nullptr ? otherwise : wide(static_cast<wint_t>(c), locale) != 0;
}

/// Unicode 15's categories Cf (format) and Co (private use), which C libraries print.
bool is_invisible(char32_t c) noexcept {
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kRanges[] = {
      {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
      {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},
      {0x200B, 0x200F},   {0x202A, 0x202E},   {0x2060, 0x2064},   {0x2066, 0x206F},
      {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
      {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
      {0xE0001, 0xE0001}, {0xE0020, 0xE007F}, {0xF0000, 0x10FFFF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

}  // namespace

bool is_space(char32_t c) noexcept {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_line_end(char32_t c) noexcept {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_digit(char32_t c) noexcept {
  return c >= '0' && c <= '9';
}

bool is_alpha(char32_t c) noexcept {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return in_class(c, iswalpha_l, true);
}
bool is_upper(char32_t c) noexcept {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return in_class(c, iswupper_l, false);
}
bool is_lower(char32_t c) noexcept {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return in_class(c, iswlower_l, false);
}
bool is_printable(char32_t c) noexcept {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  return c >= 0xA1 && !is_space(c) && !is_invisible(c) && in_class(c, iswprint_l, true);
}

char32_t to_upper(char32_t c) noexcept {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  const locale_t locale = unicode_locale();
  return locale == nullptr ? c : static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), locale));
}
char32_t to_lower(char32_t c) noexcept {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const locale_t locale = unicode_locale();
  return locale == nullptr ? c : static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), locale));
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  starts.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) starts.push_back(at);
  }
  starts.push_back(text.size());
  return starts;
}

std::size_t count_characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t strip_begin(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Unit unit = utf8_unit(text, at);
    if (!is_space(unit.code_point)) break;
    at += unit.length;
  }
  return at;
}

std::size_t strip_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t at = end - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(utf8_unit(text, at).code_point)) break;
    end = at;
  }
  return end;
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* at = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view needle) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted(needle.rbegin(), needle.rend());
  const std::size_t at = find_text(backwards, wanted);
  return at == std::string_view::npos ? at : text.size() - at - needle.size();
}

}  // namespace heddle::text::jinja
