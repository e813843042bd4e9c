// From lazy arrays to graphs.
#pragma once

#include <span>
#include <vector>

#include "heddle/graph.h"

namespace heddle {

struct Captured {
  Graph graph;                  // its outputs and updates are for the caller to fill in
  std::vector<ValueId> values;  // the roots, in order
};

/// Every node that the roots need, in the order in which they were made. Nodes that have their
/// values become constants over them, without a copy where they lie contiguously at the start of
/// host memory. Throws the error of a node that failed.
Captured capture(std::span<const Array> roots);

/// The value of an array that has one, held by the CPU: without a copy as above.
Constant constant_of(const Array& array);

}  // namespace heddle
