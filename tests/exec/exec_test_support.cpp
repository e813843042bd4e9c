#include "exec_test_support.h"

#include "exec/bindings.h"
#include "exec/held_states.h"
#include "exec/transfer.h"

namespace heddle::test {

namespace {

/// The states and bindings of one plan, run after run.
class PlanRunner {
 public:
  PlanRunner(const Plan& plan, const NamedBytes& bound)
      : plan_(plan), bound_(bound), users_(state_users(plan)), bindings_(plan) {
    for (const Split& split : plan.splits) recordings_.push_back(record(plan, split));
    for (const Split& split : plan.feeds) feeds_.push_back(record(plan, split));
    bindings_.allocate();
    bindings_.make_inputs();
    bindings_.make_outputs();
    bind_parameters();
    for (const Slot& slot : plan.slots) {
      if (slot.kind != SlotKind::state) continue;
      states_[slot.name] = make_ref<State>(*slot.device, slot.operand.spec);
      states_[slot.name]->seed(Array::from_bytes(slot.operand.spec, bound.at(slot.name)));
    }
  }

  Interpreted run() {
    submit_all();
    Interpreted result;
    for (const PlanOutput& output : plan_.outputs) {
      const Location& at = output.location;
      if (!is_contiguous(at.operand)) continue;
      Bytes& bytes = result.outputs[output.name];
      bytes.resize(at.bytes);
      read_buffer(bindings_.buffer(at.slot), at.offset, bytes);
    }
    for (const Graph::Named& update : plan_.placed.graph.state_updates) {
      result.states[update.name] = states_.at(update.name)->read().to_bytes();
    }
    return result;
  }

 private:
  void bind_parameters() {
    const auto parameters = make_ref<Parameters>();
    for (const GraphNode& node : plan_.placed.graph.nodes) {
      const auto* parameter = std::get_if<Parameter>(&node.op);
      if (parameter)
        parameters->set(parameter->name,
                        Array::from_bytes(parameter->spec, bound_.at(parameter->name)));
    }
    bindings_.bind_parameters(*parameters);
  }

  std::vector<Ref<State>> states() const {
    std::vector<Ref<State>> states;
    for (const StateUser& user : users_) states.push_back(states_.at(user.name));
    return states;
  }

  void submit_all() {
    const HeldStates held(users_, states());
    for (const HeldStates::Held& state : held.all()) {
      bindings_.bind_state(state.user->slots, state.use);
      bindings_.bind_state(state.user->fed_slots, state.use);
    }
    for (const Slot& slot : plan_.slots) {
      if (slot.kind == SlotKind::input && !states_.contains(slot.name)) {
        bindings_.bind_input(slot.name, bound_.at(slot.name));
      }
    }
    std::vector<Ref<Completion>> ends;
    for (std::size_t s = 0; s < recordings_.size(); ++s)
      submit(plan_.splits[s], *recordings_[s], ends);
    for (std::size_t f = 0; f < feeds_.size(); ++f) submit(plan_.feeds[f], *feeds_[f], ends);
    for (const Ref<Completion>& end : ends) end->wait();
  }

  void submit(const Split& split, const Recording& recording, std::vector<Ref<Completion>>& ends) {
    const Ref<Stream> stream = split.device->default_stream();
    for (const std::uint32_t wait : split.waits) stream->wait_for(ends.at(wait));
    stream->replay(recording, bindings_.table(split.device));
    ends.push_back(stream->submit());
  }

  const Plan& plan_;
  const NamedBytes& bound_;
  const std::vector<StateUser> users_;
  Bindings bindings_;
  std::vector<std::unique_ptr<Recording>> recordings_, feeds_;
  std::map<std::string, Ref<State>> states_;
};

}  // namespace

std::vector<Interpreted> run_plan(const Plan& plan, const NamedBytes& bound, int runs) {
  PlanRunner runner(plan, bound);
  std::vector<Interpreted> results;
  for (int i = 0; i < runs; ++i) results.push_back(runner.run());
  return results;
}

std::vector<Interpreted> interpret(const Graph& graph, NamedBytes bound, int runs) {
  std::vector<Interpreted> results;
  for (int i = 0; i < runs; ++i) {
    results.push_back(Interpreter(graph, bound, Writes::to_copies).run());
    for (const auto& [name, bytes] : results.back().states) bound[name] = bytes;
  }
  return results;
}

void expect_same(const std::vector<Interpreted>& actual, const std::vector<Interpreted>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string run = what + ", run " + std::to_string(i);
    for (const auto& [name, bytes] : actual[i].outputs) {
      expect_near(bytes, expected[i].outputs.at(name), run + ", output " + name);
    }
    for (const auto& [name, bytes] : actual[i].states) {
      expect_near(bytes, expected[i].states.at(name), run + ", state " + name);
    }
  }
}

