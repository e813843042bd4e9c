// Which values share memory because one overwrites another: rule 2's chains of versions.
#pragma once

#include "graph/values.h"

namespace heddle {

/// A value's version is the value whose memory it looks at: what a view is a view of; for a fed
/// input the state it reads; else the value itself. Views count as views although some must copy.
struct Versions {
  explicit Versions(const Graph& graph);

  PerValue<ValueId> version;
  PerValue<NodeId> writer;  // of a version: the first live node that overwrites it, or kNoNode
  PerValue<NodeId> state;   // of a version: the StateRef at the start of its chain, or kNoNode

  NodeId overwritten_by(ValueId value) const { return writer[version[value]]; }
};

/// Whether a node may write over the value: a state, a write's output or what a kernel made.
bool is_writable(const Graph& graph, ValueId value);

/// Throws invalid_argument naming the state and both nodes if two writes take one version of a
/// state.
void require_single_writes(const Graph& graph, const Versions& versions);

/// Copies, before the write, every old version that is read after it (or handed out as an output),
/// and what a write may not write over. Afterwards each version is read only before it is
/// overwritten. Throws as require_single_writes.
Graph keep_old_versions(Graph graph);

}  // namespace heddle
