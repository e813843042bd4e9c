// Work that ends some time: what every wait in heddle waits for.
#pragma once

#include <chrono>

#include "heddle/ref.h"

namespace heddle {

/// The end of submitted work. Thread-safe. An error of the work is stored and rethrown at every
/// wait.
class Completion : public RefCounted {
 public:
  /// Whether the work has ended, well or not. Never blocks.
  virtual bool done() const noexcept = 0;

  /// Returns when the work has ended well; throws its error if it ended otherwise. After `timeout`
  /// throws Error(timeout), naming what was awaited and what was seen instead.
  virtual void wait(std::chrono::nanoseconds timeout) = 0;

  /// `wait` with the bound that HEDDLE_TIMEOUT sets (10 s by default).
  void wait();
};

/// Work that ended before anyone asked.
Ref<Completion> completed();

}  // namespace heddle
