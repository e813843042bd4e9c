// Functions on each element.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
