// A lazy node: an op on inputs, what it gives, and, once it has run, the memory that holds that.
//
// A node goes from pending through running to done or failed and never back. Whoever claims it runs
// it; its lock guards only the moment at which inputs are read or taken, never the computation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "heddle/array.h"

namespace heddle {

class Device;

/// An error as a node keeps it: every read throws a new one that says the same.
struct Failure {
  ErrorCode code = ErrorCode::backend;
  std::string message;
  [[noreturn]] void raise() const { throw Error(code, message); }
};

class Node final : public RefCounted {
 public:
  enum class State : std::uint8_t { pending, running, done, failed };

  Node(Op op, std::vector<Array> inputs, std::vector<TensorSpec> outputs, Device* pin);
  /// A value that exists: done from the start. The value is in `view`, which need not be how
  /// `constant` holds it.
  Node(Constant constant, View view);
  /// Takes apart chains of any length without recursion.
  ~Node() override;

  const Op& op() const noexcept { return op_; }
  const std::vector<TensorSpec>& outputs() const noexcept { return outputs_; }
  /// The device the node is pinned to, or null.
  Device* pin() const noexcept { return pin_; }
  /// Rises from node to node in the order in which the process builds them: sources come before
  /// consumers.
  std::uint64_t sequence() const noexcept { return sequence_; }

  /// What other threads did before the node got there is visible to the caller.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool settled() const noexcept { return state() >= State::done; }
  /// Returns once nobody runs the node.
  void wait_while_running() const noexcept;

  /// Calls visit(input) for each input, under the node's lock. False, without a call, if the node
  /// is no longer pending: it then has its value, or another thread is making it.
  template <class Visit>
  bool visit_pending(Visit&& visit) const {
    const std::lock_guard lock(mutex_);
    if (state() != State::pending) return false;
    for (const Array& input : inputs_) visit(input);
    return true;
  }

  /// The memory of output `output` of a node that is done (or being run by the caller), which may
  /// be in flight on its device.
  const View& result(std::uint32_t output) const noexcept { return results_[output]; }
  /// Of a node that failed.
  const Failure& failure() const noexcept { return *failure_; }

  // For the one that runs the node.

  /// Pending to running: the inputs, which the node no longer holds. Nothing if someone else was
  /// first.
  std::optional<std::vector<Array>> claim();
  /// Keeps the results, still unseen by other threads.
  void set_results(std::vector<View> results) noexcept { results_ = std::move(results); }
  /// Running to done, or failed; wakes those who wait.
  void publish() noexcept { settle(State::done); }
  void fail(Failure failure);

 private:
  void settle(State state) noexcept;

  const Op op_;
  const std::vector<TensorSpec> outputs_;
  Device* const pin_;
  const std::uint64_t sequence_;

  mutable std::mutex mutex_;
  std::vector<Array> inputs_;
  std::atomic<State> state_{State::pending};
  std::vector<View> results_;
  std::unique_ptr<const Failure> failure_;
};

}  // namespace heddle
