// Element-wise kernels: a function on contiguous blocks, and the loop that feeds it.
#pragma once

#include <cstdint>
#include <functional>

#include "device/cpu/kernel.h"
#include "heddle/op.h"

namespace heddle::cpu {

/// Computes n elements from contiguous operands of the dtype it was chosen for. `out` may be one of
/// them.
using BlockFunction = std::function<void(const void* const* in, void* out, std::int64_t n)>;

// For operands of `dtype` (f32 where they are f16 or bf16). Empty where the kind has no meaning for
// the dtype, or gives something else than `out`.
BlockFunction unary_block(UnaryKind kind, DType dtype, DType out);
BlockFunction binary_block(BinaryKind kind, DType dtype);
BlockFunction compare_block(CompareKind kind, DType dtype);
/// Chooses by a condition of bools between items of that many bytes.
BlockFunction select_block(std::size_t item);
/// From values of `from` (float for half types) to `to` (the floats that a half type is narrowed
/// from), as cast converts.
BlockFunction conversion_block(DType from, DType to);

// The same of f32 that store past the caches, as streaming.h says: empty where there are none.
BlockFunction streamed_unary_block(UnaryKind kind);
BlockFunction streamed_binary_block(BinaryKind kind);

/// The kernel that applies `function` to the broadcast inputs (at most three, strided, plain);
/// `streamed` computes the same.
Prepared make_elementwise(const PrepareArgs& args, BlockFunction function,
                          BlockFunction streamed = {});

}  // namespace heddle::cpu
