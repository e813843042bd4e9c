#include "array/eval.h"

#include <new>
#include <unordered_map>
#include <utility>

#include "array/launch.h"
#include "array/order.h"
#include "base/check.h"
#include "base/settings.h"
#include "base/team.h"
#include "op/infer.h"

namespace heddle {

namespace {

/// "add(f32[2], f32[3]): message", unless the message says itself that it is about the op.
std::string describe(const Op& op, std::span<const TensorSpec> inputs, const std::string& message) {
  if (message.starts_with(name(op))) return message;
  return fmt::format("{}({}): {}", name(op), to_string(inputs), message);
}

Failure failure_of(const Op& op, std::span<const TensorSpec> inputs,
                   const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InheritedError& e) {
    return {e.code(), e.what()};
  } catch (const Error& e) {
    return {e.code(), describe(op, inputs, e.what())};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, describe(op, inputs, "out of host memory")};
  } catch (const std::exception& e) {
    return {ErrorCode::backend, describe(op, inputs, e.what())};
  } catch (...) {
    return {ErrorCode::backend, describe(op, inputs, "an exception of unknown type")};
  }
}

Failure no_value(const Op& leaf) {
  const std::string label = std::visit(
      [](const auto& op) {
        if constexpr (requires { op.name; }) return op.name;
        return std::string();
      },
      leaf);
  return {ErrorCode::invalid_argument,
          fmt::format("{} '{}' has no value: it belongs to a graph", name(leaf), label)};
}

/// One call of eval on one thread.
class Evaluation {
 public:
  explicit Evaluation(std::span<const Array> arrays)
      : outer_(innermost),
        tape_(make_tape(arrays, static_cast<std::size_t>(settings().width_limit))) {
    innermost = this;
  }
  ~Evaluation() { innermost = outer_; }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  void run() {
    const Team::Session session(current_team());
    for (const std::uint32_t entry : tape_.order) step(entry);
    launcher_.submit_all();
  }

  std::optional<Failure> failure_of_output(const Array& array) const {
    const Node& node = *array.node();
    if (node.state() == Node::State::failed) return node.failure();
    if (node.state() == Node::State::done) return std::nullopt;
    return lacking_.at(&node);
  }

 private:
  void step(std::uint32_t entry) {
    const Ref<Node> node = std::move(tape_.entries[entry].node);
    if (const Failure* failure = what_lacks(*node, entry)) {
      lacking_.emplace(node.get(), *failure);
      tape_.entries[entry].node = node;
      return;
    }
    if (std::optional<std::vector<Array>> inputs = node->claim()) {
      compute(node, std::move(*inputs));
    } else if (!node->settled()) {
      wait_for(*node);
    }
  }

  /// Why the node cannot run now though nothing failed: a leaf of a graph lies below it. It stays
  /// pending, since graphs may yet be captured from it.
  const Failure* what_lacks(const Node& node, std::uint32_t entry) {
    if (is_leaf(node.op()) && node.state() == Node::State::pending) {
      return &lacking_.emplace(&node, no_value(node.op())).first->second;
    }
    if (lacking_.empty()) return nullptr;
    for (const std::uint32_t source : tape_.sources_of(entry)) {
      const auto found = lacking_.find(tape_.entries[source].node.get());
      if (found != lacking_.end()) return &found->second;
    }
    return nullptr;
  }

  void compute(const Ref<Node>& node, std::vector<Array> inputs) {
    running_ = node.get();
    specs_.clear();
    try {
      for (const Array& input : inputs) {
        if (input.node()->state() == Node::State::failed) {
          node->fail(input.node()->failure());
          running_ = nullptr;
          return;
        }
      }
      std::vector<Operand> operands;
      operands.reserve(inputs.size());
      for (const Array& input : inputs) {
        specs_.push_back(input.spec());
        operands.push_back(operand_of(input));
      }
      for (Array& input : inputs) launcher_.release(std::move(input));
      inputs.clear();
      launcher_.run(node, std::move(operands));
    } catch (...) {
      node->fail(failure_of(node->op(), specs_, std::current_exception()));
    }
    running_ = nullptr;
  }

  /// Rule 11: in place only by proof. The handle given here, the open batch's on a node that waits
  /// in it, and the node's own on the buffer must be the only ones; nobody else can make another.
  static Operand operand_of(const Array& input) {
    const Node& node = *input.node();
    const View& view = node.result(input.output());
    const std::int64_t own_handles = node.state() == Node::State::running ? 2 : 1;
    const bool unshared = node.use_count() == own_handles && view.buffer->use_count() == 1;
    return {view, unshared, false};
  }

  void wait_for(const Node& node) {
    for (const Evaluation* e = this; e; e = e->outer_) {
      require(e->running_ != &node && !e->launcher_.holds(node), ErrorCode::invalid_argument,
              "eval: '{}' is being evaluated by the call that this one was made from",
              name(node.op()));
    }
    launcher_.submit_all();  // so that others who wait for this thread need not wait in turn
    node.wait_while_running();
  }

  static thread_local Evaluation* innermost;

  Evaluation* const outer_;
  Tape tape_;
  Launcher launcher_;
  const Node* running_ = nullptr;
  std::vector<TensorSpec> specs_;  // of its inputs, for errors
  std::unordered_map<const Node*, Failure> lacking_;
};

thread_local Evaluation* Evaluation::innermost = nullptr;

bool all_settled(std::span<const Array> arrays) {
  for (const Array& array : arrays) {
    if (!array.node()->settled()) return false;
  }
  return true;
}

}  // namespace

std::vector<std::optional<Failure>> evaluate(std::span<const Array> arrays) {
  std::vector<std::optional<Failure>> failures;
  failures.reserve(arrays.size());
  if (all_settled(arrays)) {
    for (const Array& array : arrays) {
      const Node& node = *array.node();
      const bool failed = node.state() == Node::State::failed;
      failures.push_back(failed ? std::optional(node.failure()) : std::nullopt);
    }
    return failures;
  }
  Evaluation evaluation(arrays);
  evaluation.run();
  for (const Array& array : arrays) failures.push_back(evaluation.failure_of_output(array));
  return failures;
}

void eval(std::span<const Array> arrays) {
  std::vector<std::optional<Failure>> failures = evaluate(arrays);
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

void eval(std::initializer_list<Array> arrays) {
  eval(std::span(arrays.begin(), arrays.size()));
}

}  // namespace heddle
