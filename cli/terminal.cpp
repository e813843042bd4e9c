#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "text/utf8.h"

namespace heddle::cli {

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string visible(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const text::Utf8Unit unit = text::utf8_unit(text, i);
    const char32_t c = unit.status == text::Utf8Status::valid ? unit.code_point : 0xFFFD;
    if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7F) || c > 0x9F)
      text::append_utf8(shown, c);
    else if (c <= 0x7F)
      shown += {'^', static_cast<char>(c ^ 0x40)};
    else
      shown += fmt::format("<U+{:04X}>", static_cast<unsigned>(c));
    i += unit.length;
  }
  return shown;
}

bool can_move_cursor() {
  const std::string_view type = environment("TERM");
  return !type.empty() && type != "dumb";
}

Terminal::Terminal(int file)
    : is_terminal_(isatty(file) == 1),
      has_colour_(is_terminal_ && can_move_cursor() && environment("NO_COLOR").empty()) {}

std::string_view Terminal::code(Style style) const noexcept {
  if (!has_colour_) return "";
  switch (style) {
    case Style::prompt:
      return "\033[1;32m";
    case Style::notice:
      return "\033[2m";
    case Style::error:
      return "\033[31m";
    case Style::plain:
      break;
  }
  return "\033[0m";
}

std::string Terminal::text(std::string_view text, Style style) const {
  if (!is_terminal_) return std::string(text);
  if (style == Style::plain) return visible(text);
  return fmt::format("{}{}{}", code(style), visible(text), code(Style::plain));
}

}  // namespace heddle::cli
