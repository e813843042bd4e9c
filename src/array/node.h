// A lazy node: an op on inputs, what it gives, and, once it has run, the memory that holds that.
//
// A node goes from pending through running to done (or retained, by a tracer, and then done) or
// failed, and never back. Whoever claims it runs it; its lock guards only the moment at which
// inputs are read or taken, never the computation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "base/failure.h"
#include "base/inline_vector.h"
#include "heddle/array.h"

namespace heddle {

class Device;
class EvaluatingThread;
class Stream;
class Tracer;

/// What a node takes from where it was built, and not from its inputs.
struct BuiltUnder {
  Device* pin = nullptr;  // the device that the node is pinned to, or null
  Ref<Stream> stream;     // of that device; null for its default
  Ref<Tracer> tracer;     // null when nobody traces
  std::source_location where;
};

class Node final : public RefCounted {
 public:
  enum class State : std::uint8_t { pending, running, retained, done, failed };
  using Inputs = InlineVector<Array, 3>;  // as many as most ops have

  Node(Op&& op, Inputs&& inputs, std::span<const TensorSpec> outputs, BuiltUnder&& context);
  /// A value that exists: done from the start. The value is in `view`, which need not be how
  /// `constant` holds it.
  Node(Constant constant, View view);
  /// Takes apart chains of any length without recursion.
  ~Node() override;

  const Op& op() const noexcept { return op_; }
  bool is_leaf() const noexcept { return leaf_; }
  std::uint32_t output_count() const noexcept {
    return static_cast<std::uint32_t>(outputs_.size());
  }
  const TensorSpec& spec(std::uint32_t output) const noexcept {
    return outputs_[output].operand.spec;
  }
  Device* pin() const noexcept { return built_.pin; }
  const Ref<Stream>& stream() const noexcept { return built_.stream; }
  /// The line of the call that made the node.
  const std::source_location& where() const noexcept { return built_.where; }
  /// Rises from node to node in the order in which the process builds them: sources come before
  /// consumers.
  std::uint64_t sequence() const noexcept { return sequence_; }

  /// What other threads did before the node got there is visible to the caller.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool settled() const noexcept { return state() >= State::retained; }
  bool has_value() const noexcept { return settled() && state() != State::failed; }
  /// Returns once nobody runs the node.
  void wait_while_running() const noexcept;
  /// The thread that runs the node, if any does.
  EvaluatingThread* owner() const noexcept { return owner_.load(std::memory_order_acquire); }

  /// Calls visit(input) for each input, under the node's lock. False, without a call, if the node
  /// is not pending: it then has its value, or another thread is making it.
  template <class Visit>
  bool visit_pending(Visit&& visit) const {
    return visit_inputs_in(State::pending, visit);
  }
  /// The same for a node whose inputs a tracer retains.
  template <class Visit>
  bool visit_retained(Visit&& visit) const {
    return visit_inputs_in(State::retained, visit);
  }

  /// The memory of output `output` of a node that has a value (or is being run by the caller),
  /// which may be in flight on its device.
  const View& result(std::uint32_t output) const noexcept { return outputs_[output]; }
  /// Of a node that failed.
  const std::shared_ptr<const Failure>& failure() const noexcept { return failure_; }

  // For the one that runs the node.

  /// Pending to running: the inputs, which the node no longer holds unless it is traced. Nothing if
  /// someone else was first.
  std::optional<Inputs> claim(EvaluatingThread& owner);
  /// Keeps the memory of an output, still unseen by other threads.
  void set_result(std::uint32_t output, View view) noexcept;
  /// Running to done (or retained), or failed; wakes those who wait.
  void publish() noexcept;
  void fail(std::shared_ptr<const Failure> failure) noexcept;

  // For the tracer.

  /// Running to retained.
  void retain() noexcept { settle(State::retained); }
  /// Retained to done.
  void let_go() noexcept;

 private:
  template <class Visit>
  bool visit_inputs_in(State wanted, Visit& visit) const {
    const std::lock_guard lock(mutex_);
    if (state() != wanted) return false;
    for (const Array& input : inputs_) visit(input);
    return true;
  }
  Inputs take_inputs() noexcept;
  void settle(State state) noexcept;

  // In the order that makes evaluation touch the fewest cache lines: what it reads of every node
  // comes first, then the index of the op, which lies at its end, beside the outputs.
  std::atomic<State> state_{State::pending};
  const bool leaf_;
  std::atomic<EvaluatingThread*> owner_{nullptr};
  const std::uint64_t sequence_;
  mutable std::mutex mutex_;
  Inputs inputs_;
  const Op op_;
  InlineVector<View, 1> outputs_;  // their specs never change
  const BuiltUnder built_;
  std::shared_ptr<const Failure> failure_;
};

}  // namespace heddle
