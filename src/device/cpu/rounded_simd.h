// Products with operands rounded to bf16 and multiplied as floats, for levels without instructions
// for bf16: RoundedProducts of products.h.
#pragma once

#include "device/cpu/product_tiles.h"

namespace heddle::cpu::HEDDLE_SIMD {

template <class W>
struct Rounded : FloatTerms {
  using Element = typename W::Element;
  static F32x16 load(const Element* from) { return round_to_bf16(W::load(from)); }
  static F32x16 load_first(const Element* from, std::int64_t n) {
    return round_to_bf16(W::load_first(from, n));
  }
};

std::int64_t rounded_stride(std::int64_t depth) {
  return (depth + kLanes - 1) / kLanes * kLanes;
}

void round_row(const float* x, std::int64_t depth, float* to) {
  std::int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) store16(to + i, round_to_bf16(load16(x + i)));
  if (i < depth) store16(to + i, round_to_bf16(load_first(x + i, depth - i)));
}

const RoundedProducts kRoundedProducts = {
    rounded_stride,
    round_row,
    {panels<Rounded<StoredF32>>, panels<Rounded<StoredF16>>, panels<StoredBf16>},
    {dots<Rounded<StoredF32>>, dots<Rounded<StoredF16>>, dots<StoredBf16>},
};

}  // namespace heddle::cpu::HEDDLE_SIMD
