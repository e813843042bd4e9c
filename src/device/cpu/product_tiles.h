// Products of floats with weights in panels and row by row, for one level of instructions: what
// products_simd.h and the rounded products are made of.
#pragma once

#include "device/cpu/products.h"
#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

// ---- Tiles: R rows by P panels of sums, held in registers
//
// W says what a step is: one term of x and of w, or a pair of them.

/// What the next tiles will read, fetched a little with each tile: asked for all at once, it would
/// be waited for.
struct Upcoming {
  const std::byte* from = nullptr;
  std::int64_t panel_bytes = 0, panels = 0, bytes = 0;  // `bytes` of each panel

  /// What is due once `done` of `all` rows are computed, after what was due before.
  void fetch(std::int64_t before, std::int64_t done, std::int64_t all) const {
    constexpr std::int64_t kLine = 64;
    constexpr int kSecondLevel = 2;
    const std::int64_t lines = bytes / kLine;
    for (std::int64_t line = lines * before / all; line < lines * done / all; ++line) {
      for (std::int64_t p = 0; p < panels; ++p) {
        __builtin_prefetch(from + p * panel_bytes + line * kLine, 0, kSecondLevel);
      }
    }
  }
};

template <class W>
struct Tile {
  const float* x;  // one a step: a float, or the bits of a pair
  std::int64_t x_stride;
  const typename W::Element* w;
  std::int64_t step, panel;
  std::int64_t steps;
  std::int64_t columns;
  float* out;
  std::int64_t out_stride;
  const float* scales;
  bool from_memory = false;  // weights read for the first time
  Upcoming upcoming = {};
  const float* old = nullptr;  // see TileJob
  std::int64_t old_stride = 0;
  std::int64_t x_step = 1;  // from one step's float to the next one's
};

/// Sums that a tile's are added to, times `scales` unless that is null.
struct OldSums {
  const float* at;
  std::int64_t stride;
  const float* scales;
  bool plain;  // all scales are one
};

/// The same for columns of which the last may be missing.
template <int R, int P>
inline void store_part(const F32x16 (&sums)[R][P], float* out, std::int64_t out_stride,
                       std::int64_t columns, const OldSums& old) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const float* from = old.at + r * old.stride + p * kPanel;
      const std::int64_t n = larger(smaller(columns - p * kPanel, kPanel), 0);
      F32x16 sum = sums[r][p];
      if (old.scales) sum = multiply_add(load_first(from, n), broadcast(old.scales[r]), sum);
      store_first(out + r * out_stride + p * kPanel, sum, n);
    }
  }
}

template <int R, int P, class Join>
inline void store_whole(const F32x16 (&sums)[R][P], float* out, std::int64_t out_stride,
                        const OldSums& old, Join join) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      store16(out + r * out_stride + p * kPanel,
              join(old.at + r * old.stride + p * kPanel, r, sums[r][p]));
    }
  }
}

template <int R, int P>
inline void store_sums(const F32x16 (&sums)[R][P], float* out, std::int64_t out_stride,
                       std::int64_t columns, const OldSums& old) {
  if (columns < P * kPanel) return store_part<R, P>(sums, out, out_stride, columns, old);
  if (!old.scales) {
    store_whole<R, P>(sums, out, out_stride, old,
                      [](const float*, int, F32x16 sum) { return sum; });
  } else if (old.plain) {  // by units that products may not need
    store_whole<R, P>(sums, out, out_stride, old,
                      [](const float* from, int, F32x16 sum) { return add(load16(from), sum); });
  } else {
    store_whole<R, P>(sums, out, out_stride, old, [&old](const float* from, int r, F32x16 sum) {
      return multiply_add(load16(from), broadcast(old.scales[r]), sum);
    });
  }
}

template <class W, int R, int P>
void sum_tile(const Tile<W>& t, std::int64_t row, std::int64_t first_panel) {
  // On each panel's stream, into the second level of caches: see quant_simd.h.
  constexpr std::int64_t kAhead = 2048 / sizeof(typename W::Element), kLocality = 2;
  F32x16 sums[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sums[r][p] = zeros();
  }
  const float* x = t.x + row * t.x_stride;
  const typename W::Element* w = t.w + first_panel * t.panel;
  for (std::int64_t k = 0; k < t.steps; ++k, w += t.step, x += t.x_step) {
    typename W::Vector weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      weights[p] = W::load(w + p * t.panel);
      if (t.from_memory) __builtin_prefetch(w + p * t.panel + kAhead, 0, kLocality);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename W::Vector value = W::broadcast(x + r * t.x_stride);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sums[r][p] = W::multiply_add(value, weights[p], sums[r][p]);
    }
  }
  const float* old = t.old ? t.old : t.out;
  const std::int64_t old_stride = t.old ? t.old_stride : t.out_stride;
  store_sums<R, P>(sums, t.out + row * t.out_stride + first_panel * kPanel, t.out_stride,
                   t.columns - first_panel * kPanel,
                   {old + row * old_stride + first_panel * kPanel, old_stride,
                    t.scales ? t.scales + row : nullptr, t.scales == kOnes});
}

