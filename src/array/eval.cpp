#include "array/eval.h"

#include <unordered_map>
#include <utility>

#include "array/call_site.h"
#include "array/evaluating_thread.h"
#include "array/launch.h"
#include "base/check.h"
#include "base/settings.h"
#include "base/team.h"
#include "op/infer.h"

namespace heddle {

namespace {

/// "add(f32[2], f32[3]): message [model.cpp:12]"; the op only if the message does not name it.
std::string describe(const Node& node, std::span<const TensorSpec> inputs,
                     const std::string& message) {
  const std::string_view op = name(node.op());
  std::string text =
      message.starts_with(op) ? message : fmt::format("{}({}): {}", op, to_string(inputs), message);
  if (node.where().line() > 0) text += fmt::format(" {}", to_string(node.where()));
  return text;
}

bool is_inherited(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InheritedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::shared_ptr<const Failure> failure_of(const Node& node, std::span<const TensorSpec> inputs,
                                          const std::exception_ptr& error) noexcept try {
  std::shared_ptr<const Failure> failure = heddle::failure_of(error);
  if (is_inherited(error)) return failure;
  return std::make_shared<const Failure>(
      Failure{failure->code, describe(node, inputs, failure->message)});
} catch (...) {
  return out_of_host_memory();
}

std::shared_ptr<const Failure> no_value(const Op& leaf) {
  const std::string label = std::visit(
      [](const auto& op) {
        if constexpr (requires { op.name; }) return op.name;
        return std::string();
      },
      leaf);
  return std::make_shared<const Failure>(
      Failure{ErrorCode::invalid_argument,
              fmt::format("{} '{}' has no value: it belongs to a graph", name(leaf), label)});
}

Tape tape_of(std::span<const Array> arrays) {
  return make_tape(arrays, static_cast<std::size_t>(settings().width_limit));
}

/// One call of eval on one thread.
class Evaluation {
 public:
  explicit Evaluation(Tape tape) : tape_(std::move(tape)) {}
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  void run() {
    const Team::Session session(current_team());
    for (const std::uint32_t entry : tape_.order) step(entry);
    launcher_.batches().submit_all();
  }

  std::shared_ptr<const Failure> failure_of_output(const Array& array) const {
    const Node& node = *array.node();
    if (node.state() == Node::State::failed) return node.failure();
    return node.settled() ? nullptr : lacking_.at(&node);
  }

 private:
  void step(std::uint32_t entry) {
    const Ref<Node> node = std::move(tape_.entries[entry].node);
    if (const auto* failure = what_lacks(*node, entry)) {
      lacking_.emplace(node.get(), *failure);
      tape_.entries[entry].node = node;
      return;
    }
    if (std::optional<Node::Inputs> inputs = node->claim(thread_)) {
      compute(node, std::move(*inputs));
    } else if (!node->settled()) {
      wait_for(*node);
    }
  }

  /// Why the node cannot run now though nothing failed: a leaf of a graph lies below it. It stays
  /// pending, since graphs may yet be captured from it.
  const std::shared_ptr<const Failure>* what_lacks(const Node& node, std::uint32_t entry) {
    if (node.is_leaf() && node.state() == Node::State::pending) {
      return &lacking_.emplace(&node, no_value(node.op())).first->second;
    }
    if (lacking_.empty()) return nullptr;
    for (const std::uint32_t source : tape_.sources_of(entry)) {
      const auto found = lacking_.find(tape_.entries[source].node.get());
      if (found != lacking_.end()) return &found->second;
    }
    return nullptr;
  }

  void compute(const Ref<Node>& node, Node::Inputs inputs) {
    for (const Array& input : inputs) {
      if (input.node()->state() == Node::State::failed) return node->fail(input.node()->failure());
    }
    specs_.clear();
    for (const Array& input : inputs) specs_.push_back(input.spec());
    try {
      OperandList operands;
      operands.reserve(inputs.size());
      for (const Array& input : inputs) operands.push_back(launcher_.operand_of(input));
      for (Array& input : inputs) launcher_.batches().release(std::move(input));
      launcher_.run(node, std::move(operands));
    } catch (...) {
      const auto failure = failure_of(*node, specs_, std::current_exception());
      if (launcher_.watch()) launcher_.watch()->failed(*failure);
      node->fail(failure);
    }
  }

  void wait_for(const Node& node) {
    launcher_.batches().submit_all();  // so that others who wait for this thread need not in turn
    require(thread_.wait_for(node), ErrorCode::invalid_argument,
            "eval: '{}' is being evaluated by a call that waits for this one", name(node.op()));
  }

  EvaluatingThread& thread_ = EvaluatingThread::current();
  Tape tape_;
  Launcher launcher_;
  std::vector<TensorSpec> specs_;  // of the inputs of the node being run, for errors
  std::unordered_map<const Node*, std::shared_ptr<const Failure>> lacking_;
};

bool all_settled(std::span<const Array> arrays) {
  for (const Array& array : arrays) {
    if (!array.node()->settled()) return false;
  }
  return true;
}

}  // namespace

Failures evaluate(std::span<const Array> arrays) {
  return evaluate(arrays, all_settled(arrays) ? Tape() : tape_of(arrays));
}

Failures evaluate(std::span<const Array> arrays, Tape tape) {
  Evaluation evaluation(std::move(tape));
  evaluation.run();
  Failures failures;
  failures.reserve(arrays.size());
  for (const Array& array : arrays) failures.push_back(evaluation.failure_of_output(array));
  return failures;
}

namespace {

void raise_first(const Failures& failures) {
  for (const auto& failure : failures) {
    if (failure) failure->raise();
  }
}

/// Throws the first error in order, of nodes or of the work that makes their values.
void wait_for_values(std::span<const Array> arrays, const Failures& failures) {
  std::exception_ptr first;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    try {
      if (failures[i]) failures[i]->raise();
      arrays[i].node()->result(arrays[i].output()).buffer->wait_for_writes();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

void eval(std::span<const Array> arrays) {
  wait_for_values(arrays, evaluate(arrays));
}

void eval(std::initializer_list<Array> arrays) {
  eval(std::span(arrays.begin(), arrays.size()));
}

void async_eval(std::span<const Array> arrays) {
  raise_first(evaluate(arrays));
}

void check(std::span<const Array> arrays) {
  for (const Array& array : arrays) {
    const Node& node = *array.node();
    if (node.state() == Node::State::failed) node.failure()->raise();
    if (!node.has_value()) continue;
    const Buffer& memory = *node.result(array.output()).buffer;
    const Ref<Completion> write = memory.last_write();
    if (write && write->done()) write->wait();
    memory.check_alive();
  }
}

// ---- Scheduled evaluation

struct Scheduled::Impl {
  std::vector<Array> arrays;
  Tape tape;

  Failures run() { return evaluate(arrays, std::exchange(tape, {})); }
};

Scheduled::Scheduled(std::span<const Array> arrays)
    : impl_(std::make_unique<Impl>(Impl{{arrays.begin(), arrays.end()}, tape_of(arrays)})) {}
Scheduled::Scheduled(Scheduled&&) noexcept = default;
Scheduled& Scheduled::operator=(Scheduled&&) noexcept = default;
Scheduled::~Scheduled() = default;

void Scheduled::eval() {
  wait_for_values(impl_->arrays, impl_->run());
}

void Scheduled::async_eval() {
  raise_first(impl_->run());
}

Scheduled schedule(std::span<const Array> arrays) {
  return Scheduled(arrays);
}

}  // namespace heddle
