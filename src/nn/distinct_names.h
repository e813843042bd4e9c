#pragma once

#include "heddle/nn_tree.h"

namespace heddle::nn {

/// Throws invalid_argument, naming the function, where two parameters have one name.
void require_distinct_names(const char* function, const std::vector<Parameter>& parameters);

}  // namespace heddle::nn
