// What arrays were made from, as far as that is known.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "array/node.h"

namespace heddle {

/// Adds the inputs of a node that is still to run, or was run by what is being traced; false, once
/// it is done. A node that another thread is running counts as done as soon as it is. Throws the
/// error of a node that failed.
bool follow_inputs(const Node& node, std::vector<Array>& inputs);

struct Reached {
  Ref<Node> node;
  std::vector<Array> inputs;
  bool done = false;  // its inputs are gone, or were not asked for
};

/// Every node that the roots reach without passing through one that is done, or for which `stop`
/// holds, in the order in which they were built: sources come before consumers. Throws the error of
/// a node that failed.
std::vector<Reached> reach(std::span<const Array> roots,
                           const std::function<bool(const Node&)>& stop = nullptr);

}  // namespace heddle
