// Tracing: while a tracer is open, the nodes built under it keep their inputs when they are
// evaluated, so that what a function computed can be captured though it looked at values on its
// way.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "array/node.h"

namespace heddle {

/// Thread-safe.
class Tracer final : public RefCounted {
 public:
  bool open() const noexcept { return open_.load(std::memory_order_acquire); }

  /// Retains a node that has been run, with its inputs, until `close`. False once closed.
  bool keep(Node& node) noexcept;
  /// All that was kept lets go of its inputs, and nothing is kept from now on.
  void close() noexcept;

 private:
  std::atomic<bool> open_{true};
  std::mutex mutex_;
  std::vector<Ref<Node>> kept_;
};

/// Traces what this thread builds until the end of the scope. The innermost scope counts.
class TracerScope {
 public:
  TracerScope();
  ~TracerScope();
  TracerScope(const TracerScope&) = delete;
  TracerScope& operator=(const TracerScope&) = delete;

  /// The tracer of the innermost scope of this thread, or null.
  static Ref<Tracer> current() noexcept;

 private:
  const Ref<Tracer> tracer_;
  TracerScope* const outer_;
};

}  // namespace heddle
