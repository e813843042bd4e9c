// MLX's quantisation by groups.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
