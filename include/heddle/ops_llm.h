// Functions of language models.
#pragma once

#include "heddle/array.h"

namespace heddle {}  // namespace heddle
