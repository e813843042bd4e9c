// Which node runs where and when, by which kernel, and what the splits say of themselves.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "exec/verify.h"

namespace heddle::verifier {

namespace {

constexpr ErrorCode kBroken = ErrorCode::backend;
constexpr std::uint32_t kNoSplit = ~std::uint32_t{0};

class OrderChecker {
 public:
  OrderChecker(const Plan& plan, const ValueTrace& trace)
      : plan_(plan),
        trace_(trace),
        split_of_(graph().nodes.size(), kNoSplit),
        seen_(graph().nodes.size()) {}

  void check() {
    require(plan_.placed.placement.size() == graph().nodes.size() &&
                plan_.placed.extents.size() == graph().nodes.size(),
            kBroken, "plan: {} nodes, {} placements and {} extents", graph().nodes.size(),
            plan_.placed.placement.size(), plan_.placed.extents.size());
    check_load();
    check_splits(plan_.splits, Place::Phase::split);
    check_splits(plan_.feeds, Place::Phase::feed);
    check_all_seen();
    check_look_alikes();
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) check_lists(s);
    for (std::uint32_t f = 0; f < plan_.feeds.size(); ++f) check_feed_lists(f);
  }

 private:
  const Graph& graph() const { return plan_.placed.graph; }

  // ---- Order

  void check_load() {
    for (std::uint32_t i = 0; i < plan_.load.size(); ++i) {
      const PlannedLaunch& launch = plan_.load[i];
      check_node(launch, {.step = i});
      Device* device = plan_.placed.placement[launch.node];
      require(device != nullptr, kBroken, "plan: {} has no device", describe(graph(), launch.node));
      check_kernel(launch, *device, to_string(plan_, {.step = i}));
    }
  }

  void check_splits(const std::vector<Split>& splits, Place::Phase phase) {
    std::int64_t last = -1;
    for (std::uint32_t s = 0; s < splits.size(); ++s) {
      const Split& split = splits[s];
      require(split.device != nullptr, kBroken, "plan: split {} has no device", s);
      require(s == 0 || splits[s - 1].device != split.device, kBroken,
              "plan: splits {} and {} are both on {}, and should be one", s - 1, s,
              split.device->name());
      for (std::uint32_t i = 0; i < split.steps.size(); ++i) {
        const auto* launch = std::get_if<PlannedLaunch>(&split.steps[i]);
        if (!launch) continue;
        const Place place{phase, s, i, 0};
        check_node(*launch, place);
        split_of_[launch->node] = phase == Place::Phase::split ? s : kNoSplit;
        const std::string where = to_string(plan_, place);
        require(launch->node > last, kBroken,
                "plan: {} runs after node %{}, against the graph's order", where, last);
        require(plan_.placed.placement[launch->node] == split.device, kBroken,
                "plan: {} was placed on {}", where,
                plan_.placed.placement[launch->node] ? plan_.placed.placement[launch->node]->name()
                                                     : "no device");
        check_kernel(*launch, *split.device, where);
        last = launch->node;
      }
    }
  }

  static Place::Phase phase_of(const GraphNode& node) {
    if (std::holds_alternative<Repack>(node.op)) return Place::Phase::load;
    return std::holds_alternative<Feed>(node.op) ? Place::Phase::feed : Place::Phase::split;
  }

  void check_node(const PlannedLaunch& launch, const Place& place) {
    require(launch.node < graph().nodes.size(), kBroken, "plan: a step runs node %{} of {}",
            launch.node, graph().nodes.size());
    const GraphNode& node = graph().nodes[launch.node];
    require(is_computed(node), kBroken, "plan: {} runs what no kernel computes",
            to_string(plan_, place));
    require(phase_of(node) == place.phase, kBroken, "plan: {} belongs into another phase",
            to_string(plan_, place));
    require(!seen_[launch.node], kBroken, "plan: {} has run before", to_string(plan_, place));
    seen_[launch.node] = true;
  }

  void check_all_seen() const {
    for (NodeId n = 0; n < graph().nodes.size(); ++n) {
      require(seen_[n] || !is_computed(graph().nodes[n]), kBroken, "plan: {} never runs",
              describe(graph(), n));
    }
  }

  // ---- Kernels

  void check_kernel(const PlannedLaunch& launch, Device& device, const std::string& where) {
    const GraphNode& node = graph().nodes[launch.node];
    std::vector<OperandSpec> inputs, outputs;
    for (const ValueId input : node.inputs) inputs.push_back(trace_[input].operand);
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o)
      outputs.push_back(trace_[{launch.node, o}].operand);
    check_operands(launch.inputs, inputs, "input", where);
    check_operands(launch.outputs, outputs, "output", where);
    require(launch.kernel != nullptr, kBroken, "plan: {} has no kernel", where);
    const Prepared prepared = device.prepare_cached(node.op, inputs, outputs);
    require(bool(prepared), kBroken, "plan: {}: {} has no such kernel: {}", where, device.name(),
            prepared.reason);
    // The cache may have been emptied in between: then another kernel of the same traits will do.
    require(
        prepared.kernel == launch.kernel || prepared.kernel->traits() == launch.kernel->traits(),
        kBroken, "plan: {}: its kernel was prepared for something else", where);
    answers_.emplace(prepared.kernel.get(), launch.node);
    if (prepared.kernel != launch.kernel) look_alikes_.emplace_back(launch.kernel.get(), where);
    const KernelTraits& traits = launch.kernel->traits();
    require(traits.reads.size() == inputs.size() && traits.writes.size() == outputs.size(), kBroken,
            "plan: {}: its kernel takes {} inputs and {} outputs, not {} and {}", where,
            traits.reads.size(), traits.writes.size(), inputs.size(), outputs.size());
  }

