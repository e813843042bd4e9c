// Products of many rows with weights in panels of blocks, by tiles of bytes.
//
// An activation's 16-bit code is 256 * high + low, where high is signed and low is not: the bytes
// of which its memory is made. A part of a panel becomes two tiles, in which the weights' codes
// meet the low bytes, or the high ones, and zeros meet the others. So rows of codes are tiles as
// they lie, and 256 * high sums + low sums are the integers that every other form sums.
#pragma once

#include "device/cpu/quant_panel_unpack.h"
#include "device/cpu/tiles.h"

namespace heddle::cpu::HEDDLE_SIMD {

/// 256 elements of a panel.
struct TilePanel {
  alignas(64) std::int16_t low[kParts][kPairs][2 * kPanelBlocks];
  alignas(64) std::int16_t high[kParts][kPairs][2 * kPanelBlocks];
  alignas(64) float scales[2 * kParts][kPanelBlocks];
  alignas(64) float mins[2 * kParts][kPanelBlocks];

  void put(int part, int pair, I16x32 codes) {
    store_codes(low[part][pair], {_mm512_and_si512(codes.v, _mm512_set1_epi16(0xff))});
    store_codes(high[part][pair], {_mm512_slli_epi16(codes.v, 8)});
  }
};

/// Sums of products of 16 rows with 16 columns, by low and high bytes.
struct ByteSums {
  alignas(64) std::int32_t low[kTileRowsMost][kPanelBlocks];
  alignas(64) std::int32_t high[kTileRowsMost][kPanelBlocks];

  I32x16 whole(std::int64_t row) const {
    return {_mm512_add_epi32(_mm512_load_si512(low[row]),
                             _mm512_slli_epi32(_mm512_load_si512(high[row]), 8))};
  }
};

/// A tile of rows against an unpacked panel.
struct PanelTile {
  const RoundedBlock* x;  // of the first row, at the panel's elements
  std::int64_t x_stride, rows;
  const TilePanel& panel;
  int parts;
};

inline constexpr int kTileX = 4, kTileLow = 5, kTileHigh = 6;  // sums are 0 to 3

template <int Groups>
inline TileConfig byte_config(std::int64_t rows) {
  constexpr std::int64_t kPairsOfGroup = kPairs / Groups;
  TileConfig config;
  for (int sums = 0; sums < kTileX; ++sums) config.set(sums, rows, kTileRowBytes);
  config.set(kTileX, rows, kPairsOfGroup * 4);
  config.set(kTileLow, kPairsOfGroup, kTileRowBytes);
  config.set(kTileHigh, kPairsOfGroup, kTileRowBytes);
  return config;
}

/// The sums of a part, or of half of one, in one of two pairs of tiles.
template <class Tiles, int Groups, int Set>
inline void sum_bytes(const PanelTile& t, int index, ByteSums& to) {
  const int part = index / Groups, pair = index % Groups * (kPairs / Groups);
  constexpr int kLow = 2 * Set, kHigh = 2 * Set + 1;
  Tiles::template zero<kLow>();
  Tiles::template zero<kHigh>();
  Tiles::template load<kTileX>(t.x->codes + part * kPart + 2 * pair,
                               t.x_stride * static_cast<std::int64_t>(sizeof(RoundedBlock)));
  Tiles::template load<kTileLow>(t.panel.low[part][pair], kTileRowBytes);
  Tiles::template load<kTileHigh>(t.panel.high[part][pair], kTileRowBytes);
  Tiles::template dot_unsigned<kLow, kTileX, kTileLow>();
  Tiles::template dot_signed<kHigh, kTileX, kTileHigh>();
  Tiles::template store<kLow>(to.low, kTileRowBytes);
  Tiles::template store<kHigh>(to.high, kTileRowBytes);
}

using RowSums = F32x16[kTileRowsMost];

template <int Groups, bool HasMins>
inline void join_rows(const PanelTile& t, int index, const ByteSums& from, RowSums& sums) {
  const F32x16 scale = load16(t.panel.scales[index]);
  const F32x16 min = HasMins ? load16(t.panel.mins[index]) : scale;
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kTileRowsMost; ++r) {
    const RoundedBlock& x = t.x[smaller(r, t.rows - 1) * t.x_stride];
    const float codes = HasMins ? sum_of_codes<Groups>(x, index / Groups, index % Groups) : 0.0f;
    sums[r] = join<HasMins>(sums[r], from.whole(r), scale, min, codes);
  }
}

