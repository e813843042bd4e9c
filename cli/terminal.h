// What a terminal is shown.
#pragma once

#include <string>
#include <string_view>

namespace heddle::cli {

/// Text that can do nothing to a terminal but be read: control characters other than newlines and
/// tabs are written out (ESC as ^[, U+009B as <U+009B>), bytes that are no UTF-8 as U+FFFD.
std::string visible(std::string_view text);

enum class Style { plain, prompt, notice, error };

/// A stream of the process, and what it is.
class Terminal {
 public:
  explicit Terminal(int file);

  bool is_terminal() const noexcept { return is_terminal_; }
  /// Text for that stream: on a terminal harmless, and in colour unless NO_COLOR is set or the
  /// terminal is dumb; else as it is.
  std::string text(std::string_view text, Style style = Style::plain) const;
  /// What switches a style on, or "plain" off everything; empty without colour.
  std::string_view code(Style style) const noexcept;

 private:
  bool is_terminal_, has_colour_;
};

/// Whether lines can be edited there: a terminal that can move its cursor.
bool can_move_cursor();

}  // namespace heddle::cli
