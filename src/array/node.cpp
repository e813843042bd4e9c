#include "array/node.h"

#include <utility>

namespace heddle {

namespace {

std::uint64_t next_sequence() noexcept {
  static std::atomic<std::uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// The inputs of nodes that die while this thread takes nodes apart. A plain pointer, so that nodes
// held by static variables can still use it when the thread ends.
thread_local std::vector<Array>* dying_inputs = nullptr;

}  // namespace

Node::Node(Op op, std::vector<Array> inputs, std::vector<TensorSpec> outputs, Device* pin)
    : op_(std::move(op)),
      outputs_(std::move(outputs)),
      pin_(pin),
      sequence_(next_sequence()),
      inputs_(std::move(inputs)) {}

Node::Node(Constant constant, View view)
    : op_(std::move(constant)),
      outputs_{view.spec()},
      pin_(nullptr),
      sequence_(next_sequence()),
      state_(State::done) {
  results_.push_back(std::move(view));
}

Node::~Node() {
  if (inputs_.empty()) return;
  if (dying_inputs) {
    for (Array& input : inputs_) dying_inputs->push_back(std::move(input));
    return;
  }
  std::vector<Array> inputs = std::move(inputs_);
  dying_inputs = &inputs;
  while (!inputs.empty()) {
    // Taken out first: dropping it may add its own inputs to the list.
    const Array last = std::move(inputs.back());
    inputs.pop_back();
  }
  dying_inputs = nullptr;
}

void Node::wait_while_running() const noexcept {
  while (state() == State::running) state_.wait(State::running, std::memory_order_acquire);
}

std::optional<std::vector<Array>> Node::claim() {
  const std::lock_guard lock(mutex_);
  if (state() != State::pending) return std::nullopt;
  state_.store(State::running, std::memory_order_release);
  return std::move(inputs_);
}

void Node::fail(Failure failure) {
  results_.clear();
  failure_ = std::make_unique<const Failure>(std::move(failure));
  settle(State::failed);
}

void Node::settle(State state) noexcept {
  state_.store(state, std::memory_order_release);
  state_.notify_all();
}

}  // namespace heddle
