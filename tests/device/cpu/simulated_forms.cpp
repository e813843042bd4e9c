// The library's tile kernels with simulated tiles, built for the processors that have real ones but
// for those: with AVX-512 and its BF16.
#define HEDDLE_SIMD simulated
#include "device/cpu/simulated_tiles.h"

#include "device/cpu/bf16_tiles.h"
#include "device/cpu/quant_panel_tiles.h"

namespace heddle::cpu::simulated {

namespace {

struct SimulatedTiles {
  static void configure(const TileConfig& config) { simulated::configure(&config); }
  static void release() { simulated::release(); }
  template <int T>
  static void zero() {
    simulated::zero(T);
  }
  template <int T>
  static void load(const void* from, std::int64_t stride) {
    simulated::load(T, from, stride);
  }
  template <int T>
  static void store(void* to, std::int64_t stride) {
    simulated::store(T, to, stride);
  }
  template <int C, int A, int B>
  static void dot_unsigned() {
    dot_bytes(C, A, B, false);
  }
  template <int C, int A, int B>
  static void dot_signed() {
    dot_bytes(C, A, B, true);
  }
  template <int C, int A, int B>
  static void dot_bf16() {
    simulated::dot_bf16(C, A, B);
  }
};

constexpr QuantPanelLoops kQuantPanelLoops = tiled_panel_loops<SimulatedTiles>();
constexpr RoundedProducts kRoundedProducts = tiled_rounded_products<SimulatedTiles>();

}  // namespace

const QuantPanelLoops* quant_panel_loops() {
  return &kQuantPanelLoops;
}

const RoundedProducts* rounded_products() {
  return &kRoundedProducts;
}

}  // namespace heddle::cpu::simulated
