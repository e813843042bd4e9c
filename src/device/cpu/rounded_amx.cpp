#define HEDDLE_SIMD amx
#include "device/cpu/bf16_tiles.h"
#include "device/cpu/tiles_amx.h"

namespace heddle::cpu::HEDDLE_SIMD {

const RoundedProducts kRoundedProducts = tiled_rounded_products<AmxTiles>();

}  // namespace heddle::cpu::HEDDLE_SIMD
