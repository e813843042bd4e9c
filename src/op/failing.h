// Which ops may fail on what their operands hold.
#pragma once

#include "heddle/op.h"

namespace heddle {

/// Whether a kernel of the op, once it is prepared, gives results whatever its operands hold.
/// Others check what they read: indices, say, or whether a matrix has an inverse.
bool always_succeeds(const Op& op) noexcept;

}  // namespace heddle
