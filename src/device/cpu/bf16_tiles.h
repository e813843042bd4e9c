// Products of bf16 by tiles, for weights in panels of floats: a form of RoundedProducts::panels.
//
// A row's sum is one chain over its depth, 32 terms at a time.
#pragma once

#include "device/cpu/bf16_pairs.h"
#include "device/cpu/tiles.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr std::int64_t kTileTerms = 32;                      // of a tile's row
inline constexpr std::int64_t kTileBlock = 16 * kTileTerms;         // terms made ready together
inline constexpr std::int64_t kTileBlockRows = 16 * kTileRowsMost;  // rows that share them
inline constexpr std::int64_t kTileFloats = kTileRowsMost * kPanel;

/// A block of depth of a group of panels, ready for tiles, and the sums of rows so far.
struct TileScratch {
  alignas(64) float pairs[kGroupPanels][kTileBlock / 2 * kPanel];
  alignas(64) float sums[kTileBlockRows / kTileRowsMost][kGroupPanels][kTileFloats];

  /// `depth` terms from `from` on, and zeros up to a whole tile.
  template <class W>
  void fill(const typename W::Element* from, std::int64_t panel, std::int64_t panels,
            std::int64_t depth) {
    constexpr std::int64_t kStep = W::kTerms * kPanel;
    constexpr std::int64_t kAhead = 4096 / sizeof(typename W::Element);
    const std::int64_t whole = (depth + kTileTerms - 1) / kTileTerms * kTileTerms;
    for (std::int64_t p = 0; p < panels; ++p) {
      const typename W::Element* w = from + p * panel;
      float* to = pairs[p];
      std::int64_t k = 0;
      for (; k + W::kTerms <= depth; k += W::kTerms, w += kStep, to += kPanel) {
        __builtin_prefetch(w + kAhead);
        ReadyPairs::store(to, W::load(w));
      }
      for (; k < whole; k += W::kTerms, to += kPanel) {
        if (k < depth) {
          ReadyPairs::store(to, W::load_part(w));
        } else {
          store16(to, zeros());
        }
      }
    }
  }
};

inline TileConfig bf16_config(std::int64_t rows) {
  TileConfig config;
  for (int tile = 0; tile < 6; ++tile) config.set(tile, rows, kTileRowBytes);  // sums, x
  for (int tile = 6; tile < kTiles; ++tile) config.set(tile, kTileRowsMost, kTileRowBytes);
  return config;
}

/// Some steps of 32 terms of X tiles of rows (at most two) with W panels (at most two).
struct TileSteps {
  const float* x[2];
  std::int64_t x_stride;  // in bytes
  const float* w[2];
  float* sums[2][2];
  std::int64_t steps;
  bool is_first;
};

template <class Tiles, int X, int W>
void sum_steps(const TileSteps& t) {
  constexpr int kX = 4, kW = 6;
  const auto each_sum = [&t](auto f) {
    f.template operator()<0>(t.sums[0][0]);
    if constexpr (W > 1) f.template operator()<1>(t.sums[0][1]);
    if constexpr (X > 1) f.template operator()<2>(t.sums[1][0]);
    if constexpr (X > 1 && W > 1) f.template operator()<3>(t.sums[1][1]);
  };
  each_sum([&t]<int Sum>(const float* from) {
    if (t.is_first) {
      Tiles::template zero<Sum>();
    } else {
      Tiles::template load<Sum>(from, kTileRowBytes);
    }
  });
  for (std::int64_t step = 0; step < t.steps; ++step) {
    const std::int64_t at = step * (kTileTerms / 2), there = step * kTileFloats;
    Tiles::template load<kX>(t.x[0] + at, t.x_stride);
    Tiles::template load<kW>(t.w[0] + there, kTileRowBytes);
    Tiles::template dot_bf16<0, kX, kW>();
    if constexpr (W > 1) Tiles::template load<kW + 1>(t.w[1] + there, kTileRowBytes);
    if constexpr (W > 1) Tiles::template dot_bf16<1, kX, kW + 1>();
    if constexpr (X > 1) Tiles::template load<kX + 1>(t.x[1] + at, t.x_stride);
    if constexpr (X > 1) Tiles::template dot_bf16<2, kX + 1, kW>();
    if constexpr (X > 1 && W > 1) Tiles::template dot_bf16<3, kX + 1, kW + 1>();
  }
  each_sum([]<int Sum>(float* to) { Tiles::template store<Sum>(to, kTileRowBytes); });
}

