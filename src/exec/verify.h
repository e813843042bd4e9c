// What the verifier's own parts share. Nothing here knows how plans are made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "exec/plan.h"
#include "graph/values.h"

namespace heddle::verifier {

/// Text that is made only if it is printed: checks that pass, which are many, pay nothing for it.
template <class Make>
struct Late {
  Make make;
};
template <class Make>
Late<Make> late(Make make) {
  return {std::move(make)};
}

/// What the graph says of a value.
struct TracedValue {
  ValueId version;         // the leaf or kernel output whose bytes it shows
  std::size_t offset = 0;  // of its first byte within those
  OperandSpec operand;
};

/// The graph, with views looked through. A fed input shows the state's first version.
class ValueTrace {
 public:
  /// Throws backend for views that cannot be, states written from two versions or known twice.
  explicit ValueTrace(const Graph& graph);

  const TracedValue& operator[](ValueId value) const { return values_[value]; }
  /// The version at the start of the chain of writes that `version` is in: for a state's, its leaf.
  ValueId chain(ValueId version) const { return chain_[version]; }
  std::optional<ValueId> state(const std::string& name) const;
  std::optional<ValueId> input(const std::string& name) const;
  bool is_fed(const std::string& name) const;

 private:
  void trace(const Graph& graph, NodeId node);

  PerValue<TracedValue> values_;
  PerValue<ValueId> chain_;
  PerValue<NodeId> writer_;  // who writes over a version
  std::map<std::string, ValueId> states_, inputs_;
  std::vector<std::string> fed_;
};

bool is_computed(const GraphNode& node);  // by a kernel, in every run or when loading

// ---- Places in a plan, for messages

struct Place {
  enum class Phase : std::uint8_t { load, split, feed } phase = Phase::load;
  std::uint32_t split = 0, step = 0, run = 0;
};
/// "run 1, split 2 on cpu, step 5 (%17 add)"
std::string to_string(const Plan& plan, const Place& place);
/// "slot 3 (arena on cpu)"
std::string describe_slot(const Plan& plan, std::uint32_t slot);

// ---- The checks

/// Every slot is what the graph says of what it holds; arenas and outputs likewise.
void check_slots(const Plan& plan, const ValueTrace& trace);
/// Every node runs once, in order, on its device, by a kernel for its operands; the splits' lists
/// are what follows from the graph's edges.
void check_order(const Plan& plan, const ValueTrace& trace);
/// Loads, then two runs in a row, byte range by byte range.
void check_memory(const Plan& plan, const ValueTrace& trace);
/// What may be written over inputs.
void check_overwrites(const Plan& plan);

}  // namespace heddle::verifier

template <class Make>
struct fmt::formatter<heddle::verifier::Late<Make>> : fmt::formatter<std::string_view> {
  auto format(const heddle::verifier::Late<Make>& text, fmt::format_context& context) const {
    const std::string made = text.make();
    return fmt::formatter<std::string_view>::format(made, context);
  }
};
