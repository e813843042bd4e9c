// Products of all kinds.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