  /// A kernel of the same traits that is another launch's right one is not this one's.
  void check_look_alikes() const {
    for (const auto& [kernel, where] : look_alikes_) {
      const auto other = answers_.find(kernel);
      if (other == answers_.end()) continue;
      fail(kBroken, "plan: {}: its kernel was prepared for something else, {}", where,
           describe(graph(), other->second));
    }
  }

  static void check_operands(const std::vector<Location>& locations,
                             const std::vector<OperandSpec>& expected, const char* what,
                             const std::string& where) {
    require(locations.size() == expected.size(), kBroken, "plan: {} has {} {}s, the graph says {}",
            where, locations.size(), what, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (locations[i].operand == expected[i] && locations[i].bytes == span_bytes(expected[i]))
        continue;
      fail(kBroken, "plan: {}: {} {} is {} of {} bytes, the graph says {} of {}", where, what, i,
           heddle::to_string(locations[i].operand), locations[i].bytes,
           heddle::to_string(expected[i]), span_bytes(expected[i]));
    }
  }

  // ---- Lists

  std::uint32_t maker(ValueId value) const { return split_of_[trace_[value].version.node]; }

  /// Values read by the split that an earlier one made, views looked through.
  std::set<ValueId> imports(const Split& split, std::uint32_t index) const {
    std::set<ValueId> values;
    for (const PlannedStep& step : split.steps) {
      const auto* launch = std::get_if<PlannedLaunch>(&step);
      if (!launch) continue;
      for (const ValueId input : graph().nodes[launch->node].inputs) {
        if (const std::uint32_t made = maker(input); made != kNoSplit && made != index) {
          values.insert(trace_[input].version);
        }
      }
    }
    return values;
  }

  std::set<ValueId> exports(std::uint32_t index) {
    if (exports_.empty()) collect_exports();
    return exports_[index];
  }

  void collect_exports() {
    exports_.resize(plan_.splits.size());
    const auto add = [&](ValueId value) {
      if (const std::uint32_t made = maker(value); made != kNoSplit)
        exports_[made].insert(trace_[value].version);
    };
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) {
      for (const ValueId value : imports(plan_.splits[s], s)) add(value);
    }
    for (const Split& feed : plan_.feeds) {
      for (const ValueId value : imports(feed, kNoSplit)) add(value);
    }
    for (const Graph::Named& output : graph().outputs) add(output.value);
    for (const Graph::Named& update : graph().state_updates) add(update.value);
  }

  static void check_list(const std::vector<ValueId>& list, const std::set<ValueId>& expected,
                         const char* what, const std::string& split) {
    const std::set<ValueId> listed(list.begin(), list.end());
    for (const ValueId value : expected) {
      require(listed.contains(value), kBroken, "plan: {} does not list {} among its {}", split,
              describe(value), what);
    }
    for (const ValueId value : listed) {
      require(expected.contains(value), kBroken, "plan: {} lists {} among its {}, which it is not",
              split, describe(value), what);
    }
    require(listed.size() == list.size(), kBroken, "plan: {} lists one of its {} twice", split,
            what);
  }

  void check_lists(std::uint32_t s) {
    const Split& split = plan_.splits[s];
    const std::string name = fmt::format("split {}", s);
    const std::set<ValueId> inputs = imports(split, s);
    check_list(split.inputs, inputs, "inputs", name);
    check_list(split.outputs, exports(s), "outputs", name);
    std::set<std::uint32_t> sources;
    for (const ValueId value : inputs) sources.insert(split_of_[value.node]);
    std::set<std::uint32_t> waits;
    for (const std::uint32_t wait : split.waits) {
      require(wait < s && plan_.splits[wait].device != split.device && sources.contains(wait),
              kBroken, "plan: {} waits for split {}, from whose device it reads nothing", name,
              wait);
      require(waits.insert(wait).second, kBroken, "plan: {} waits for split {} twice", name, wait);
    }
  }

  /// Feeds happen only if the run succeeded, and so wait for all of it.
  void check_feed_lists(std::uint32_t f) const {
    const Split& split = plan_.feeds[f];
    const std::string name = fmt::format("feed split {}", f);
    check_list(split.inputs, imports(split, kNoSplit), "inputs", name);
    check_list(split.outputs, {}, "outputs", name);
    const std::set<std::uint32_t> waits(split.waits.begin(), split.waits.end());
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) {
      require(waits.contains(s), kBroken, "plan: {} does not wait for split {}", name, s);
    }
    require(waits.size() == plan_.splits.size() && waits.size() == split.waits.size(), kBroken,
            "plan: {} waits for a split that is not there, or twice for one", name);
  }

  const Plan& plan_;
  const ValueTrace& trace_;
  std::vector<std::uint32_t> split_of_;  // of nodes that splits run
  std::vector<bool> seen_;
  std::vector<std::set<ValueId>> exports_;
  std::map<const Kernel*, NodeId> answers_;  // what devices prepare for the plan's launches
  std::vector<std::pair<const Kernel*, std::string>> look_alikes_;
};

}  // namespace

void check_order(const Plan& plan, const ValueTrace& trace) {
  OrderChecker(plan, trace).check();
}

}  // namespace heddle::verifier
