// Programs run as a person runs them: at a terminal.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace heddle::test {

inline constexpr const char* kUp = "\033[A";
inline constexpr const char* kEnter = "\r";

inline std::string ctrl(char key) {
  return {static_cast<char>(key & 0x1F)};
}

/// A running program whose three streams are a terminal of 80 columns. Destroying one that still
/// runs kills it.
class TerminalProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// `arguments` begin with the program's path. An environment variable without a value is unset.
  TerminalProcess(const std::vector<std::string>& arguments, const Environment& environment);
  ~TerminalProcess();
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  void type(const std::string& keys);
  void signal(int number);
  void resize(unsigned short columns);
  /// Reads until that text has come, and returns what came up to its end since the last call. Fails
  /// the test when it takes too long.
  std::string wait_for(const std::string& text);
  /// The same at the end of the program, and its exit code, as for Process.
  std::string finish(int& exit_code);
  /// Waits until the program edits lines, which it begins to do after it has shown its prompt.
  void wait_for_editing();
  /// Whether the terminal echoes what is typed, and gives it out by lines.
  bool is_as_shells_leave_it() const;

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int terminal_ = -1;
  int kept_open_ = -1;  // the program's end, so that its settings outlive the program
  std::string unread_;
};

/// Without what moves cursors and sets colours.
std::string without_escapes(const std::string& text);

}  // namespace heddle::test
