// What the planner's own steps share.
#pragma once

#include <vector>

#include "exec/plan.h"
#include "heddle/executable.h"

namespace heddle {

/// What a value's bytes are a part of.
struct Memory {
  ValueId root;    // the leaf or kernel output whose memory it lies in; for states, the leaf
  ValueId source;  // the value itself with views looked through: the node whose work it waits for
  std::size_t offset = 0;  // bytes from the root's start
  OperandSpec operand;
};

/// The memory of every value.
PerValue<Memory> trace_memory(const Graph& graph);

struct Isolated {
  PlacedGraph placed;
  PerValue<Memory> memory;
};

/// Copies state versions that something outside the state's chain on its own device reads: another
/// device, or the caller as an output (a later run may write the state before the caller looks).
Isolated isolate_states(PlacedGraph placed);

/// Puts a barrier at the start of each split, for what the run before left in flight, and one
/// before each step that conflicts with something since the last.
void insert_barriers(Plan& plan);

/// Which outputs of a plan may lie where inputs lie, where all is done by the CPU.
std::vector<Overwrite> find_overwrites(const Plan& plan);

/// Whether a plan that these options make is verified.
bool verifies(const CompileOptions& options);

/// The graph's plan as `options` and the settings would have it: all that compiling decides.
Plan plan_graph(Graph graph, const CompileOptions& options);

}  // namespace heddle
