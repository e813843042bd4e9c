// More vectorised functions of float, for processors that multiply and add in one instruction. What
// lies outside the range where a formula is good (NaN, infinities, poles, huge arguments) is
// computed by the C library, element by element. An element's result does not depend on its place
// or on its neighbours.
#pragma once

#include "device/cpu/math_ops.h"

namespace heddle::cpu {

/// Within 4 ulp of the exact value where that is a normal number. `out` may be `x`. Null for kinds
/// that are not here.
FloatUnary wide_unary(UnaryKind kind, Stores stores = Stores::cached);

/// The same; logaddexp is within 3e-7 where its logarithms cancel.
FloatBinary wide_binary(BinaryKind kind, Stores stores = Stores::cached);

}  // namespace heddle::cpu
