// Running random programs: lazily, or as a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <variant>

#include "heddle/device.h"
#include "heddle/executable.h"
#include "heddle/graph.h"
#include "heddle/ops.h"
#include "support/program_rules.h"

namespace heddle::test {

namespace {

std::vector<Array> build_step(const ProgramStep& step, std::vector<Array> operands) {
  const Rule& rule = step.rule == kFailingRule ? failing_rule() : program_rules()[step.rule];
  return rule.build(step, operands);
}

Array array_of(const ProgramInput& input) {
  return Array::from_bytes(input.spec, input.bytes);
}

/// One lazy replay: a number's chances are in percent.
class LazyReplay {
 public:
  LazyReplay(const Program& program, const LazyRun& run)
      : program_(program), run_(run), random_(run.seed), last_use_(program.value_count(), 0) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      for (const std::size_t operand : program.steps[s].operands) last_use_[operand] = s;
    }
    for (const std::size_t result : program.results) last_use_[result] = kNever;
  }

  std::vector<Bytes> run() {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      build(s);
      drop_late(s);
      if (chance(25)) evaluate_some();
      if (chance(25)) start_scheduled();
      if (chance(12)) hold_memory();
    }
    drop_late(kNever - 1);
    std::vector<Bytes> results = read_results();
    check_held();
    return results;
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  /// Memory that something else than a node knows of.
  struct Held {
    std::size_t value;
    std::span<const std::byte> memory;
    Bytes bytes;
    std::variant<View, Array, Graph> holder;
  };

  bool chance(unsigned percent) { return random_() % 100 < percent; }

  Place place(const ProgramStep& step) {
    if (!run_.device || step.fails || (run_.partly && chance(40))) return {&cpu_device()};
    const std::size_t stream = random_() % (run_.streams.size() + 1);
    return {run_.device, stream < run_.streams.size() ? run_.streams[stream] : nullptr};
  }

  void build(std::size_t s) {
    const ProgramStep& step = program_.steps[s];
    if (step.rule == kInputRule) {
      values_.emplace_back(array_of(program_.inputs[static_cast<std::size_t>(step.numbers[0])]));
      return;
    }
    const PlaceScope scope(place(step));
    std::vector<Array> operands;
    for (const std::size_t operand : step.operands) operands.push_back(*values_[operand]);
    for (const std::size_t operand : step.operands) {
      if (last_use_[operand] <= s && chance(70)) values_[operand].reset();
    }
    for (Array& output : build_step(step, std::move(operands))) {
      values_.emplace_back(std::move(output));
    }
  }