// ---- Random graphs

namespace {

class Generator {
 public:
  Generator(unsigned seed, const std::vector<Device*>& devices)
      : random_(seed), devices_(devices) {}

  RandomGraph make(int nodes) {
    for (const char* name : {"x", "y"}) values_.push_back(input(name, {4, 8}));
    values_.push_back(input("z", {8}));
    rows_ = input_i32("rows", {2, 5, 3, 0});
    for (const char* name : {"k", "v"}) add_state(name);
    fed_ = builder_.input("fed", f32({4, 8}));
    bound_["fed"] = bytes_of(random_floats(random_, 32));
    values_.push_back(*fed_);
    for (int i = 0; i < nodes; ++i) step();
    finish();
    return {builder_.build(), std::move(bound_)};
  }

 private:
  struct Kept {
    std::string name;
    Array version;
    Device* home;
    bool is_written = false;
  };

  std::size_t below(std::size_t limit) { return random_() % limit; }
  const Array& any() {
    return values_[values_.size() - 1 - below(std::min<std::size_t>(values_.size(), 12))];
  }
  /// A value of the usual shape.
  Array square() {
    for (int i = 0; i < 20; ++i) {
      if (const Array& value = any(); value.shape() == Shape{4, 8}) return value;
    }
    return values_[0];
  }

  Array input(const char* name, const Shape& shape) {
    bound_[name] = bytes_of(random_floats(random_, static_cast<std::size_t>(elements(shape))));
    return builder_.input(name, f32(shape));
  }
  Array input_i32(const char* name, const std::vector<std::int32_t>& values) {
    bound_[name] = bytes_of(values);
    return builder_.input(name, i32({static_cast<std::int64_t>(values.size())}));
  }

  void add_state(const std::string& name) {
    bound_[name] = bytes_of(random_floats(random_, 6 * 8));
    states_.push_back({name, builder_.state(name, f32({6, 8})), devices_[below(devices_.size())]});
  }

  void step() {
    const std::size_t kind = below(14);
    if (kind == 0) return write();
    if (below(3) == 0) return values_.push_back(make_value(kind));
    const DeviceScope scope(*devices_[below(devices_.size())]);
    values_.push_back(make_value(kind));
  }

  void write() {
    Kept& state = states_[below(states_.size())];
    const Array x = square();
    const DeviceScope scope(*state.home);
    state.version = write_rows(state.version, x, *rows_);
    state.is_written = true;
  }

  Array make_value(std::size_t kind) {
    switch (kind) {
      case 1:
        return silu(any());
      case 2:
        return tanh(any());
      case 3:
        return square() + square();
      case 4:
        return maximum(square(), sum(square(), {1}, true));
      case 5:
        return softmax(any(), -1);
      case 6:
        return slice(square(), {0, 2}, {4, 6});
      case 7:
        return matmul(square(), transpose(square()));
      case 8:
        return reshape(transpose(square()), {4, 8});
      case 9:
        return concatenate({slice(square(), {2, 0}, {4, 8}), slice(square(), {0, 0}, {2, 8})}, 0);
      case 10:
        return linear(square(), parameter());
      case 11:
        return take(states_[below(states_.size())].version, *rows_, 0);
      case 12:
        return gated_multiply(square(), square());
      case 13:
        return fast::rms_norm(any(), std::nullopt, 1e-5f);
      default:
        return square() * square();
    }
  }

  Array parameter() {
    const std::string name = "w" + std::to_string(parameters_++);
    bound_[name] = bytes_of(random_floats(random_, 64));
    return builder_.parameter(name, f32({8, 8}));
  }

  void finish() {
    for (int i = 0; i < 3; ++i) builder_.output("out" + std::to_string(i), any());
    for (const Kept& state : states_) {
      if (state.is_written) builder_.update(state.name, state.version);
    }
    builder_.feed(*fed_, square(), FeedKind::whole);
  }

  std::mt19937 random_;
  std::vector<Device*> devices_;
  GraphBuilder builder_;
  NamedBytes bound_;
  std::vector<Array> values_;
  std::vector<Kept> states_;
  std::optional<Array> rows_, fed_;
  int parameters_ = 0;
};

}  // namespace

RandomGraph random_graph(unsigned seed, const std::vector<Device*>& devices, int nodes) {
  return Generator(seed, devices).make(nodes);
}

}  // namespace heddle::test
