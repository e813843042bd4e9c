// Encoding floats as f16, bf16 or GGUF's block types.
#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle {

/// Encodes `n` floats as `dtype` (f32, f16, bf16 or a block type) into the row_bytes(dtype, n)
/// bytes at `dst`, which may have any alignment. Deterministic. Block scales are searched for the
/// least squared error. They are stored as f16: values beyond the reach of its largest number
/// saturate, and rows of values below about 1e-5 lose precision, down to zeros. Throws
/// invalid_argument for other types, where `n` is not a whole number of blocks, and for a NaN or an
/// infinity in a block type (f16, bf16 and f32 keep them).
void quantize_row(DType dtype, const float* src, void* dst, std::int64_t n);

}  // namespace heddle
