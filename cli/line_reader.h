// Lines from whoever types, or from a pipe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/interrupt.h"

namespace heddle::cli {

enum class LineEnd {
  newline,      // a line is there; the last of a file may lack its newline
  end,          // of the input: nothing more will come
  interrupted,  // by Ctrl-C
};

inline constexpr char kInvisible = '\1';

class LineReader {
 public:
  virtual ~LineReader() = default;

  struct Line {
    LineEnd end;
    std::string text;  // without its newline; if interrupted, what had been typed, where known
  };
  /// Waits for a line. What moves no cursor stands between two of kInvisible. Throws io for one of
  /// more than kMostLineBytes.
  virtual Line read(std::string_view prompt) = 0;
  /// Keeps an input for recalling. One that cannot be kept is no error.
  virtual void remember(const std::string& input) = 0;
};

inline constexpr std::size_t kMostLineBytes = std::size_t{16} << 20;

/// Standard input as it comes. Prompts are shown if `shows_prompts`, on standard output.
std::unique_ptr<LineReader> plain_reader(const InterruptFlag& interrupt, bool shows_prompts);

/// Standard input with editing and a history, which is kept in the file `history` unless that is
/// empty. Null where the program was built without libedit.
std::unique_ptr<LineReader> editing_reader(InterruptFlag& interrupt, const std::string& history);

}  // namespace heddle::cli
