// Sums by index letters.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
