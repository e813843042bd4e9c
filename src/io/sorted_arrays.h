// Arrays in the order in which files hold them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heddle/io.h"

namespace heddle {

using SortedArrays = std::vector<std::pair<const std::string*, const Array*>>;

/// By name, so that the same arrays give the same bytes.
SortedArrays sorted_arrays(const ArrayMap& arrays);

}  // namespace heddle
