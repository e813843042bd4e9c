// Encoding one block. `block` must be zeros; `x` holds its elements, which must be finite.
#pragma once

#include "tensor/blocks.h"

namespace heddle::quantize_detail {

void encode_block(const float* x, BlockQ4_0& block);
void encode_block(const float* x, BlockQ4_1& block);
void encode_block(const float* x, BlockQ5_0& block);
void encode_block(const float* x, BlockQ5_1& block);
void encode_block(const float* x, BlockQ8_0& block);
void encode_block(const float* x, BlockQ2K& block);
void encode_block(const float* x, BlockQ3K& block);
void encode_block(const float* x, BlockQ4K& block);
void encode_block(const float* x, BlockQ5K& block);
void encode_block(const float* x, BlockQ6K& block);
void encode_block(const float* x, BlockIq4Nl& block);
void encode_block(const float* x, BlockIq4Xs& block);

}  // namespace heddle::quantize_detail
