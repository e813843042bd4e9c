// The loops of products.h, written once; products_<level>.cpp builds them for each level.
#pragma once

#include "device/cpu/products.h"
#include "device/cpu/simd.h"

namespace heddle::cpu::HEDDLE_SIMD {

// ---- Tiles: R rows by P panels of sums, held in registers

template <class W>
struct Tile {
  const float* x;
  std::int64_t x_stride;
  const typename W::Element* w;
  std::int64_t step, panel;
  std::int64_t depth;
  std::int64_t columns;
  float* out;
  std::int64_t out_stride;
  const float* scales;
  bool from_memory = false;  // weights read for the first time
};

template <int R, int P>
inline void store_sums(const F32x16 (&sums)[R][P], float* out, std::int64_t out_stride,
                       std::int64_t columns, const float* scales) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float* to = out + r * out_stride + p * kPanel;
      const std::int64_t n = smaller(columns - p * kPanel, kPanel);
      if (n == kPanel) {
        store16(to,
                scales ? multiply_add(load16(to), broadcast(scales[r]), sums[r][p]) : sums[r][p]);
      } else {
        const F32x16 old = scales ? load_first(to, n) : zeros();
        store_first(to, scales ? multiply_add(old, broadcast(scales[r]), sums[r][p]) : sums[r][p],
                    n);
      }
    }
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
  for (std::int64_t k = 0; k < t.depth; ++k, w += t.step) {
    F32x16 weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      weights[p] = W::load(w + p * t.panel);
      if (t.from_memory) __builtin_prefetch(w + p * t.panel + kAhead, 0, kLocality);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 value = broadcast(x[r * t.x_stride + k]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sums[r][p] = multiply_add(value, weights[p], sums[r][p]);
    }
  }
  store_sums<R, P>(sums, t.out + row * t.out_stride + first_panel * kPanel, t.out_stride,
                   t.columns - first_panel * kPanel, t.scales ? t.scales + row : nullptr);
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
    sum_rows(t, row, count);
    row += count;
    t.from_memory = false;
  }
}

void tile(const TileJob& job) {
  sum_all_rows<StoredF32>({job.x, job.x_stride, job.w, job.step, job.panel, job.depth, job.columns,
                           job.out, job.out_stride, job.scales},
                          job.rows);
}

// ---- Panels

/// One block of depth of a group of panels as floats, so that many rows share the conversion.
struct DecodedBlock {
  alignas(64) float values[kGroupPanels][kDepthBlock * kPanel];

  template <class W>
  void decode(const typename W::Element* from, std::int64_t panel, std::int64_t panels,
              std::int64_t depth) {
    for (std::int64_t p = 0; p < panels; ++p) {
      for (std::int64_t i = 0; i < depth * kPanel; i += kPanel) {
        store16(values[p] + i, W::load(from + p * panel + i));
        __builtin_prefetch(from + p * panel + i + kDepthBlock * kPanel);  // the next block
      }
    }
  }
};

// Up to two tiles' rows, decoding twice is quicker than storing what was decoded.
inline constexpr std::int64_t kRowsBeforeDecoding = 2 * kTileRows;

template <class W>
void panels_block(const ProductJob& job, std::int64_t begin, std::int64_t depth,
                  DecodedBlock& scratch) {
  using Element = typename W::Element;
  const auto* w = reinterpret_cast<const Element*>(job.weights) + begin * kPanel;
  const std::int64_t panel = job.depth * kPanel;
  const float* scales = begin > 0 ? kOnes : nullptr;
  if constexpr (sizeof(Element) < sizeof(float)) {
    if (job.rows > kRowsBeforeDecoding) {
      scratch.decode<W>(w, panel, (job.columns + kPanel - 1) / kPanel, depth);
      return sum_all_rows<StoredF32>(
          {job.x + begin, job.x_stride, scratch.values[0], kPanel, kDepthBlock * kPanel, depth,
           job.columns, job.out, job.out_stride, scales},
          job.rows);
    }
  }
  sum_all_rows<W>({job.x + begin, job.x_stride, w, kPanel, panel, depth, job.columns, job.out,
                   job.out_stride, scales, true},
                  job.rows);
}

