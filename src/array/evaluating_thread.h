// Who waits for whom: so that evaluations that would wait for each other in a circle end in an
// error and not in a deadlock.
#pragma once

#include <atomic>

namespace heddle {

class Node;

/// What is known of a thread that evaluates. Records outlive their threads (they are used again,
/// never freed), so that one may be read through a node that has just been settled.
class EvaluatingThread {
 public:
  static EvaluatingThread& current() noexcept;

  /// Waits until nobody runs `node`. False, without waiting, if whoever runs it waits for this
  /// thread, directly or through others, or is this thread: the wait would never end.
  bool wait_for(const Node& node) noexcept;

 private:
  bool leads_here(const Node& node) const noexcept;

  std::atomic<const Node*> awaited_{nullptr};  // changed and followed under one lock
};

}  // namespace heddle
