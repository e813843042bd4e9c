// Arrays exchanged without a copy.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
