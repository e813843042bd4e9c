// The element-wise functions of float that run hot, vectorised, with the instructions that isa()
// allows. An element's result does not depend on its place or on its neighbours.
#pragma once

#include <cstdint>

#include "heddle/op.h"

namespace heddle::cpu {

using FloatUnary = void (*)(const float* x, float* out, std::int64_t n);
using FloatBinary = void (*)(const float* a, const float* b, float* out, std::int64_t n);

/// `out` may be `x`. Where results are normal numbers: exp, tanh, sigmoid, silu and erf are within
/// 4 ulp of the exact value, gelu within 6; gelu_tanh within 9 down to x = -2, below which its
/// formula magnifies the rounding of its argument. Null for kinds that are not here.
FloatUnary float_unary(UnaryKind kind);

/// add, subtract, multiply, divide, maximum, minimum; NaN in gives NaN out. `out` may be an input.
FloatBinary float_binary(BinaryKind kind);

/// act(gate) * up for the activations of GatedMultiply.
FloatBinary float_gated(UnaryKind activation);

}  // namespace heddle::cpu
