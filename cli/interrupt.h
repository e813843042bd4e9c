// Ctrl-C, asked about rather than obeyed.
#pragma once

#include <csignal>

namespace heddle::cli {

/// While one lives, the first SIGINT only sets a flag, and a second one ends the process. One at a
/// time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool interrupted() const noexcept;

 private:
  struct sigaction previous_;
};

}  // namespace heddle::cli
