#define HEDDLE_SIMD avx512_bf16
#include "device/cpu/bf16_pairs.h"

namespace heddle::cpu::HEDDLE_SIMD {

const RoundedProducts kRoundedProducts = {
    bf16_stride,
    round_to_pairs,
    {panels<Pairs<Bf16OfF32>>, panels<Pairs<Bf16OfF16>>, panels<Pairs<Bf16Itself>>},
    {pair_dots<Bf16OfF32>, pair_dots<Bf16OfF16>, pair_dots<Bf16Itself>},
};

}  // namespace heddle::cpu::HEDDLE_SIMD