template <class W, int R>
void sum_rows(const Tile<W>& t, std::int64_t row) {
  constexpr int kPanels = tile_panels(R);
  const std::int64_t panels = (t.columns + kPanel - 1) / kPanel;
  std::int64_t p = 0;
  for (; p + kPanels <= panels; p += kPanels) sum_tile<W, R, kPanels>(t, row, p);
  for (; p < panels; ++p) sum_tile<W, R, 1>(t, row, p);
}

template <class W>
void sum_rows(const Tile<W>& t, std::int64_t row, std::int64_t count) {
  static_assert(kTileRows <= 6);
  switch (count) {
    case 1:
      return sum_rows<W, 1>(t, row);
    case 2:
      return sum_rows<W, 2>(t, row);
    case 3:
      if constexpr (kTileRows >= 3) return sum_rows<W, 3>(t, row);
      break;
    case 4:
      if constexpr (kTileRows >= 4) return sum_rows<W, 4>(t, row);
      break;
    case 5:
      if constexpr (kTileRows >= 5) return sum_rows<W, 5>(t, row);
      break;
    case 6:
      if constexpr (kTileRows >= 6) return sum_rows<W, 6>(t, row);
      break;
  }
}

/// All rows, in tiles of sizes as equal as can be.
template <class W>
void sum_all_rows(Tile<W> t, std::int64_t rows) {
  std::int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (std::int64_t row = 0; tiles > 0; --tiles) {
    const std::int64_t count = (rows - row + tiles - 1) / tiles;
    t.upcoming.fetch(row, row + count, rows);
    sum_rows(t, row, count);
    row += count;
    t.from_memory = false;
  }
}

/// Of operands that lie as W has them ready.
template <class W>
void sum_tile_job(const TileJob& job) {
  sum_all_rows<W>({.x = job.x,
                   .x_stride = job.x_stride,
                   .w = job.w,
                   .step = job.step,
                   .panel = job.panel,
                   .steps = job.depth,
                   .columns = job.columns,
                   .out = job.out,
                   .out_stride = job.out_stride,
                   .scales = job.scales,
                   .old = job.old,
                   .old_stride = job.old_stride,
                   .x_step = job.x_step},
                  job.rows);
}

// ---- Panels

/// One block of depth of a group of panels, ready to be multiplied, so that many rows share the
/// conversion.
struct ReadyBlock {
  alignas(64) float values[kGroupPanels][kDepthBlock * kPanel];

  /// `depth` terms from `from` on; zeros where the last step is not full.
  template <class W>
  void fill(const typename W::Element* from, std::int64_t panel, std::int64_t panels,
            std::int64_t depth) {
    constexpr std::int64_t kStep = W::kTerms * kPanel;
    for (std::int64_t p = 0; p < panels; ++p) {
      const typename W::Element* w = from + p * panel;
      float* to = values[p];
      std::int64_t k = 0;
      for (; k + W::kTerms <= depth; k += W::kTerms, w += kStep, to += kPanel) {
        W::Ready::store(to, W::load(w));
      }
      if constexpr (W::kTerms > 1) {
        if (k < depth) W::Ready::store(to, W::load_part(w));
      }
    }
  }
};

// Up to two tiles' rows, making ready twice is quicker than storing what was made.
inline constexpr std::int64_t kRowsBeforeSharing = 2 * kTileRows;

