// Ctrl-C, asked about rather than obeyed. One of these at a time.
#pragma once

#include <csignal>

namespace heddle::cli {

/// While one lives, the first SIGINT only sets a flag, and a second one ends the process.
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

/// While one lives, SIGINT sets a flag, however often it comes.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  bool raised() const noexcept;
  void clear() noexcept;
  /// Waits until `file` can be read, or is at its end. False if the flag was raised by then.
  bool wait_for(int file) const;

 private:
  struct sigaction previous_;
};

}  // namespace heddle::cli