  /// Drops some of what is not used after step `s`.
  void drop_late(std::size_t s) {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      if (last_use_[v] <= s && chance(30)) values_[v].reset();
    }
  }

  const Array* some_value() {
    const std::optional<Array>& value = values_[random_() % values_.size()];
    return value ? &*value : nullptr;
  }

  void evaluate_some() {
    std::vector<Array> chosen;
    for (unsigned i = random_() % 3; i < 3; ++i) {
      if (const Array* value = some_value()) chosen.push_back(*value);
    }
    switch (random_() % 5) {
      case 0:
      case 1:
        return async_eval(chosen);
      case 2:
        scheduled_.push_back(schedule(chosen));
        return;
      default:
        return eval(chosen);
    }
  }

  /// Starts what was scheduled some time ago, or drops it.
  void start_scheduled() {
    if (scheduled_.empty()) return;
    std::swap(scheduled_[random_() % scheduled_.size()], scheduled_.back());
    Scheduled scheduled = std::move(scheduled_.back());
    scheduled_.pop_back();
    switch (random_() % 3) {
      case 0:
        return scheduled.eval();
      case 1:
        return scheduled.async_eval();
      default:
        return;
    }
  }

  void hold(std::size_t value, const Buffer& buffer, std::variant<View, Array, Graph> holder) {
    if (!buffer.host()) return;
    const std::span<const std::byte> memory(buffer.host(), buffer.size());
    held_.push_back({value, memory, Bytes(memory.begin(), memory.end()), std::move(holder)});
  }

  void hold_memory() {
    const std::size_t v = random_() % values_.size();
    if (!values_[v]) return;
    const View view = values_[v]->view();
    switch (random_() % 3) {
      case 0:
        return hold(v, *view.buffer, view);
      case 1:
        return hold(v, *view.buffer, Array::from_view(view));
      default:
        hold_constant(v);
    }
  }

  void hold_constant(std::size_t v) {
    const Graph graph = trace([&](const auto&) { return std::vector{copy(*values_[v])}; }, {});
    for (const GraphNode& node : graph.nodes) {
      if (const auto* constant = std::get_if<Constant>(&node.op)) hold(v, *constant->data, graph);
    }
  }

  std::vector<Bytes> read_results() {
    std::vector<std::size_t> order(program_.results.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<Bytes> results(order.size());
    for (const std::size_t i : order) {
      std::optional<Array>& value = values_[program_.results[i]];
      results[i] = value->to_bytes();
      if (chance(50)) value.reset();
    }
    return results;
  }

  void check_held() {
    for (const Held& held : held_) {
      EXPECT_TRUE(std::ranges::equal(held.memory, held.bytes))
          << "memory of %" << held.value << " was written over, though a "
          << (held.holder.index() == 0   ? "view"
              : held.holder.index() == 1 ? "array"
                                         : "graph")
          << " held it";
    }
  }

  const Program& program_;
  const LazyRun run_;
  std::mt19937 random_;
  std::vector<std::size_t> last_use_;  // by value: the last step that reads it
  std::vector<std::optional<Array>> values_;
  std::vector<Scheduled> scheduled_;
  std::vector<Held> held_;
};

std::string input_name(std::size_t input) {
  return "input" + std::to_string(input);
}

}  // namespace

PlaceScope::PlaceScope(const Place& place) {
  if (place.stream) {
    stream_.emplace(place.stream);
  } else if (place.device) {
    device_.emplace(*place.device);
  }
}

std::vector<Array> build_values(const Program& program, const std::function<Place()>& place,
                                const std::function<Array(std::size_t)>& input) {
  std::vector<Array> values;
  for (const ProgramStep& step : program.steps) {
    if (step.rule == kInputRule) {
      const auto index = static_cast<std::size_t>(step.numbers[0]);
      values.push_back(input ? input(index) : array_of(program.inputs[index]));
      continue;
    }
    const PlaceScope scope(place && !step.fails ? place() : Place());
    std::vector<Array> operands;
    for (const std::size_t operand : step.operands) operands.push_back(values[operand]);
    for (Array& output : build_step(step, std::move(operands))) values.push_back(std::move(output));
  }
  return values;
}

std::vector<Bytes> run_lazily(const Program& program, const LazyRun& run) {
  return LazyReplay(program, run).run();
}

Graph graph_of(const Program& program) {
  GraphBuilder builder;
  const std::vector<Array> values = build_values(program, {}, [&](std::size_t input) {
    return builder.input(input_name(input), program.inputs[input].spec);
  });
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    builder.output("result" + std::to_string(i), values[program.results[i]]);
  }
  return builder.build();
}

std::vector<Bytes> run_planned(const Program& program, Device* device, bool fuse) {
  CompileOptions options;
  options.devices = {&cpu_device()};
  if (device) options.devices.insert(options.devices.begin(), device);
  options.fuse = fuse;
  options.verify = true;
  const auto executable = Executable::compile(graph_of(program), options);

  std::vector<std::string> names;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) names.push_back(input_name(i));
  std::vector<NamedTensor> inputs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    inputs.push_back({names[i], HostTensor(program.inputs[i].spec, program.inputs[i].bytes)});
  }
  executable->run(inputs);
  std::vector<Bytes> results;
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    results.push_back(executable->output("result" + std::to_string(i)).to_bytes());
  }
  return results;
}

}  // namespace heddle::test
