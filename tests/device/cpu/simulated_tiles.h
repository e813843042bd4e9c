// Matrix tiles in plain C++, as Intel's SDM (volume 2: LDTILECFG, TILELOADD, TDPBUSD, TDPBSSD,
// TDPBF16PS) says what they do, and the forms of products that are made of them.
//
// What the processor would refuse throws std::logic_error.
#pragma once

#include <cstdint>

#include "device/cpu/products.h"
#include "device/cpu/quant.h"

namespace heddle::cpu::simulated {

/// As LDTILECFG reads it.
void configure(const void* config);
void release();
void zero(int tile);
void load(int tile, const void* from, std::int64_t stride);
void store(int tile, void* to, std::int64_t stride);
void dot_bytes(int sums, int a, int b, bool a_is_signed);
void dot_bf16(int sums, int a, int b);

/// Of all threads since the last reset.
struct TileCounts {
  std::int64_t configured, released, products;
};
TileCounts tile_counts();
void reset_tile_counts();

/// Makes the `n`th operation from now on (of any thread, from 1) throw std::runtime_error; 0: none.
void fail_after(std::int64_t n);

/// The library's kernels with these tiles, built with AVX-512 and its BF16: null elsewhere.
const QuantPanelLoops* quant_panel_loops();
const RoundedProducts* rounded_products();

}  // namespace heddle::cpu::simulated
