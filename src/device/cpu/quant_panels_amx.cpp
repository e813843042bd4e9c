#define HEDDLE_SIMD amx
#include "device/cpu/quant_panel_tiles.h"
#include "device/cpu/tiles_amx.h"

namespace heddle::cpu::HEDDLE_SIMD {

const QuantPanelLoops kQuantPanelLoops = tiled_panel_loops<AmxTiles>();

}  // namespace heddle::cpu::HEDDLE_SIMD
