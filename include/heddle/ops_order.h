// Functions that put in order and search.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
