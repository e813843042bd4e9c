// What Python's str knows of characters. All texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"

namespace heddle::text::jinja {

bool is_space(char32_t c) noexcept;
bool is_line_end(char32_t c) noexcept;
bool is_alpha(char32_t c) noexcept;
bool is_digit(char32_t c) noexcept;
bool is_upper(char32_t c) noexcept;
bool is_lower(char32_t c) noexcept;
bool is_printable(char32_t c) noexcept;
char32_t to_upper(char32_t c) noexcept;
char32_t to_lower(char32_t c) noexcept;

/// Where each character begins, and the end.
std::vector<std::size_t> character_starts(std::string_view text);
std::size_t count_characters(std::string_view text) noexcept;
/// Calls `visit(char32_t, std::string_view)` for each character.
template <class Visit>
void each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = utf8_unit(text, at);
    visit(unit.code_point, text.substr(at, unit.length));
    at += unit.length;
  }
}

std::size_t strip_begin(std::string_view text);  // after leading white space
std::size_t strip_end(std::string_view text);    // before white space at the end

/// Linear in time, unlike std::string_view::find.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);
std::size_t find_last_text(std::string_view text, std::string_view needle);

}  // namespace heddle::text::jinja
