// The thread pool: teams of threads that share out the chunks of a loop.
//
// parallel_for hands out chunks that the caller could finish alone. It never waits for a worker
// that has not started one, so a busy or slow pool costs speed and never progress. A call from
// inside a chunk runs inline. The first exception is rethrown on the caller once the running chunks
// have ended; chunks not yet begun are skipped.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace heddle {

class Team {
 public:
  /// A team of `threads` threads, the caller counted: `threads` - 1 workers are started.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const noexcept;

  /// What a loop calls, as (begin, end): a reference to a callable that outlives the loop, so that
  /// nothing is allocated.
  class Body {
   public:
    template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Body>) Body(F&& f)
    noexcept  // NOLINT: made of a lambda where parallel_for is called
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
          call_([](void* object, std::int64_t begin, std::int64_t end) {
            (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
          }) {}
    void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

   private:
    void* object_;
    void (*call_)(void*, std::int64_t, std::int64_t);
  };

  /// Runs body over [0, count) in chunks of `grain` (the last may be shorter), in any order, on
  /// this thread and idle workers. Chunk borders depend on `count` and `grain` only, never on the
  /// team.
  void parallel_for(std::int64_t count, std::int64_t grain, const Body& body);

  /// While a Session lives, workers wait for the next loop by spinning for a short while instead of
  /// sleeping: for runs of many small loops. Nests.
  class Session {
   public:
    explicit Session(Team& team);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    Team& team_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The team that kernels on this thread use: the one a TeamScope set, else one for the process with
/// settings().threads threads.
Team& current_team();

/// Makes kernels that this thread runs use `team`, until it ends.
class TeamScope {
 public:
  explicit TeamScope(Team& team);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  Team* previous_;
};

}  // namespace heddle
