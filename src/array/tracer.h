// Tracing: while a tracer is open, the nodes built under it keep their inputs when they are
// evaluated, so that what a function computed can be captured though it looked at values on its
// way.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "array/node.h"

namespace heddle {

/// Thread-safe. What a tracer keeps goes to the one around it when it closes, since that may still
/// want to know.
class Tracer final : public RefCounted {
 public:
  explicit Tracer(Ref<Tracer> outer) noexcept : outer_(std::move(outer)) {}

  bool open() const noexcept {
    return open_.load(std::memory_order_acquire) || (outer_ && outer_->open());
  }

  /// Retains a node that has been run, with its inputs, until `close`. False once closed.
  bool keep(Node& node) noexcept;
  /// All that was kept goes to the outer tracer or lets go of its inputs, and nothing is kept here
  /// from now on.
  void close() noexcept;

 private:
  /// Takes over a node that is retained already. False once closed.
  bool take_over(const Ref<Node>& node) noexcept;

  const Ref<Tracer> outer_;
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
