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

enum class Waited {
  readable,     // or at its end
  interrupted,  // by SIGINT, now or before
  signalled,    // by another signal that is caught
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
  /// Waits until `file` can be read, or something else has happened.
  Waited wait_for(int file) const;

 private:
  struct sigaction previous_;
  int wakes_;  // the end of a pipe to which the handler writes, whichever thread it runs in
};

}  // namespace heddle::cli
