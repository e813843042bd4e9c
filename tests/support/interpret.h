// Runs a Graph node by node on the CPU, without a plan: what passes and planned runs are compared
// with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "device/lower.h"
#include "heddle/device.h"
#include "heddle/graph.h"

namespace heddle::test {

using Bytes = std::vector<std::byte>;
using NamedBytes = std::map<std::string, Bytes>;

/// How a write makes a state's next version.
enum class Writes {
  to_copies,  // every value stays as it was: what the graph means
  in_place,   // over the version before, as executors do: right only if the graph obeys rule 2
};

struct Interpreted {
  NamedBytes outputs, states;
};

/// The bytes of a contiguous tensor of C++ values.
template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class Interpreter {
 public:
  /// `bound` has the bytes of each input, parameter and state. A fed input may be left out: it is
  /// then read from the state of its name.
  Interpreter(const Graph& graph, const NamedBytes& bound, Writes writes)
      : graph_(graph), bound_(bound), writes_(writes) {}

  Interpreted run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) run_node(id);
    Interpreted result;
    for (const auto& [name, value] : graph_.outputs) result.outputs[name] = read(at(value));
    for (const auto& [name, value] : graph_.state_updates) result.states[name] = read(at(value));
    return result;
  }

  /// One op, lowered if the CPU needs it.
  std::vector<View> run_op(const Op& op, std::vector<View> inputs) {
    if (is_view(op)) return {view_op(op, inputs[0])};
    if (const auto* constant = std::get_if<Constant>(&op)) {
      return {{constant->data, 0, OperandSpec::contiguous(constant->spec)}};
    }
    std::vector<OperandSpec> operands;
    for (const View& input : inputs) operands.push_back(input.operand);
    const Legal legal = legalize(cpu_device(), op, operands);
    switch (legal.how) {
      case Legal::How::direct:
        return launch(op, legal, inputs);
      case Legal::How::contiguous:
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (legal.copy[i]) inputs[i] = run_op(Contiguous{}, {inputs[i]})[0];
        }
        return launch(op, legal, inputs);
      case Legal::How::lowered:
        return run_lowered(legal.lowered, inputs);
      case Legal::How::no:
        break;
    }
    throw Error(ErrorCode::unsupported, legal.reason);
  }

 private:
  const View& at(ValueId value) const { return values_[value.node][value.output]; }

  void run_node(NodeId id) {
    const GraphNode& node = graph_.nodes[id];
    values_.emplace_back();
    if (node.dead) return;
    if (is_leaf(node.op) && !std::holds_alternative<Constant>(node.op)) {
      values_[id] = {bind(node)};
      return;
    }
    std::vector<View> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(at(input));
    values_[id] = run_op(node.op, std::move(inputs));
  }

  /// States are copied, so that what was bound stays.
  View bind(const GraphNode& node) {
    const TensorSpec& spec = node.outputs[0];
    std::string name;
    if (const auto* input = std::get_if<Input>(&node.op)) name = input->name;
    if (const auto* parameter = std::get_if<Parameter>(&node.op)) name = parameter->name;
    if (const auto* state = std::get_if<StateRef>(&node.op)) name = state->name;
    const bool fed = std::ranges::find(graph_.fed_inputs, name) != graph_.fed_inputs.end();
    if (fed && buffers_.contains(name)) return {buffers_[name], 0, OperandSpec::contiguous(spec)};
    const auto found = bound_.find(name);
    if (found == bound_.end() || found->second.size() != byte_size(spec)) {
      throw Error(ErrorCode::invalid_argument, "interpret: no bytes of " + name);
    }
    Ref<Buffer> buffer = allocate_host(found->second.size());
    std::ranges::copy(found->second, buffer->host());
    if (fed) buffers_[name] = buffer;
    return {std::move(buffer), 0, OperandSpec::contiguous(spec)};
  }

  View view_op(const Op& op, View input) {
    auto view = view_of(op, input.operand);
    if (!view) {
      input = run_op(Contiguous{}, {input})[0];
      view = view_of(op, input.operand);
    }
    const TensorSpec spec = infer(op, std::span(&input.operand.spec, 1))[0];
    return {input.buffer,
            input.offset + static_cast<std::size_t>(view->offset_bytes),
            {spec, view->layout}};
  }

  std::vector<View> run_lowered(const Lowered& lowered, const std::vector<View>& inputs) {
    std::vector<std::vector<View>> steps;
    const auto value_of = [&](const LoweredStep::Source& source) {
      return source.from_input ? inputs[source.index] : steps[source.index][source.output];
    };
    for (const LoweredStep& step : lowered.steps) {
      std::vector<View> operands;
      for (const auto& source : step.sources) operands.push_back(value_of(source));
      steps.push_back(run_op(step.op, std::move(operands)));
    }
    std::vector<View> outputs;
    for (const auto& source : lowered.outputs) outputs.push_back(value_of(source));
    return outputs;
  }

  std::vector<View> launch(const Op& op, const Legal& legal, std::vector<View> inputs) {
    std::vector<TensorSpec> specs;
    for (const View& input : inputs) specs.push_back(input.spec());
    std::vector<View> outputs;
    for (const OperandSpec& operand : output_operands(op, infer(op, specs))) {
      Ref<Buffer> buffer = allocate_host(span_bytes(operand));
      // What a kernel forgets to write shows: as NaN where numbers are floats.
      std::fill_n(buffer->host(), buffer->size(), std::byte{0xff});
      outputs.push_back({std::move(buffer), 0, operand});
    }
    if (writes_state(op)) {
      if (writes_ == Writes::to_copies) inputs[0] = run_op(Contiguous{}, {inputs[0]})[0];
      outputs[0] = inputs[0];
    }
    View workspace;
    if (const std::size_t bytes = legal.kernel->traits().workspace_bytes) {
      workspace = {allocate_host(bytes), 0,
                   OperandSpec::contiguous({DType::u8, {static_cast<std::int64_t>(bytes)}})};
    }
    const Ref<Stream> stream = cpu_device().default_stream();
    stream->encode(legal.kernel, inputs, outputs, workspace, {});
    stream->submit()->wait();
    return outputs;
  }

  Bytes read(View view) {
    if (!is_contiguous(view.operand)) view = run_op(Contiguous{}, {view})[0];
    const std::size_t size = byte_size(view.spec());
    return {view.host(), view.host() + size};
  }

  const Graph& graph_;
  const NamedBytes& bound_;
  Writes writes_;
  std::vector<std::vector<View>> values_;
  std::map<std::string, Ref<Buffer>> buffers_;  // of fed inputs and their states
};

inline Interpreted interpret(const Graph& graph, const NamedBytes& bound,
                             Writes writes = Writes::in_place) {
  return Interpreter(graph, bound, writes).run();
}

}  // namespace heddle::test
