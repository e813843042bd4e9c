// Products of a few rows with weights in panels of blocks, whose codes go straight into products.
#pragma once

#if defined(__ARM_FEATURE_DOTPROD)
#include "device/cpu/quant_panel_sdot.h"
#else
#include "device/cpu/quant_panel_pairs.h"
#endif

namespace heddle::cpu::HEDDLE_SIMD {

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

}  // namespace heddle::cpu::HEDDLE_SIMD
