// Passes: each takes a graph and returns another that computes the same. The new graph may have
// another order, in which sources still come before consumers; nodes that became useless keep their
// place and are marked dead.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/values.h"
#include "heddle/device.h"
#include "heddle/graph.h"

namespace heddle {

/// Which device runs each node; null for leaves and views, which run nowhere, and for dead nodes.
using Placement = std::vector<Device*>;

/// A graph with everything that planning needs decided.
struct PlacedGraph {
  Graph graph;
  Placement placement;
  /// Per node, the name of the i32 scalar input that says how many leading rows count; empty: all.
  std::vector<std::string> extents;
  /// Per node, the kernel that placing found, for operands that lie as they do here; null, or no
  /// list at all, where the device is to be asked. They are of these generations of their devices.
  std::vector<std::shared_ptr<const Kernel>> kernels;
  std::map<Device*, std::uint64_t> generations;
};

struct PassOptions {
  std::vector<Device*> devices;  // in priority order; the CPU is added last if absent
  Device* pin = nullptr;         // all nodes must run on it
  bool fuse = true;
  bool fuse_elements = false;  // with `fuse`: element-wise ops into programs
  bool repack = true;
  bool strict_pins = true;  // else the CPU runs what a node's pinned device cannot
  /// Whether the result is checked again, as plans are: it follows from the graph, which always is.
  bool check_result = true;
};

/// How each value of each node lies: views by strides, Repack's output packed, all else contiguous
/// (a view that strides cannot express too: place_and_legalize puts a copy before it).
PerValue<OperandSpec> value_layouts(const Graph& graph);
/// The same for one more node, whose inputs' layouts are there.
void add_layouts(PerValue<OperandSpec>& layouts, const GraphNode& node);

/// Marks dead what no output, update or feed needs. Inputs and states are the graph's signature and
/// stay, used or not.
Graph mark_dead(Graph graph);

/// Joins patterns into fused ops: act(gate)*up; add then rms_norm; linears over one input; bias,
/// rope and write_rows. A pattern is joined if its nodes have one pin, nobody else reads what the
/// fused op does not give, and the device that would run its parts (the first in order that can)
/// has a kernel for the fused op, which needs no more contiguous copies than they do.
Graph fuse(Graph graph, const PassOptions& options);

/// Rewrites ops until each can run somewhere, and says where: of the devices before the CPU, on the
/// first in order that can run it as it is (copies of strided inputs included), else the first that
/// can run its lowered form; else on the CPU. All writes of a state go to one device. A view that
/// strides cannot express becomes a view of a copy. Throws unsupported if a pinned graph (or, with
/// strict pins, node) cannot run on its device, or a node on none, listing every such op with the
/// reason, and the pin to use instead.
PlacedGraph place_and_legalize(Graph graph, const PassOptions& options);

/// Puts a Repack, to be run when the parameter is loaded, behind each parameter whose readers
/// prefer a packed layout: one for each device and layout. Readers on that device read the packed
/// form if their kernels can, the plain one otherwise.
PlacedGraph repack_parameters(PlacedGraph graph);

/// For each node, the input that bounds its rows (see Input::extent): carried through ops whose
/// rows are independent, as is_row_operand says. Operands with different extents give none. For a
/// write they are the rows of what is written; the state's all count.
std::vector<std::string> propagate_extents(const Graph& graph);

/// All of the above in their order.
PlacedGraph prepare_graph(Graph graph, const PassOptions& options);

}  // namespace heddle
