// A plan: everything that is decided before a graph runs. Plain data, made by the planner, checked
// by the verifier, carried out by the Executable.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/passes.h"
#include "heddle/device.h"
#include "heddle/graph.h"

namespace heddle {

enum class SlotKind : std::uint8_t {
  arena,      // intermediates and workspaces of one device; lives for a run
  input,      // bound for each run
  parameter,  // bound when compiled; unchanged by runs. `layout` says how it is held
  constant,
  state,    // a State's buffer, in place
  output,   // results: outlive the run
  staging,  // one staging copy
};

/// Something that is bound to a buffer as a whole. A slot index is global to the plan; each device
/// has a binding table with all of them.
struct Slot {
  SlotKind kind;
  Device* device = nullptr;      // whose memory it is
  std::string name;              // of the input, parameter, state or output
  OperandSpec operand;           // all but arenas
  std::size_t bytes = 0;         // at least
  std::optional<ValueId> value;  // constant, parameter, staging: what it holds
};

/// Where a value lies, as seen by one device.
struct Location {
  std::uint32_t slot = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;  // span_bytes of the operand
  OperandSpec operand;
};

struct PlannedLaunch {
  NodeId node;
  std::shared_ptr<const Kernel> kernel;
  std::vector<Location> inputs, outputs;
  std::uint32_t workspace_slot = 0;  // the device's arena
  std::size_t workspace_offset = 0, workspace_bytes = 0;
  std::optional<Location> extent;
};
/// The value goes from this split's device to `to`, a staging slot of another.
struct PlannedCopy {
  ValueId value;
  Location from, to;
};
struct PlannedBarrier {};
using PlannedStep = std::variant<PlannedLaunch, PlannedCopy, PlannedBarrier>;

/// A maximal run of consecutive nodes on one device: the unit of submission.
struct Split {
  Device* device = nullptr;
  std::vector<PlannedStep> steps;
  std::vector<ValueId> inputs;       // every value read that an earlier split made
  std::vector<ValueId> outputs;      // every value made here that a later split or the caller reads
  std::vector<std::uint32_t> waits;  // earlier splits whose completion its submission waits for
};

struct ArenaReport {
  Device* device = nullptr;
  std::uint32_t slot = 0;
  std::size_t bytes = 0;
  std::size_t lower_bound = 0;  // the largest sum of bytes alive at one step
};

/// A value in the caller's hands after a run.
struct PlanOutput {
  std::string name;
  ValueId value;
  Location location;  // an output slot, or a state's, parameter's, input's or constant's
};

/// An output slot that may be bound to the memory of an input slot: whoever writes the output is
/// the last to read the input, and nothing from there on can fail.
struct Overwrite {
  std::uint32_t output = 0, input = 0;
};

struct Plan {
  PlacedGraph placed;
  /// Device::generation of each device before its kernels were prepared.
  std::map<Device*, std::uint64_t> generations;
  std::vector<Slot> slots;
  /// Once when a parameter is loaded or replaced: repacks, in order. Each reads a parameter slot
  /// and writes the packed parameter slot.
  std::vector<PlannedLaunch> load;
  std::vector<Split> splits;
  /// After the splits have ended well: one Feed launch a state.
  std::vector<Split> feeds;
  std::vector<ArenaReport> arenas;
  std::vector<PlanOutput> outputs;
  std::vector<Overwrite> overwrites;
};

Plan make_plan(PlacedGraph placed);

/// Throws Error(backend) naming the step and the value at the first thing that could go wrong: a
/// read of bytes not last written by the value that the graph names, live values or workspaces that
/// overlap, buffers on the wrong device, a missing staging copy, wait or barrier, states written
/// twice or shared, offsets outside their slots. Checks two runs in a row. Shares no code with
/// make_plan.
void verify(const Plan& plan);

/// How many ops of each name a run has on the CPU though they were pinned to another device, which
/// lacks them.
std::map<std::string, std::uint64_t> host_ops(const Plan& plan);

/// A line for each split: device, ops, barriers, copies; and the ops by device.
std::string splits_text(const Plan& plan);
std::string to_text(const Plan& plan);
std::string to_dot(const Plan& plan);
std::string to_json(const Plan& plan);

/// Offsets for intervals of memory: item i is alive at steps [first, last], both counted.
struct ArenaItem {
  std::size_t bytes;
  std::uint32_t first, last;
};
struct ArenaLayout {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0, lower_bound = 0;
};
ArenaLayout lay_out(const std::vector<ArenaItem>& items, std::size_t alignment);

}  // namespace heddle
