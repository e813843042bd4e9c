#include "support/trace_checker.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

namespace heddle::test {

namespace {

using nlohmann::json;

constexpr double kClock = 0.01;  // microseconds that rounding may take

class Checker {
 public:
  std::vector<std::string> faults;

  void plan(const json& plan) {
    const std::uint64_t id = plan.at("plan");
    expect(id > 0 && !plans_.contains(id), "plan numbers are positive and distinct");
    const json& nodes = plan.at("nodes");
    std::set<std::string> names;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      node(nodes[n], n, nodes, plan.at("splits"));
      expect(names.insert(nodes[n].at("name")).second, "node names are distinct");
    }
    std::size_t steps = 0;
    std::set<std::size_t> placed;
    for (std::size_t s = 0; s < plan.at("splits").size(); ++s) {
      const json& split = plan.at("splits")[s];
      expect(split.at("feeds").is_boolean(), "feeds is a boolean");
      for (const std::size_t n : split.at("nodes")) {
        ++steps;
        expect(n < nodes.size() && nodes.at(n).at("split") == s, "a split's nodes say so");
        expect(placed.insert(n).second, "a node is in one split");
        expect(nodes.at(n).at("device") == split.at("device"), "and on its device");
      }
    }
    for (const json& arena : plan.at("arenas")) {
      expect(arena.at("bytes") >= arena.at("lower_bound"), "arenas are at least their bound");
      for (const json& item : arena.at("items")) {
        expect(item.at("offset").get<std::size_t>() + item.at("bytes").get<std::size_t>() <=
                   arena.at("bytes"),
               "items are inside their arena");
        expect(item.at("first") <= item.at("last") && item.at("last") < steps,
               "items live within the steps");
        const std::size_t n = item.at("node");
        const int output = item.at("output");
        expect(placed.contains(n) && output >= -1 &&
                   output < static_cast<int>(nodes.at(n).at("outputs").size()),
               "items name a node's output");
      }
    }
    plans_[id] = plan;
  }

  void begin(const json& run) {
    const std::uint64_t id = run.at("run");
    expect(!open_.contains(id), "runs have distinct numbers");
    expect(run.at("plan").is_null() || plans_.contains(run.at("plan")), "runs name a known plan");
    open_[id] = run;
    last_[id] = run.at("begin");
  }

  void record(std::uint64_t run_id, const json& record) {
    const json& run = open_.at(run_id);
    const double begin = record.at("begin"), encode = record.at("encode"), wait = record.at("wait");
    expect(encode >= 0 && wait >= 0, "no time is negative");
    expect(begin >= last_[run_id] - kClock, "records come one after the other");
    last_[run_id] = begin + encode + wait;
    expect(record.at("bytes") >= 0.0 && record.at("operations") >= 0.0, "work is not negative");
    const std::size_t n = record.at("node");
    if (run.at("plan").is_null()) {
      for (const char* member : {"op", "family", "text", "device"}) {
        expect(record.at(member).is_string(), "lazy records name their op");
      }
      for (const json& value : record.at("values")) this->value(value, record.at("outputs"));
      return;
    }
    const json& plan = plans_.at(run.at("plan"));
    expect(n < plan.at("nodes").size(), "records name a node");
    const json& node = plan.at("nodes").at(n);
    expect(node.at("kind") == "op" || node.at("kind") == "copy" || node.at("kind") == "input",
           "only ops, copies and inputs have records");
    for (const json& value : record.at("values")) {
      expect(!(node.at("writes_state") == true && value.at("output") == 0),
             "whole states are left out");
      this->value(value, node.at("outputs"));
    }
  }

  void end(const json& run) {
    const std::uint64_t id = run.at("run");
    expect(run.at("end") >= last_.at(id) - kClock, "a run ends after its records");
    expect(run.at("error").is_null() || run.at("error").is_string(), "an error is a text");
    open_.erase(id);
  }

  void expect(bool sound, const std::string& rule) {
    if (!sound) faults.push_back(rule);
  }

 private:
  void node(const json& node, std::size_t n, const json& nodes, const json& splits) {
    static const std::set<std::string> kinds{"op",        "copy",  "input",
                                             "parameter", "state", "constant"};
    const std::string kind = node.at("kind");
    expect(kinds.contains(kind), "a node's kind is known");
    const bool leaf = kind != "op" && kind != "copy";
    const int split = node.at("split");
    expect(leaf ? split == -1 : split >= 0 && split < static_cast<int>(splits.size()),
           "leaves have no split, others one");
    expect(leaf == node.at("device").get<std::string>().empty(), "leaves have no device");
    for (const char* member : {"op", "family", "name", "text"}) {
      expect(!node.at(member).get<std::string>().empty(), std::string("a node has its ") + member);
    }
    expect(node.at("id").is_number_unsigned(), "a node has its number in the plan");
    for (const json& input : node.at("inputs")) {
      const std::size_t from = input.at(0), output = input.at(1);
      expect(from < n, "inputs come before their readers");
      expect(output < nodes.at(from).at("outputs").size(), "inputs are outputs of something");
    }
    for (const json& output : node.at("outputs")) {
      expect(output.at("dtype").is_string() && output.at("shape").is_array(),
             "outputs have type and shape");
    }
    expect(node.at("bytes") >= 0.0 && node.at("operations") >= 0.0, "work is not negative");
  }