template <class W>
void panels(const ProductJob& whole) {
  DecodedBlock scratch;
  for (std::int64_t row = 0; row < whole.rows; row += kMostTileRows) {
    ProductJob job = whole;
    job.x += row * job.x_stride;
    job.out += row * job.out_stride;
    job.rows = smaller(whole.rows - row, kMostTileRows);
    // Even a sum of no terms must be written.
    std::int64_t k = 0;
    do {
      panels_block<W>(job, k, smaller(job.depth - k, kDepthBlock), scratch);
      k += kDepthBlock;
    } while (k < job.depth);
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

// ---- Around attention

template <class W>
void decode(const std::byte* from, std::int64_t count, float* to) {
  const auto* elements = reinterpret_cast<const typename W::Element*>(from);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store16(to + i, W::load(elements + i));
  if (i < count) store16(to + i, W::load_first(elements + i, count - i));
}

void to_panel(const float* rows, std::int64_t stride, std::int64_t columns, float* panel) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    F32x16 square[kLanes];
    for (int r = 0; r < kLanes; ++r) square[r] = load16(rows + r * stride + c);
    transpose16(square);
    for (int r = 0; r < kLanes; ++r) store16(panel + (c + r) * kPanel, square[r]);
  }
}

void softmax(SoftmaxRow& row) {
  constexpr float kNothing = -__builtin_inff();
  const std::int64_t first = row.begin / kLanes * kLanes;
  const std::int64_t last = smaller((row.end + kLanes - 1) / kLanes * kLanes, row.whole);
  for (std::int64_t i = first; i < row.begin; ++i) row.scores[i] = kNothing;
  for (std::int64_t i = row.end; i < last; ++i) row.scores[i] = kNothing;

  F32x16 largest = broadcast(row.maximum);
  for (std::int64_t i = first; i < last; i += kLanes) {
    largest = maximum(load16(row.scores + i), largest);  // passes over what is not a number
  }
  const float maximum_now = max_lanes(largest);
  // Where all is -inf so far, exp(-inf - 0) is the zero that exp(-inf - -inf) is not.
  const F32x16 reference = broadcast(maximum_now == kNothing ? 0.0f : maximum_now);
  row.rescale = first_lane(exponential(subtract(broadcast(row.maximum), reference)));
  row.maximum = maximum_now;

  F32x16 sum = zeros();
  for (std::int64_t i = 0; i < first; i += kLanes) store16(row.scores + i, zeros());
  for (std::int64_t i = first; i < last; i += kLanes) {
    const F32x16 weight = exponential(subtract(load16(row.scores + i), reference));
    store16(row.scores + i, weight);
    sum = add(sum, weight);
  }
  for (std::int64_t i = last; i < row.whole; i += kLanes) store16(row.scores + i, zeros());
  row.sum = row.sum * row.rescale + sum_lanes(sum);
}

void blend(float* to, float a, const float* from, float b, std::int64_t count) {
  const F32x16 scale_to = broadcast(a), scale_from = broadcast(b);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const F32x16 scaled = multiply(load16(from + i), scale_from);
    store16(to + i, multiply_add(load16(to + i), scale_to, scaled));
  }
}

bool all_finite(const float* from, std::int64_t count) {
  F32x16 sum = zeros();  // 0 * x is 0 for finite x and NaN for others
  for (std::int64_t i = 0; i < count; i += kLanes) {
    sum = multiply_add(load16(from + i), zeros(), sum);
  }
  return sum_lanes(sum) == 0.0f;
}

const Products kProducts = {
    {panels<StoredF32>, panels<StoredF16>, panels<StoredBf16>},
    {dots<StoredF32>, dots<StoredF16>, dots<StoredBf16>},
    tile,
    {decode<StoredF32>, decode<StoredF16>, decode<StoredBf16>},
    to_panel,
    softmax,
    blend,
    all_finite,
};

}  // namespace heddle::cpu::HEDDLE_SIMD
