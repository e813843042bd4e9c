// More vectorised functions of float, for processors that multiply and add in one instruction. What
// lies outside the range where a formula is good (NaN, infinities, poles, huge arguments) is
// computed by the C library, element by element. An element's result does not depend on its place
// or on its neighbours.
#pragma once

#include "device/cpu/math_ops.h"

namespace heddle::cpu {

/// Within 4 ulp of the exact value where that is a normal number. `out` may be `x`. Null for kinds
/// that are not here.
FloatUnary wide_unary(UnaryKind kind);

/// The same; logaddexp is within 3e-7 where its logarithms cancel.
FloatBinary wide_binary(BinaryKind kind);

/// One block (n <= kBlock) of a scan that adds up e^x: `sum` is the log of the sum so far. The
/// results go to `out`, if that is not null. Within 2e-6 of the exact value, absolutely, or 1 ulp.
/// False, and nothing is done, where the block's numbers are too far apart for that, or not finite.
bool scan_log_sums(const float* x, std::int64_t n, bool reverse, bool exclusive, double& sum,
                   float* out);

}  // namespace heddle::cpu