  void value(const json& value, const json& outputs) {
    const std::size_t output = value.at("output");
    expect(output < outputs.size(), "values are outputs");
    const json& shape = outputs.at(output).at("shape");
    std::int64_t all = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      all *= axis == 0 ? value.at("rows").get<std::int64_t>() : shape[axis].get<std::int64_t>();
    }
    const std::int64_t count = value.at("count"), nan = value.at("nan"), inf = value.at("inf");
    expect(shape.empty() ? value.at("rows").is_null() : value.at("rows") <= shape[0],
           "rows are some of the shape's");
    expect(count == all, "all elements of the rows are counted");
    const std::int64_t finite = count - nan - inf;
    std::int64_t binned = 0;
    expect(value.at("histogram").size() == 32, "there are 32 bins");
    for (const std::int64_t bin : value.at("histogram")) binned += bin;
    expect(nan >= 0 && inf >= 0 && binned == finite, "the histogram has all that is finite");
    for (const char* member : {"min", "max", "mean", "mean_magnitude"}) {
      expect(value.at(member).is_null() == (finite == 0), "figures are there if there is anything");
    }
    if (finite > 0) {
      const double low = value.at("min"), high = value.at("max"), mean = value.at("mean");
      const double slack = 1e-9 * (std::abs(low) + std::abs(high));
      expect(low - slack <= mean && mean <= high + slack, "the mean lies between the extremes");
      expect(value.at("mean_magnitude") >= std::abs(mean) - slack, "magnitudes do not cancel");
    }
    expect(value.at("sample").size() <= 8, "samples have at most 8 rows");
    for (const json& row : value.at("sample")) expect(row.size() <= 32, "of at most 32");
    expect(value.at("sample").empty() == (count == 0), "there is a sample of what there is");
  }

  std::map<std::uint64_t, json> plans_, open_;
  std::map<std::uint64_t, double> last_;  // by run, the end of its last record
};

/// Every node that ran has an event, and the other way round; names are there for all threads.
void check_events(const json& events, const json& runs, Checker& checker) {
  std::set<int> threads, named;
  std::map<std::string, std::size_t> counts;
  for (const json& event : events) {
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") named.insert(event.at("tid").get<int>());
      continue;
    }
    checker.expect(event.at("ph") == "X" && event.at("dur") >= 0.0 && event.at("ts").is_number() &&
                       event.at("pid") == 1 && event.at("name").is_string(),
                   "events are complete");
    threads.insert(event.at("tid").get<int>());
    ++counts[event.at("cat") == "run" ? "run" : "node"];
  }
  checker.expect(
      threads == named || std::includes(named.begin(), named.end(), threads.begin(), threads.end()),
      "all threads have names");
  std::size_t ran = 0;
  for (const json& run : runs) {
    for (const json& record : run.at("records"))
      ran += !(record.at("encode") == 0.0 && record.at("wait") == 0.0);
  }
  checker.expect(counts["run"] == runs.size(), "each run has an event");
  checker.expect(counts["node"] >= ran, "each node that ran has an event");
}

std::vector<std::string> guarded(const auto& check) {
  Checker checker;
  try {
    check(checker);
  } catch (const std::exception& error) {
    checker.faults.push_back(error.what());
  }
  return checker.faults;
}

}  // namespace

std::vector<std::string> faults_of_trace(const std::string& text) {
  return guarded([&](Checker& checker) {
    const json file = json::parse(text);
    const json& trace = file.at("heddle");
    checker.expect(trace.at("version") == 1, "the version is 1");
    checker.expect(trace.at("dropped_runs").is_number_unsigned(), "dropped runs are counted");
    for (const json& plan : trace.at("plans")) checker.plan(plan);
    for (const json& run : trace.at("runs")) {
      checker.begin(run);
      for (const json& record : run.at("records")) checker.record(run.at("run"), record);
      checker.end(run);
    }
    check_events(file.at("traceEvents"), trace.at("runs"), checker);
  });
}

std::vector<std::string> faults_of_lines(const std::vector<std::string>& lines) {
  return guarded([&](Checker& checker) {
    for (const std::string& text : lines) {
      checker.expect(text.find('\n') == std::string::npos, "a line is a line");
      const json line = json::parse(text);
      const std::string type = line.at("type");
      if (type == "plan") {
        checker.plan(line);
      } else if (type == "run") {
        checker.begin(line);
      } else if (type == "record") {
        checker.record(line.at("run"), line);
      } else {
        checker.expect(type == "end", "a line's type is known");
        checker.end(line);
      }
    }
  });
}

}  // namespace heddle::test