template <class W>
void panels_block(const ProductJob& job, std::int64_t begin, std::int64_t depth,
                  ReadyBlock& shared) {
  using Element = typename W::Element;
  const auto* w = reinterpret_cast<const Element*>(job.weights) + begin * kPanel;
  const float* x = job.x + begin / W::kTerms;
  const std::int64_t panel = job.depth * kPanel, panels = (job.columns + kPanel - 1) / kPanel;
  const float* scales = begin > 0 ? kOnes : nullptr;
  const bool whole_steps = depth % W::kTerms == 0;
  if (whole_steps && (W::kIsReady || job.rows <= kRowsBeforeSharing)) {
    return sum_all_rows<W>({x, job.x_stride, w, W::kTerms * kPanel, panel, depth / W::kTerms,
                            job.columns, job.out, job.out_stride, scales, true},
                           job.rows);
  }
  shared.fill<W>(w, panel, panels, depth);
  // Then comes this group's next block, or the first one of the group that lies behind it.
  const Element* next = begin + depth < job.depth ? w + depth * kPanel
                                                  : w + (kGroupPanels * job.depth - begin) * kPanel;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
  sum_all_rows<typename W::Ready>(
      {x,
       job.x_stride,
       shared.values[0],
       kPanel,
       kDepthBlock * kPanel,
       (depth + W::kTerms - 1) / W::kTerms,
       job.columns,
       job.out,
       job.out_stride,
       scales,
       false,
       {reinterpret_cast<const std::byte*>(next), panel * kBytes, panels, depth * kPanel * kBytes}},
      job.rows);
}

template <class W>
void panels(const ProductJob& whole) {
  constexpr std::int64_t kBlock = kDepthBlock * W::kTerms;
  ReadyBlock shared;
  for (std::int64_t row = 0; row < whole.rows; row += kMostPanelRows) {
    ProductJob job = whole;
    job.x += row * job.x_stride;
    job.out += row * job.out_stride;
    job.rows = smaller(whole.rows - row, kMostPanelRows);
    // Even a sum of no terms must be written.
    std::int64_t k = 0;
    do {
      panels_block<W>(job, k, smaller(job.depth - k, kBlock), shared);
      k += kBlock;
    } while (k < job.depth);
  }
}

// ---- The same where making ready costs next to nothing: weights stay as they are
//
// A tile's rows go on along the depth, block after block, so that their sums stay in the first
// level of caches and both operands are read as they lie. Weights are read again by the next tile:
// so many terms of them stay in the second level, and leave room for those that are fetched
// meanwhile.
inline constexpr std::int64_t kTermsOfTiles = 8 * kDepthBlock;

/// Some rows and terms of a group of columns.
template <class W>
struct DepthTile {
  const float* x;
  std::int64_t x_stride;
  const typename W::Element* w;
  std::int64_t panel, depth, columns;
  float* out;
  std::int64_t out_stride;
  bool joins;  // sums are added to what `out` holds
  Upcoming upcoming;
  std::int64_t blocks_before, all_blocks;  // of kDepthBlock terms of a tile
};

template <class W, int R, int P>
[[gnu::always_inline]] inline void add_step(const float* x, std::int64_t x_stride,
                                            const typename W::Element* w, std::int64_t panel,
                                            F32x16 (&sums)[R][P]) {
  F32x16 weights[P];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) weights[p] = W::load(w + p * panel);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const F32x16 value = broadcast(x[r * x_stride]);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sums[r][p] = multiply_add(value, weights[p], sums[r][p]);
  }
}

template <class W, int R, int P>
void sum_along_depth(const DepthTile<W>& t, std::int64_t first_panel) {
  // From the second level of caches into the first: a line of weights has two terms, of x sixteen.
  constexpr std::int64_t kLineOfX = 16, kXAhead = 64, kWeightsAhead = 512;
  const std::int64_t x_stride = t.x_stride, panel = t.panel;
  const float* x = t.x;
  const typename W::Element* w = t.w + first_panel * panel;
  float* out = t.out + first_panel * kPanel;
  for (std::int64_t k = 0; k < t.depth; k += kDepthBlock) {
    F32x16 sums[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sums[r][p] = zeros();
    }
    const std::int64_t steps = smaller(t.depth - k, kDepthBlock);
    const std::int64_t block = t.blocks_before + k / kDepthBlock;
    t.upcoming.fetch(block, block + 1, t.all_blocks);
    std::int64_t step = 0;
    for (; step + kLineOfX <= steps; step += kLineOfX) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) __builtin_prefetch(x + r * x_stride + kXAhead);
      for (std::int64_t i = 0; i < kLineOfX; i += 2, x += 2, w += 2 * kPanel) {
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) __builtin_prefetch(w + p * panel + kWeightsAhead);
        add_step<W, R, P>(x, x_stride, w, panel, sums);
        add_step<W, R, P>(x + 1, x_stride, w + kPanel, panel, sums);
      }
    }
    for (; step < steps; ++step, ++x, w += kPanel) {
      add_step<W, R, P>(x, x_stride, w, panel, sums);
    }
    const bool joins = t.joins || k > 0;
    store_sums<R, P>(sums, out, t.out_stride, t.columns - first_panel * kPanel,
                     {out, t.out_stride, joins ? kOnes : nullptr, true});
  }
}

