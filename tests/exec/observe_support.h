// An observer that keeps all it is told, and what it should have been told.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec_test_support.h"
#include "heddle/observe.h"

namespace heddle::test {

class Collector : public Observer {
 public:
  struct Record {
    std::uint64_t run;
    std::uint32_t node;
    std::string name, op, device;
    ObservedTime begin, encoded, end;
    double bytes, operations;
  };
  struct Value {
    TensorSpec spec;
    Bytes bytes;
  };
  /// By id of the node in the plan's graph (lazily, by position) and output, of the latest run.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Value> values;
  std::map<std::string, Value> by_name;  // of first outputs
  std::vector<Record> records;
  std::vector<ObservedRun> runs;
  std::vector<ObservedTime> ends;
  std::vector<std::string> errors;  // of runs; empty: it went well
  bool wants_values = true;

  void run_began(const ObservedRun& run) override { runs.push_back(run); }
  bool wants(const ObservedRun&, const ObservedNode&, std::uint32_t) override {
    return wants_values;
  }
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override {
    const ObservedNode& node = record.what;
    records.push_back({run.id, record.node, node.name, node.op, node.device, record.begin,
                       record.encoded, record.end, record.bytes, record.operations});
    for (const ObservedValue& value : record.values) {
      const Value kept{value.spec, {value.bytes.begin(), value.bytes.end()}};
      values[{run.plan ? node.id : record.node, value.output}] = kept;
      if (value.output == 0) by_name[node.name] = kept;
    }
  }
  void run_ended(const ObservedRun&, ObservedTime end, const Error* error) override {
    ends.push_back(end);
    errors.emplace_back(error ? error->what() : "");
  }
};

/// Expects that each value which the plan's kernels made is the one that interpreting its graph
/// node by node gives, and that there are no others but inputs.
inline void expect_values(const Plan& plan, const Collector& seen, const NamedBytes& bound) {
  Graph graph = plan.placed.graph;
  graph.outputs.clear();
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> keys;
  for (const auto* splits : {&plan.splits, &plan.feeds}) {
    for (const Split& split : *splits) {
      for (const PlannedStep& step : split.steps) {
        const auto* launch = std::get_if<PlannedLaunch>(&step);
        if (!launch) continue;
        for (std::uint32_t o = 0; o < graph.nodes[launch->node].outputs.size(); ++o) {
          const std::string name = std::to_string(launch->node) + "." + std::to_string(o);
          graph.outputs.push_back({name, {launch->node, o}});
          keys[name] = {launch->node, o};
        }
      }
    }
  }
  const Interpreted expected = Interpreter(graph, bound, Writes::to_copies).run();
  for (const auto& [name, key] : keys) {
    const auto found = seen.values.find(key);
    ASSERT_NE(found, seen.values.end()) << name << " " << to_string(graph.nodes[key.first].op);
    EXPECT_EQ(to_string(found->second.spec), to_string(graph.spec({key.first, key.second})));
    expect_near(found->second.bytes, expected.outputs.at(name),
                name + " " + to_string(graph.nodes[key.first].op));
  }
  for (const auto& [key, value] : seen.values) {
    const bool made = keys.contains(std::to_string(key.first) + "." + std::to_string(key.second));
    EXPECT_TRUE(made || std::holds_alternative<Input>(graph.nodes[key.first].op)) << key.first;
  }
}

}  // namespace heddle::test
