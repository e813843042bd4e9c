// Random numbers from keys.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
