// Making nodes, for functions on arrays.
#pragma once

#include "array/node.h"

namespace heddle {

/// `apply` for a short list of inputs, without a vector.
Array make_array(Op&& op, Node::Inputs&& inputs);

}  // namespace heddle