/// Terms [k, k + depth) of all rows with all panels.
template <class Tiles>
void sum_block_of_tiles(const ProductJob& job, std::int64_t k, std::int64_t depth,
                        TileScratch& scratch) {
  const TileRows rows{job.rows};
  const std::int64_t panels = (job.columns + kPanel - 1) / kPanel;
  const auto x_at = [&](std::int64_t tile) {
    return job.x + rows.begin(tile) * job.x_stride + k / 2;
  };
  for (std::int64_t p = 0; p < panels; p += 2) {
    const std::int64_t p2 = smaller(p + 1, panels - 1);
    for (std::int64_t tile = 0; tile < rows.tiles(); tile += 2) {
      const std::int64_t tile2 = smaller(tile + 1, rows.tiles() - 1);
      const TileSteps steps{{x_at(tile), x_at(tile2)},
                            job.x_stride * static_cast<std::int64_t>(sizeof(float)),
                            {scratch.pairs[p], scratch.pairs[p2]},
                            {{scratch.sums[tile][p], scratch.sums[tile][p2]},
                             {scratch.sums[tile2][p], scratch.sums[tile2][p2]}},
                            (depth + kTileTerms - 1) / kTileTerms,
                            k == 0};
      if (tile2 > tile) {
        p2 > p ? sum_steps<Tiles, 2, 2>(steps) : sum_steps<Tiles, 2, 1>(steps);
      } else {
        p2 > p ? sum_steps<Tiles, 1, 2>(steps) : sum_steps<Tiles, 1, 1>(steps);
      }
    }
  }
}

inline void store_tiles(const ProductJob& job, const TileScratch& scratch) {
  const TileRows rows{job.rows};
  for (std::int64_t tile = 0; tile < rows.tiles(); ++tile) {
    for (std::int64_t r = rows.first_new(tile); r < rows.of_tile(); ++r) {
      float* to = job.out + (rows.begin(tile) + r) * job.out_stride;
      for (std::int64_t column = 0; column < job.columns; column += kPanel) {
        const F32x16 sums = load16(scratch.sums[tile][column / kPanel] + r * kPanel);
        const std::int64_t columns = smaller(job.columns - column, kPanel);
        if (columns == kPanel) {
          store16(to + column, sums);
        } else {
          store_first(to + column, sums, columns);
        }
      }
    }
  }
}

template <class Tiles, class W>
void tiled_panels(const ProductJob& whole) {
  using Element = typename W::Element;
  TileScratch scratch;
  for (std::int64_t row = 0; row < whole.rows; row += kTileBlockRows) {
    ProductJob job = whole;
    job.x += row * job.x_stride;
    job.out += row * job.out_stride;
    job.rows = smaller(whole.rows - row, kTileBlockRows);
    const TileSession<Tiles> session(bf16_config(TileRows{job.rows}.of_tile()));
    const auto* weights = reinterpret_cast<const Element*>(job.weights);
    std::int64_t k = 0;
    do {  // even a sum of no terms must be written
      const std::int64_t depth = smaller(job.depth - k, kTileBlock);
      scratch.fill<W>(weights + k * kPanel, job.depth * kPanel, (job.columns + kPanel - 1) / kPanel,
                      depth);
      sum_block_of_tiles<Tiles>(job, k, depth, scratch);
      k += kTileBlock;
    } while (k < job.depth);
    store_tiles(job, scratch);
  }
}

template <class Tiles>
constexpr RoundedProducts tiled_rounded_products() {
  return {
      bf16_stride,
      round_to_pairs,
      {tiled_panels<Tiles, Pairs<Bf16OfF32>>, tiled_panels<Tiles, Pairs<Bf16OfF16>>,
       tiled_panels<Tiles, Pairs<Bf16Itself>>},
      {pair_dots<Bf16OfF32>, pair_dots<Bf16OfF16>, pair_dots<Bf16Itself>},
  };
}

}  // namespace heddle::cpu::HEDDLE_SIMD
