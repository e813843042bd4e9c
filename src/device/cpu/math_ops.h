// The element-wise functions of float that run hot, vectorised, with the instructions that isa()
// allows. An element's result does not depend on its place or on its neighbours.
#pragma once

#include <cstdint>

#include "device/cpu/streaming.h"
#include "heddle/half.h"
#include "heddle/op.h"

namespace heddle::cpu {

template <class T>
using UnaryMap = void (*)(const T* x, T* out, std::int64_t n);
template <class T>
using BinaryMap = void (*)(const T* a, const T* b, T* out, std::int64_t n);
template <class T>
using CompareMap = void (*)(const T* a, const T* b, bool* out, std::int64_t n);
using FloatUnary = UnaryMap<float>;
using FloatBinary = BinaryMap<float>;

/// `out` may be `x`. Where results are normal numbers: exp, tanh, sigmoid, silu and erf are within
/// 4 ulp of the exact value, gelu within 6; gelu_tanh within 9 down to x = -2, below which its
/// formula magnifies the rounding of its argument. Null for kinds that are not here.
FloatUnary float_unary(UnaryKind kind, Stores stores = Stores::cached);

/// add, subtract, multiply, divide, maximum, minimum; NaN in gives NaN out. `out` may be an input.
FloatBinary float_binary(BinaryKind kind, Stores stores = Stores::cached);

/// act(gate) * up for the activations of GatedMultiply.
FloatBinary float_gated(UnaryKind activation, Stores stores = Stores::cached);

/// NaN is not equal to anything. Null where isa() has no vectors.
CompareMap<float> float_compare(CompareKind kind);

// The same on halves: widened, computed in float and rounded, in one pass over memory. Null for
// f16 where isa() has no instructions that convert it, too.
UnaryMap<f16> f16_unary(UnaryKind kind);
BinaryMap<f16> f16_binary(BinaryKind kind);
CompareMap<f16> f16_compare(CompareKind kind);
UnaryMap<bf16> bf16_unary(UnaryKind kind);
BinaryMap<bf16> bf16_binary(BinaryKind kind);
CompareMap<bf16> bf16_compare(CompareKind kind);

}  // namespace heddle::cpu
