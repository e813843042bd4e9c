// Who watches, as executors see it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/failure.h"
#include "heddle/observe.h"

namespace heddle {

/// An observer in its scope. Thread-safe.
struct ObserveScope::Watched {
  explicit Watched(std::shared_ptr<Observer> o) : observer(std::move(o)) {}

  /// call(observer), unless it threw before or its scope has ended. Throws nothing.
  template <class Call>
  void tell(const Call& call) noexcept {
    const std::lock_guard lock(mutex);
    if (failure || ended) return;
    const Telling telling;
    try {
      call(*observer);
    } catch (...) {
      failure = failure_of(std::current_exception());
    }
  }

  /// While one lives, this thread is in an observer's call.
  class Telling {
   public:
    Telling() noexcept { ++depth; }
    ~Telling() { --depth; }
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    static bool now() noexcept { return depth > 0; }

   private:
    static thread_local int depth;
  };

  const std::shared_ptr<Observer> observer;
  mutable std::recursive_mutex mutex;  // held during calls, in which the scope may end
  std::shared_ptr<const Failure> failure;
  bool ended = false;
};

using Watchers = std::vector<std::shared_ptr<ObserveScope::Watched>>;

/// How many scopes there are in the process.
extern std::atomic<int> observe_scopes;

/// Those that watch what this thread runs now.
Watchers watchers_of_this_thread();

inline Watchers watchers_now() {
  if (observe_scopes.load(std::memory_order_acquire) == 0) return {};
  return watchers_of_this_thread();
}

/// A number that no other run of the process has.
std::uint64_t next_run_id() noexcept;

}  // namespace heddle
