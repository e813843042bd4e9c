// How far a run is: a bar on a terminal, else a line now and then.
#pragma once

#include <chrono>
#include <string>

#include "training.h"

namespace fable {

class Progress {
 public:
  explicit Progress(const Training& training);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call it after each step.
  void show();

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(double seconds) const;

  const Training& training_;
  const bool on_terminal_;
  const Clock::time_point begin_ = Clock::now();
  const int first_;  // steps done when it began
  Clock::time_point shown_{};
};

}  // namespace fable
