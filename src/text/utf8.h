// UTF-8, one unit at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::text {

enum class Utf8Status : std::uint8_t {
  valid,
  invalid,     // cannot become a character, whatever follows
  incomplete,  // the text ends inside what may still become a character
};

struct Utf8Unit {
  Utf8Status status;
  std::uint32_t length;  // bytes: of the character, or of the maximal subpart that is not one
  char32_t code_point;   // if valid
};

/// The character, or the longest piece of one (a "maximal subpart": Unicode 15, table 3-7 and
/// section 3.9), that begins at `at` < text.size().
Utf8Unit utf8_unit(std::string_view text, std::size_t at) noexcept;

/// `code_point` must not exceed U+10FFFF.
void append_utf8(std::string& text, char32_t code_point);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace heddle::text
