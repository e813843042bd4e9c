// What einsum computes, and in which order.
#pragma once

#include <string>
#include <vector>

#include "heddle/array.h"

namespace heddle {

/// A letter of an axis; axes that an ellipsis stands for have characters that are none.
using Letters = std::string;

/// The product of some operands, at `positions` of the list, with the letters that are kept.
struct EinsumStep {
  std::vector<int> positions;
  std::vector<Letters> inputs;
  Letters output;
};

/// All of it, with counts of operations and of the letters that a step walks at most.
struct EinsumPlan {
  std::vector<EinsumStep> steps;
  double naive_cost = 0, cost = 0;
  std::size_t naive_scaling = 0, scaling = 0;
};

/// Throws invalid_argument, in the name of `function`, where subscripts and operands do not fit.
EinsumPlan plan_einsum(const char* function, const std::string& subscripts,
                       const std::vector<Array>& operands);

}  // namespace heddle
