// Products with weights in panels of blocks, written once; quant_panels_<level>.cpp builds them for
// each level.
//
// A few rows take codes from a panel straight into products. More rows share codes that are
// unpacked into the cache, 256 elements of a panel at a time. Both sum the same integers exactly,
// and then the same floats in the same order.
#pragma once

#include "device/cpu/quant_panel_unpack.h"

namespace heddle::cpu::HEDDLE_SIMD {

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
  constexpr int P = kUnpackedPanels;
  const RoundedBlock* x[R];
  F32x16 sums[R][P];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    x[r] = job.x + smaller(row + r, end - 1) * job.x_stride;
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) sums[r][p] = zeros();
  }
  for (int part = 0; part < job.parts; ++part) {
    sum_part<Groups, HasMins>(job.panels, part, x, sums);
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

inline void no_depth(const QuantJob& job) {
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
