// Functions that read and write by indices.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
