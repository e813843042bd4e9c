// Half types to and from float, whole arrays at a time.
#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

using WidenFunction = void (*)(const void* from, float* to, std::int64_t n);
using NarrowFunction = void (*)(const float* from, void* to, std::int64_t n);

/// From f16, bf16 or f32 to float, exactly, with the instructions that isa() allows. Null for
/// others.
WidenFunction widen_function(DType from);
/// Rounds to nearest even; NaN stays NaN. f32 copies. Null for other types.
NarrowFunction narrow_function(DType to);

}  // namespace heddle::cpu
