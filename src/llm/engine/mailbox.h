// How requests and the engine's thread tell each other what has become of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "heddle/engine.h"

namespace heddle::llm {

/// Wakes the engine's thread. Thread-safe.
class Doorbell {
 public:
  void ring() noexcept;
  /// Returns once it has been rung since the last call.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable rang_;
  bool rung_ = false;
};

/// Calls what `Ticket::notify` was given, on a thread of its own. Thread-safe.
class Notifier {
 public:
  Notifier();
  /// Returns when all have been called, or after a second if one does not come back.
  ~Notifier();

  /// Outlives the notifier where a callback hangs.
  class Queue {
   public:
    void add(std::shared_ptr<Mailbox> mailbox);
    void run();
    void close();
    /// Whether `run` has returned, or does within a second.
    bool has_ended();

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Mailbox>> waiting_;
    bool closed_ = false, ended_ = false;
  };
  const std::shared_ptr<Queue>& queue() const noexcept { return queue_; }

 private:
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

/// What lies between a request's ticket and the engine. Thread-safe.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(std::shared_ptr<Doorbell> doorbell, std::shared_ptr<Notifier::Queue> notices);

  /// Joins `event` to what waits here. Nothing comes after a last event.
  void put(Event event);
  std::optional<Event> take(std::chrono::milliseconds timeout);
  bool ended() const noexcept { return ended_; }

  void cancel() noexcept;
  bool is_cancelled() const noexcept { return cancelled_; }

  void set_ready(std::function<void()> ready);
  void call_ready();

 private:
  const std::shared_ptr<Doorbell> doorbell_;
  const std::shared_ptr<Notifier::Queue> notices_;
  std::atomic<bool> cancelled_{false}, ended_{false};
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<Event> waiting_;
  bool has_last_ = false;
  std::shared_ptr<const std::function<void()>> ready_;
};

}  // namespace heddle::llm
