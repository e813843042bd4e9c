// Products with weights in panels of blocks, written once; quant_panels_<level>.cpp builds them for
// each level.
//
// A few rows take codes from a panel straight into products. More rows share codes that are
// unpacked into the cache, 256 elements of a panel at a time. Both sum the same integers exactly,
// and then the same floats in the same order.
#pragma once

#include "device/cpu/quant.h"
#include "device/cpu/quant_panel_codes.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr int kPairs = kPart / 2;
inline constexpr std::int64_t kPanelColumns = kPanelBlocks;

/// A part's sums of products, by groups, join `sum`; `activations` are the sums of its codes.
template <bool HasMins>
inline F32x16 join(F32x16 sum, I32x16 dot, F32x16 scale, F32x16 min, float activations) {
  sum = multiply_add(to_float(dot), scale, sum);
  return HasMins ? multiply_add(broadcast(activations), min, sum) : sum;
}

template <int Groups>
inline float sum_of_codes(const RoundedBlock& x, int part, int group) {
  return Groups == 1 ? x.pair_sums[part] : x.sums[2 * part + group];
}

inline void store_columns(float* to, std::int64_t columns, F32x16 values) {
  if (columns >= kPanelColumns) {
    store16(to, values);
  } else {
    store_first(to, values, columns);
  }
}

template <class T>
inline constexpr std::int64_t kBytesOfBlocks = sizeof(typename T::Block) * kPanelBlocks;

template <class T>
inline std::int64_t bytes_of_panel(std::int64_t depth) {
  return depth / (kIsSuperPanel<T> ? kRoundedElements : kPart) * kBytesOfBlocks<T>;
}

// ---- A few rows

/// Part `part` of a block, which is part `at` of 256 elements.
template <class T, int R>
inline void add_part(const std::byte* panel, const PanelHeader& header, int part,
                     const RoundedBlock* const (&x)[R], int at, F32x16 (&sums)[R]) {
  constexpr int kGroupPairs = kPairs / T::kGroups;
  constexpr int kChains = kGroupPairs == kPairs ? 2 : 1;  // a long one would wait for itself
#pragma GCC unroll 2
  for (int group = 0; group < T::kGroups; ++group) {
    I32x16 dots[R][kChains];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const float codes = sum_of_codes<T::kGroups>(*x[r], at, group);
      dots[r][0] =
          T::kOffset == 0 ? no_sums() : to_int(multiply(broadcast(codes), broadcast(-T::kOffset)));
      if constexpr (kChains > 1) dots[r][1] = no_sums();
    }
#pragma GCC unroll kUnrolledPairs
    for (int i = 0; i < kGroupPairs; ++i) {
      // Pairs 0, 8, 1, 9, ...: those of small blocks share bytes.
      const int k = T::kGroups == 1 ? i / 2 + i % 2 * 8 : group * kGroupPairs + i;
      const I16x32 codes = T::codes(panel, part, k);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        dots[r][i % kChains] =
            dot_add(dots[r][i % kChains], codes, broadcast_pair(x[r]->codes + at * kPart + 2 * k));
      }
    }
    const int index = part * T::kGroups + group;
    const F32x16 scale = T::scale(header, panel, index), min = T::min(header, panel, index);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      I32x16 dot = dots[r][0];
      if constexpr (kChains > 1) dot = add(dot, dots[r][1]);
      sums[r] =
          join<T::kHasMins>(sums[r], dot, scale, min, sum_of_codes<T::kGroups>(*x[r], at, group));
    }
  }
}

/// Fetches what will follow part `part` of a block after a while: into the second level of caches,
/// as reading outruns the number of lines that the first can wait for; for one row, blocks that
/// take little work for their bytes into the first (measured on Zen 4).
template <class T, int R>
inline void fetch_ahead(const std::byte* panel, int part) {
  constexpr bool kFirstLevel = R == 1 && sizeof(typename T::Block) == sizeof(BlockQ8_0);
  constexpr std::int64_t kLine = 64, kAhead = kFirstLevel ? 4096 : 8192;
  constexpr int kLocality = kFirstLevel ? 3 : 2;
  constexpr std::int64_t kBytes = kBytesOfBlocks<T>;
  constexpr std::int64_t kPartsOfBlock = kIsSuperPanel<T> ? kParts : 1;
  const std::int64_t begin = (kBytes * part / kPartsOfBlock + kLine - 1) / kLine * kLine;
  const std::int64_t end = kBytes * (part + 1) / kPartsOfBlock;
#pragma GCC unroll 16
  for (std::int64_t i = begin; i < end; i += kLine) {
    __builtin_prefetch(panel + kAhead + i, 0, kLocality);
  }
}

