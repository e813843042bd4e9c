// What a plan's slots hold, against the graph.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"
#include "exec/verify.h"

namespace heddle::verifier {

namespace {

constexpr ErrorCode kBroken = ErrorCode::backend;

class SlotChecker {
 public:
  SlotChecker(const Plan& plan, const ValueTrace& trace) : plan_(plan), trace_(trace) {}

  void check() {
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) check_slot(s);
    check_arenas();
    check_outputs();
  }

 private:
  const Graph& graph() const { return plan_.placed.graph; }

  void check_slot(std::uint32_t s) {
    const Slot& slot = plan_.slots[s];
    require(slot.device != nullptr, kBroken, "plan: {} has no device", describe_slot(plan_, s));
    if (slot.kind == SlotKind::arena) return check_unique(s, {});
    const ValueId held = held_by(s);
    const TracedValue& value = trace_[held];
    require(slot.operand == value.operand, kBroken, "plan: {} is {}, but holds {}, which is {}",
            describe_slot(plan_, s), heddle::to_string(slot.operand), describe(held),
            heddle::to_string(value.operand));
    require(slot.bytes >= span_bytes(slot.operand), kBroken,
            "plan: {} of {} bytes is too small for {}", describe_slot(plan_, s), slot.bytes,
            heddle::to_string(slot.operand));
    check_unique(s, held);
  }

  /// One slot a value and device; a state, which every run updates in place, has one in all.
  void check_unique(std::uint32_t s, ValueId held) {
    const Slot& slot = plan_.slots[s];
    Device* device = slot.kind == SlotKind::state ? nullptr : slot.device;
    const bool is_new = seen_.insert({slot.kind, held, device}).second;
    require(is_new, kBroken, "plan: {} is one of two slots for the same thing",
            describe_slot(plan_, s));
  }

  ValueId held_by(std::uint32_t s) const {
    const Slot& slot = plan_.slots[s];
    if (slot.kind == SlotKind::input || slot.kind == SlotKind::state) {
      const auto leaf =
          slot.kind == SlotKind::input ? trace_.input(slot.name) : trace_.state(slot.name);
      require(leaf.has_value(), kBroken, "plan: {} is named after nothing in the graph",
              describe_slot(plan_, s));
      return *leaf;
    }
    require(slot.value.has_value() && slot.value->node < graph().nodes.size() &&
                slot.value->output < graph().node(*slot.value).outputs.size(),
            kBroken, "plan: {} does not say which value it holds", describe_slot(plan_, s));
    check_kind(s, graph().node(*slot.value));
    return *slot.value;
  }

  void check_kind(std::uint32_t s, const GraphNode& node) const {
    const Slot& slot = plan_.slots[s];
    bool suits = is_computed(node);
    if (slot.kind == SlotKind::constant) suits = std::holds_alternative<Constant>(node.op);
    if (slot.kind == SlotKind::parameter) suits = parameter_of(*slot.value) == slot.name;
    require(suits, kBroken, "plan: {} cannot hold {}", describe_slot(plan_, s),
            describe(graph(), slot.value->node));
  }

  /// The name of the parameter that the value is, or is a packed form of.
  std::string parameter_of(ValueId value) const {
    const GraphNode* node = &graph().node(value);
    if (std::holds_alternative<Repack>(node->op))
      node = &graph().node(trace_[node->inputs[0]].version);
    const auto* parameter = std::get_if<Parameter>(&node->op);
    return parameter ? parameter->name : "";
  }

  void check_arenas() const {
    std::set<std::uint32_t> reported;
    for (const ArenaReport& report : plan_.arenas) {
      require(
          report.slot < plan_.slots.size() && plan_.slots[report.slot].kind == SlotKind::arena &&
              plan_.slots[report.slot].device == report.device &&
              reported.insert(report.slot).second,
          kBroken, "plan: an arena report names slot {}, which is not such an arena", report.slot);
      require(report.bytes == plan_.slots[report.slot].bytes && report.lower_bound <= report.bytes,
              kBroken, "plan: {} has {} bytes, its report says {}, at least {}",
              describe_slot(plan_, report.slot), plan_.slots[report.slot].bytes, report.bytes,
              report.lower_bound);
    }
    const auto arenas = std::count_if(plan_.slots.begin(), plan_.slots.end(), [](const Slot& slot) {
      return slot.kind == SlotKind::arena;
    });
    require(reported.size() == static_cast<std::size_t>(arenas), kBroken,
            "plan: {} arenas, {} reports of them", arenas, reported.size());
  }

  void check_outputs() const {
    require(plan_.outputs.size() == graph().outputs.size(), kBroken,
            "plan: {} outputs, the graph has {}", plan_.outputs.size(), graph().outputs.size());
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const PlanOutput& output = plan_.outputs[i];
      const Graph::Named& named = graph().outputs[i];
      require(output.name == named.name && output.value == named.value, kBroken,
              "plan: output '{}' is {}, in the graph '{}' is {}", output.name,
              describe(output.value), named.name, describe(named.value));
      check_outlives(output);
    }
  }

  /// The caller reads it any time before the next run, other Executables of its states included.
  void check_outlives(const PlanOutput& output) const {
    require(output.location.slot < plan_.slots.size(), kBroken,
            "plan: output '{}' lies in slot {} of {}", output.name, output.location.slot,
            plan_.slots.size());
    const Slot& slot = plan_.slots[output.location.slot];
    const bool changes = slot.kind == SlotKind::arena || slot.kind == SlotKind::staging ||
                         slot.kind == SlotKind::state ||
                         (slot.kind == SlotKind::input && trace_.is_fed(slot.name));
    require(!changes, kBroken, "plan: output '{}' lies in {}, which does not outlive the run",
            output.name, describe_slot(plan_, output.location.slot));
  }

  const Plan& plan_;
  const ValueTrace& trace_;
  std::set<std::tuple<SlotKind, ValueId, Device*>> seen_;
};

}  // namespace

void check_slots(const Plan& plan, const ValueTrace& trace) {
  SlotChecker(plan, trace).check();
}

}  // namespace heddle::verifier