/// Sums over 256 elements. What tiles sum is joined while they sum the next.
template <class Tiles, int Groups, bool HasMins>
inline void sum_tile_of_panel(const PanelTile& t, ByteSums (&bytes)[2], RowSums& sums) {
  const int count = t.parts * Groups;
  sum_bytes<Tiles, Groups, 0>(t, 0, bytes[0]);
  for (int i = 0; i < count; i += 2) {
    if (i + 1 < count) sum_bytes<Tiles, Groups, 1>(t, i + 1, bytes[1]);
    join_rows<Groups, HasMins>(t, i, bytes[0], sums);
    if (i + 1 == count) break;
    if (i + 2 < count) sum_bytes<Tiles, Groups, 0>(t, i + 2, bytes[0]);
    join_rows<Groups, HasMins>(t, i + 1, bytes[1], sums);
  }
}

/// All rows against one panel's 256 elements, the `at`th of its blocks.
template <class Tiles, int Groups, bool HasMins>
void multiply_panel(const QuantJob& job, std::int64_t at, std::int64_t column,
                    const TilePanel& panel, int parts, ByteSums (&bytes)[2]) {
  const TileRows rows{job.rows};
  const std::int64_t blocks = rounded_blocks(job.depth), columns = job.columns - column;
  for (std::int64_t tile = 0; tile < rows.tiles(); ++tile) {
    const RoundedBlock* x = job.x + rows.begin(tile) * blocks + at;
    RowSums sums;
#pragma GCC unroll 16
    for (F32x16& sum : sums) sum = zeros();
    sum_tile_of_panel<Tiles, Groups, HasMins>({x, blocks, rows.of_tile(), panel, parts}, bytes,
                                              sums);
    for (std::int64_t r = rows.first_new(tile); r < rows.of_tile(); ++r) {
      float* to = job.out + (rows.begin(tile) + r) * job.out_stride + column;
      const F32x16 old = at == 0                    ? zeros()
                         : columns >= kPanelColumns ? load16(to)
                                                    : load_first(to, columns);
      store_columns(to, columns, multiply_add(sums[r], broadcast(x[r * blocks].scale), old));
    }
  }
}

template <class Tiles, class T>
void tiled_rows(const QuantJob& job) {
  const TileSession<Tiles> session(byte_config<T::kGroups>(TileRows{job.rows}.of_tile()));
  const std::byte* weights = job.weights;
  TilePanel panel;
  ByteSums bytes[2] = {};  // rows that a tile lacks stay zeros
  for (std::int64_t column = 0; column < job.columns; column += kPanelColumns) {
    for (std::int64_t at = 0; at < rounded_blocks(job.depth); ++at) {
      const auto parts = static_cast<int>(smaller(kParts, job.depth / kPart - at * kParts));
      unpack<T>(weights + bytes_of_panel<T>(at * kRoundedElements), parts, panel);
      multiply_panel<Tiles, T::kGroups, T::kHasMins>(job, at, column, panel, parts, bytes);
    }
    weights += bytes_of_panel<T>(job.depth);
  }
}

// ---- All

/// Few rows leave most of a tile empty: the next form's loops take codes straight from panels.
inline constexpr std::int64_t kRowsWithoutTiles = 2 * kFewRows;

template <class Tiles, class T, int Index>
void tiled_products(const QuantJob& job) {
  if (job.depth == 0 || job.rows <= kRowsWithoutTiles) {
    return avx512::kQuantPanelLoops.products[Index](job);
  }
  tiled_rows<Tiles, T>(job);
}

template <class Tiles>
constexpr QuantPanelLoops tiled_panel_loops() {
  return {{
      tiled_products<Tiles, PanelQ40, 0>,
      tiled_products<Tiles, PanelQ41, 1>,
      tiled_products<Tiles, PanelQ50, 2>,
      tiled_products<Tiles, PanelQ51, 3>,
      tiled_products<Tiles, PanelQ80, 4>,
      tiled_products<Tiles, PanelQ2K, 5>,
      tiled_products<Tiles, PanelQ3K, 6>,
      tiled_products<Tiles, PanelQ4K, 7>,
      tiled_products<Tiles, PanelQ5K, 8>,
      tiled_products<Tiles, PanelQ6K, 9>,
      tiled_products<Tiles, PanelIq4Nl, 10>,
      tiled_products<Tiles, PanelIq4Xs, 11>,
  }};
}

}  // namespace heddle::cpu::HEDDLE_SIMD