template <class W, int R>
void rows_along_depth(const DepthTile<W>& t) {
  std::int64_t p = 0;
  const std::int64_t panels = (t.columns + kPanel - 1) / kPanel;
  if (panels == kGroupPanels) return sum_along_depth<W, R, kGroupPanels>(t, 0);
  for (; p < panels; ++p) sum_along_depth<W, R, 1>(t, p);
}

template <class W, int R = kTileRows>
void rows_along_depth(const DepthTile<W>& t, std::int64_t rows) {
  if (rows == R) return rows_along_depth<W, R>(t);
  if constexpr (R > 1) rows_along_depth<W, R - 1>(t, rows);
}

template <class W>
void panels_along_depth(const ProductJob& job) {
  static_assert(W::kTerms == 1);
  using Element = typename W::Element;
  if (job.rows <= kRowsBeforeSharing || job.depth == 0) return panels<W>(job);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
  const std::int64_t panel = job.depth * kPanel, panels = (job.columns + kPanel - 1) / kPanel;
  for (std::int64_t k = 0; k < job.depth; k += kTermsOfTiles) {
    const std::int64_t depth = smaller(job.depth - k, kTermsOfTiles);
    const auto* w = reinterpret_cast<const Element*>(job.weights) + k * kPanel;
    const bool is_last = k + depth == job.depth;
    const Element* next =
        is_last ? w + (kGroupPanels * job.depth - k) * kPanel : w + depth * kPanel;
    const std::int64_t left = is_last ? job.depth : job.depth - k - depth;
    const Upcoming upcoming{reinterpret_cast<const std::byte*>(next), panel * kBytes, panels,
                            smaller(left, kTermsOfTiles) * kPanel * kBytes};
    const std::int64_t tiles = (job.rows + kTileRows - 1) / kTileRows;
    const std::int64_t blocks = (depth + kDepthBlock - 1) / kDepthBlock;
    std::int64_t row = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t rows = (job.rows - row + tiles - tile - 1) / (tiles - tile);
      rows_along_depth<W>({.x = job.x + row * job.x_stride + k,
                           .x_stride = job.x_stride,
                           .w = w,
                           .panel = panel,
                           .depth = depth,
                           .columns = job.columns,
                           .out = job.out + row * job.out_stride,
                           .out_stride = job.out_stride,
                           .joins = k > 0,
                           .upcoming = upcoming,
                           .blocks_before = tile * blocks,
                           .all_blocks = tiles * blocks},
                          rows);
      row += rows;
    }
  }
}

// ---- Dots: weights row by row

template <class W, int R, int C>
void dot_tile(const ProductJob& job, std::int64_t row, std::int64_t column) {
  using Element = typename W::Element;
  const float* x = job.x + row * job.x_stride;
  const Element* w = reinterpret_cast<const Element*>(job.weights) + column * job.depth;
  F32x16 sums[R][C];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sums[r][c] = zeros();
  }
  const std::int64_t whole = job.depth / kLanes * kLanes, rest = job.depth - whole;
  const auto step = [&](std::int64_t k, auto load_weights, auto load_x) {
    F32x16 weights[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) weights[c] = load_weights(w + c * job.depth + k);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F32x16 values = load_x(x + r * job.x_stride + k);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sums[r][c] = multiply_add(values, weights[c], sums[r][c]);
    }
  };
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    step(
        k, [](const Element* from) { return W::load(from); },
        [](const float* from) { return load16(from); });
  }
  if (rest > 0) {
    step(
        whole, [rest](const Element* from) { return W::load_first(from, rest); },
        [rest](const float* from) { return load_first(from, rest); });
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      job.out[(row + r) * job.out_stride + column + c] = sum_lanes(sums[r][c]);
    }
  }
}

template <class W, int R>
void dot_rows(const ProductJob& job, std::int64_t row) {
  std::int64_t c = 0;
  for (; c + kDotColumns <= job.columns; c += kDotColumns) dot_tile<W, R, kDotColumns>(job, row, c);
  for (; c < job.columns; ++c) dot_tile<W, R, 1>(job, row, c);
}

template <class W>
void dots(const ProductJob& job) {
  std::int64_t row = 0;
  for (; row + kDotRows <= job.rows; row += kDotRows) dot_rows<W, kDotRows>(job, row);
  for (; row < job.rows; ++row) dot_rows<W, 1>(job, row);
}

}  // namespace heddle::cpu::HEDDLE_SIMD
