// Functions that make arrays and change their shape.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
