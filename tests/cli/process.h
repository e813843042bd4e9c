// Programs run as a script would run them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace heddle::test {

struct Finished {
  int exit_code = -1;  // or, if a signal ended it, 128 and its number: what a shell reports
  std::string out, err;
};

/// A running program with pipes for all three streams. Destroying one that still runs kills it.
class Process {
 public:
  /// `arguments` begin with the program's path, or its name in PATH.
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Gives it some input, which must not be more than a pipe holds.
  void write(const std::string& input);
  /// The first bytes of standard output, once there are any.
  std::string read_some();
  /// As a reader that goes away.
  void close_output();
  void signal(int number);
  /// Gives it `input`, then waits for its end. Kills it, and fails the test, when that takes too
  /// long.
  Finished finish(const std::string& input = "",
                  std::chrono::seconds limit = std::chrono::seconds(200));
  /// The same of a program that should not wait for the end of its input.
  Finished finish_with_open_input();

 private:
  Finished wait_for_end(const std::string& input, std::chrono::seconds limit);
  int wait_status();

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
};

/// The program `heddle` with these arguments.
Finished heddle_program(const std::vector<std::string>& arguments, const std::string& input = "");
/// Its path: what was built beside the tests, or what TESTED_PROGRAM names.
std::string heddle_path();

}  // namespace heddle::test