/// Sums over `parts` parts from `panel` on, which is moved along.
template <class T, int R>
inline void sum_block(const std::byte*& panel, std::int64_t parts,
                      const RoundedBlock* const (&x)[R], F32x16 (&sums)[R]) {
  constexpr std::int64_t kBytes = kBytesOfBlocks<T>;
  if constexpr (kIsSuperPanel<T>) {
    const PanelHeader header = T::header(panel);
#pragma GCC unroll kUnrolledParts
    for (int part = 0; part < kParts; ++part) {
      fetch_ahead<T, R>(panel, part);
      add_part<T, R>(panel, header, part, x, part, sums);
    }
    panel += kBytes;
  } else {
    for (int part = 0; part < parts; ++part, panel += kBytes) {
      fetch_ahead<T, R>(panel, 0);
      add_part<T, R>(panel, T::header(panel), 0, x, part, sums);
    }
  }
}

/// Rows from `row` on against the panel of columns from `column` on.
template <class T, int R>
inline void few_rows_of_panel(const QuantJob& job, std::int64_t row, std::int64_t column,
                              const std::byte* panel) {
  const std::int64_t blocks = rounded_blocks(job.depth);
  const RoundedBlock* x[R];
  F32x16 totals[R];
  for (int r = 0; r < R; ++r) {
    x[r] = job.x + smaller(row + r, job.rows - 1) * blocks;
    totals[r] = zeros();
  }
  for (std::int64_t at = 0; at < blocks; ++at) {
    F32x16 sums[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sums[r] = zeros();
    sum_block<T, R>(panel, smaller(kParts, job.depth / kPart - at * kParts), x, sums);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      totals[r] = multiply_add(sums[r], broadcast(x[r]->scale), totals[r]);
      ++x[r];
    }
  }
  for (int r = 0; r < R && row + r < job.rows; ++r) {
    store_columns(job.out + (row + r) * job.out_stride + column, job.columns - column, totals[r]);
  }
}

/// R rows at a time, for which a panel is still in the cache.
template <class T, int R>
void few_rows(const QuantJob& job) {
  const std::int64_t panel_bytes = bytes_of_panel<T>(job.depth);
  const std::byte* panel = job.weights;
  for (std::int64_t column = 0; column < job.columns; column += kPanelColumns) {
    for (std::int64_t row = 0; row < job.rows; row += R) {
      few_rows_of_panel<T, R>(job, row, column, panel);
    }
    panel += panel_bytes;
  }
}

// ---- Many rows

/// 256 elements of a panel.
struct UnpackedPanel {
  alignas(64) std::int16_t codes[kParts][kPairs][2 * kPanelBlocks];
  alignas(64) float scales[2 * kParts][kPanelBlocks];
  alignas(64) float mins[2 * kParts][kPanelBlocks];
};

template <class T>
inline void unpack_part(const std::byte* panel, const PanelHeader& header, int part, int at,
                        UnpackedPanel& to) {
#pragma GCC unroll kUnrolledPairs
  for (int i = 0; i < kPairs; ++i) {
    const int k = T::kGroups == 1 ? i / 2 + i % 2 * 8 : i;
    store_codes(to.codes[at][k], add(T::codes(panel, part, k), -T::kOffset));
  }
#pragma GCC unroll 2
  for (int group = 0; group < T::kGroups; ++group) {
    const int index = part * T::kGroups + group, there = at * T::kGroups + group;
    store16(to.scales[there], T::scale(header, panel, index));
    if (T::kHasMins) store16(to.mins[there], T::min(header, panel, index));
  }
}

template <class T>
void unpack(const std::byte* panel, std::int64_t parts, UnpackedPanel& to) {
  constexpr std::int64_t kBytes = kBytesOfBlocks<T>;
  if constexpr (kIsSuperPanel<T>) {
    const PanelHeader header = T::header(panel);
#pragma GCC unroll kUnrolledParts
    for (int part = 0; part < kParts; ++part) unpack_part<T>(panel, header, part, part, to);
  } else {
    for (int part = 0; part < parts; ++part, panel += kBytes) {
      unpack_part<T>(panel, T::header(panel), 0, part, to);
    }
  }
}

/// Some rows against the unpacked panels.
struct UnpackedJob {
  const RoundedBlock* x;  // of the first row, at the panels' elements
  std::int64_t x_stride, rows;
  const UnpackedPanel* panels;
  std::int64_t parts;
  bool is_first;  // nothing is in `out` yet
  float* out;
  std::int64_t out_stride, columns;
};

/// Rows [row, end), at most R; where there are fewer, the last is computed again.
template <int Groups, bool HasMins, int R>
void multiply_rows(const UnpackedJob& job, std::int64_t row, std::int64_t end) {
  constexpr int P = kUnpackedPanels, kGroupPairs = kPairs / Groups;
  const RoundedBlock* x[R];
  F32x16 sums[R][P];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    x[r] = job.x + smaller(row + r, end - 1) * job.x_stride;
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) sums[r][p] = zeros();
  }
  for (int part = 0; part < job.parts; ++part) {
    for (int group = 0; group < Groups; ++group) {
      I32x16 dots[R][P];
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) dots[r][p] = no_sums();
      }
