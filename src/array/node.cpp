#include "array/node.h"

#include <utility>

#include "array/evaluating_thread.h"
#include "array/tracer.h"
#include "heddle/device.h"

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

Node::Node(Op&& op, Inputs&& inputs, std::span<const TensorSpec> outputs, BuiltUnder&& context)
    : leaf_(heddle::is_leaf(op)),
      sequence_(next_sequence()),
      inputs_(std::move(inputs)),
      op_(std::move(op)),
      built_(std::move(context)) {
  outputs_.reserve(outputs.size());
  for (const TensorSpec& spec : outputs) outputs_.push_back({nullptr, 0, {spec, {}}});
}

Node::Node(Constant constant, View view)
    : state_(State::done), leaf_(true), sequence_(next_sequence()), op_(std::move(constant)) {
  outputs_.push_back(std::move(view));
}

Node::~Node() {
  if (inputs_.empty()) return;
  if (dying_inputs) {
    for (Array& input : inputs_) dying_inputs->push_back(std::move(input));
    return;
  }
  std::vector<Array> inputs;
  for (Array& input : inputs_) inputs.push_back(std::move(input));
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

std::optional<Node::Inputs> Node::claim(EvaluatingThread& owner) {
  const std::lock_guard lock(mutex_);
  if (state() != State::pending) return std::nullopt;
  const bool traced = built_.tracer && built_.tracer->open();
  Inputs inputs =
      traced ? Inputs(std::span<const Array>(inputs_.begin(), inputs_.size())) : std::move(inputs_);
  owner_.store(&owner, std::memory_order_release);
  state_.store(State::running, std::memory_order_release);
  return inputs;
}

void Node::set_result(std::uint32_t output, View view) noexcept {
  View& result = outputs_[output];
  result.buffer = std::move(view.buffer);
  result.offset = view.offset;
  result.operand.layout = std::move(view.operand.layout);
}

void Node::publish() noexcept {
  if (!inputs_.empty()) {
    if (built_.tracer->keep(*this)) return;
    take_inputs();
  }
  settle(State::done);
}

void Node::fail(std::shared_ptr<const Failure> failure) noexcept {
  for (View& output : outputs_) output.buffer = nullptr;
  failure_ = std::move(failure);
  const Inputs dropped = take_inputs();
  settle(State::failed);
}

void Node::let_go() noexcept {
  Inputs dropped;  // outside the lock: others may die with them
  const std::lock_guard lock(mutex_);
  if (state() != State::retained) return;
  dropped = std::move(inputs_);
  state_.store(State::done, std::memory_order_release);
}

Node::Inputs Node::take_inputs() noexcept {
  const std::lock_guard lock(mutex_);
  return std::move(inputs_);
}

void Node::settle(State state) noexcept {
  owner_.store(nullptr, std::memory_order_release);
  state_.store(state, std::memory_order_release);
  state_.notify_all();
}

}  // namespace heddle
