// Linear algebra.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