#pragma GCC unroll 16
      for (int i = 0; i < kGroupPairs; ++i) {
        const int k = group * kGroupPairs + i;
        I16x32 weights[P];
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) weights[p] = load_codes(job.panels[p].codes[part][k]);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          const I16x32 pair = broadcast_pair(x[r]->codes + part * kPart + 2 * k);
#pragma GCC unroll 2
          for (int p = 0; p < P; ++p) dots[r][p] = dot_add(dots[r][p], weights[p], pair);
        }
      }
      const int index = part * Groups + group;
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const F32x16 scale = load16(job.panels[p].scales[index]);
        const F32x16 min = HasMins ? load16(job.panels[p].mins[index]) : scale;
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          sums[r][p] = join<HasMins>(sums[r][p], dots[r][p], scale, min,
                                     sum_of_codes<Groups>(*x[r], part, group));
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    if (row + r >= end) break;
    const F32x16 scale = broadcast(x[r]->scale);
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      float* to = job.out + (row + r) * job.out_stride + p * kPanelColumns;
      const std::int64_t columns = job.columns - p * kPanelColumns;
      if (columns <= 0) break;
      const F32x16 old = job.is_first               ? zeros()
                         : columns >= kPanelColumns ? load16(to)
                                                    : load_first(to, columns);
      store_columns(to, columns, multiply_add(sums[r][p], scale, old));
    }
  }
}

/// All rows, in tiles of sizes as equal as can be.
template <int Groups, bool HasMins>
void multiply_all(const UnpackedJob& job) {
  constexpr int kFewer = kUnpackedRows / 2 + kUnpackedRows / 6;
  std::int64_t tiles = (job.rows + kUnpackedRows - 1) / kUnpackedRows;
  for (std::int64_t row = 0; tiles > 0; --tiles) {
    const std::int64_t count = (job.rows - row + tiles - 1) / tiles;
    if (count > kFewer) {
      multiply_rows<Groups, HasMins, kUnpackedRows>(job, row, row + count);
    } else {
      multiply_rows<Groups, HasMins, kFewer>(job, row, row + count);
    }
    row += count;
  }
}

template <class T>
void many_rows(const QuantJob& job) {
  constexpr std::int64_t kColumnsAtOnce = kUnpackedPanels * kPanelColumns;
  const std::int64_t blocks = rounded_blocks(job.depth);
  const std::int64_t panel_bytes = bytes_of_panel<T>(job.depth);
  UnpackedPanel unpacked[kUnpackedPanels];
  for (std::int64_t column = 0; column < job.columns; column += kColumnsAtOnce) {
    const std::byte* first = job.weights + column / kPanelColumns * panel_bytes;
    const std::int64_t columns = smaller(job.columns - column, kColumnsAtOnce);
    for (std::int64_t at = 0; at < blocks; ++at) {
      const std::int64_t parts = smaller(kParts, job.depth / kPart - at * kParts);
      for (int p = 0; p < kUnpackedPanels; ++p) {
        const std::int64_t panel = smaller(p, (columns - 1) / kPanelColumns);
        unpack<T>(first + panel * panel_bytes + bytes_of_panel<T>(at * kRoundedElements), parts,
                  unpacked[p]);
      }
      multiply_all<T::kGroups, T::kHasMins>({job.x + at, blocks, job.rows, unpacked, parts, at == 0,
                                             job.out + column, job.out_stride, columns});
    }
  }
}

// ---- All

void no_depth(const QuantJob& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    for (std::int64_t column = 0; column < job.columns; column += kPanelColumns) {
      store_columns(job.out + row * job.out_stride + column, job.columns - column, zeros());
    }
  }
}

template <class T>
void panel_products(const QuantJob& job) {
  if (job.depth == 0) return no_depth(job);
  if constexpr (kFewRows > 0) {
    if (job.rows == 1) return few_rows<T, 1>(job);
    if (job.rows == 2) return few_rows<T, 2>(job);
    if (job.rows <= 2 * kFewRows) return few_rows<T, kFewRows>(job);
  }
  many_rows<T>(job);
}

const QuantPanelLoops kQuantPanelLoops = {{
    panel_products<PanelQ40>,
    panel_products<PanelQ41>,
    panel_products<PanelQ50>,
    panel_products<PanelQ51>,
    panel_products<PanelQ80>,
    panel_products<PanelQ2K>,
    panel_products<PanelQ3K>,
    panel_products<PanelQ4K>,
    panel_products<PanelQ5K>,
    panel_products<PanelQ6K>,
    panel_products<PanelIq4Nl>,
    panel_products<PanelIq4Xs>,
}};

}  // namespace heddle::cpu::HEDDLE_SIMD
