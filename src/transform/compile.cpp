#include "heddle/compile.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "array/scopes.h"
#include "array/tracer.h"
#include "base/check.h"
#include "graph/simplify.h"
#include "graph/values.h"
#include "heddle/executable.h"
#include "tensor/format.h"

namespace heddle {

namespace {

std::atomic<CompileMode> compile_mode{CompileMode::enabled};

std::vector<TensorSpec> specs_of(const std::vector<Array>& arrays) {
  std::vector<TensorSpec> specs;
  for (const Array& array : arrays) specs.push_back(array.spec());
  return specs;
}

bool same_ranks(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  return std::ranges::equal(a, b, [](const TensorSpec& one, const TensorSpec& other) {
    return one.dtype == other.dtype && one.shape.size() == other.shape.size();
  });
}

/// The graph for inputs "0", "1", ... of other shapes.
Graph reshaped(const Graph& graph, const std::vector<TensorSpec>& inputs) {
  Rebuild rebuild(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeId now = rebuild.keep(id);
    GraphNode& node = rebuild.graph().nodes[now];
    if (auto* input = std::get_if<Input>(&node.op)) {
      input->spec = inputs[std::stoul(input->name)];
      node.outputs = {input->spec};
    } else if (!is_leaf(node.op)) {
      node.outputs = infer(node.op, input_specs(rebuild.graph(), node));
    }
  }
  return rebuild.finish();
}

class CompiledFunction {
 public:
  CompiledFunction(ArraysFunction fun, bool shapeless, std::vector<Array*> state)
      : fun_(std::move(fun)), shapeless_(shapeless), state_(std::move(state)) {}

  std::vector<Array> operator()(const std::vector<Array>& arguments) {
    const CompileMode mode = compile_mode.load(std::memory_order_relaxed);
    if (mode == CompileMode::disabled || TracerScope::current()) return fun_(arguments);
    std::unique_lock<std::mutex> lock;
    if (!state_.empty()) lock = std::unique_lock(state_mutex_);
    std::vector<Array> all = arguments;
    for (const Array* state : state_) all.push_back(*state);
    const Entry entry = entry_for({specs_of(all), device_in_scope(), mode}, arguments.size());
    std::vector<std::string> names;
    names.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) names.push_back(std::to_string(i));
    std::vector<NamedArray> named;
    for (std::size_t i = 0; i < all.size(); ++i) named.push_back({names[i], std::move(all[i])});
    all.clear();
    return call(*entry.executable, named, arguments.size());
  }

 private:
  struct Signature {
    std::vector<TensorSpec> inputs;
    Device* device;
    CompileMode mode;
    bool operator==(const Signature&) const = default;
  };
  struct Entry {
    Signature signature;
    std::shared_ptr<const Graph> traced;
    std::shared_ptr<Executable> executable;
  };

  /// States are handed over, so that their memory may be written over where nobody else holds it.
  std::vector<Array> call(Executable& executable, std::vector<NamedArray>& named,
                          std::size_t arguments) const {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      named[arguments + i].overwrite = true;
      const Array handed_over = std::move(*state_[i]);
    }
    try {
      std::vector<Array> outputs = executable.call(named);
      for (std::size_t i = state_.size(); i-- > 0;) {
        *state_[i] = std::move(outputs.back());
        outputs.pop_back();
      }
      return outputs;
    } catch (...) {
      for (std::size_t i = 0; i < state_.size(); ++i)
        *state_[i] = std::move(named[arguments + i].array);
      throw;
    }
  }

  Entry entry_for(const Signature& signature, std::size_t arguments) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.signature == signature) return entry;
    }
    Entry entry{signature, graph_for(signature, arguments), nullptr};
    const bool simplifies = signature.mode >= CompileMode::no_fuse;
    CompileOptions options;
    options.fuse = options.fuse_elements = signature.mode == CompileMode::enabled;
    options.strict_pins = false;
    entry.executable =
        Executable::compile(simplifies ? simplify(*entry.traced) : *entry.traced, options);
    return entries_.emplace_back(std::move(entry));
  }

  std::shared_ptr<const Graph> graph_for(const Signature& signature, std::size_t arguments) const {
    for (const Entry& known : entries_) {
      const Signature& other = known.signature;
      if (!shapeless_ || other.device != signature.device ||
          !same_ranks(other.inputs, signature.inputs)) {
        continue;
      }
      try {
        return std::make_shared<const Graph>(reshaped(*known.traced, signature.inputs));
      } catch (const Error& error) {
        fail(error.code(),
             "compile: what was traced with other shapes does not fit these, though the function "
             "was said to be shapeless: {}",
             error.what());
      }
    }
    return std::make_shared<const Graph>(trace_with_state(signature.inputs, arguments));
  }

  /// The states hold what stands for them while the function is called.
  Graph trace_with_state(const std::vector<TensorSpec>& inputs, std::size_t arguments) const {
    std::vector<Array> before;
    for (const Array* state : state_) before.push_back(*state);
    const auto restore = [&] {
      for (std::size_t i = 0; i < state_.size(); ++i) *state_[i] = before[i];
    };
    const auto traced = [&](const std::vector<Array>& all) {
      for (std::size_t i = 0; i < state_.size(); ++i) *state_[i] = all[arguments + i];
      std::vector<Array> outputs =
          fun_({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(arguments)});
      for (std::size_t i = 0; i < state_.size(); ++i) {
        require(state_[i]->spec() == before[i].spec(), ErrorCode::invalid_argument,
                "compile: state {} is {}, and the function leaves {} in it", i, before[i].spec(),
                state_[i]->spec());
        outputs.push_back(*state_[i]);
      }
      return outputs;
    };
    try {
      Graph graph = trace(traced, inputs);
      restore();
      return graph;
    } catch (...) {
      restore();
      throw;
    }
  }

  const ArraysFunction fun_;
  const bool shapeless_;
  const std::vector<Array*> state_;
  std::mutex state_mutex_;  // held throughout calls that read and write states
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace

void set_compile_mode(CompileMode mode) noexcept {
  compile_mode.store(mode, std::memory_order_relaxed);
}
void disable_compile() noexcept {
  set_compile_mode(CompileMode::disabled);
}
void enable_compile() noexcept {
  set_compile_mode(CompileMode::enabled);
}

ArraysFunction compile(const ArraysFunction& fun, bool shapeless,
                       const std::vector<Array*>& state) {
  for (auto one = state.begin(); one != state.end(); ++one) {
    const auto place = one - state.begin();
    require(*one != nullptr, ErrorCode::invalid_argument, "compile: state {} is null", place);
    require(std::find(state.begin(), one, *one) == one, ErrorCode::invalid_argument,
            "compile: state {} is named twice", place);
  }
  const auto compiled = std::make_shared<CompiledFunction>(fun, shapeless, state);
  return [compiled](const std::vector<Array>& arguments) { return (*compiled)(arguments); };
}

ArrayFunction compile(const ArrayFunction& fun, bool shapeless) {
  const ArraysFunction compiled = compile(
      [fun](const std::vector<Array>& in) { return std::vector<Array>{fun(in[0])}; }, shapeless);
  return [compiled](const Array& argument) { return compiled({argument}).front(); };
}

}  // namespace heddle
