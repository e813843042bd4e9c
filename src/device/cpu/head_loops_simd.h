// The loops of head_loops.h, written once; head_loops_<level>.cpp builds them for each level.
#pragma once

#include "device/cpu/head_loops.h"
#include "device/cpu/quant_int.h"
#include "tensor/blocks.h"

#if defined(__AVX512F__)
#include "device/cpu/transpose_avx512.h"
#endif

namespace heddle::cpu::HEDDLE_SIMD {

// How 16 features of a stored head become floats, of which the last `n` < 16 may be fewer.

template <class Stored>
struct PlainHead {
  using Element = typename Stored::Element;
  template <int P>
  static void load_parts(const std::byte* head, std::int64_t feature, F32x16 (&to)[P]) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) to[p] = load(head, feature + p * kLanes);
  }
  static F32x16 load(const std::byte* head, std::int64_t feature) {
    return Stored::load(reinterpret_cast<const Element*>(head) + feature);
  }
  static F32x16 load_first(const std::byte* head, std::int64_t feature, std::int64_t n) {
    return Stored::load_first(reinterpret_cast<const Element*>(head) + feature, n);
  }
};

struct Q80Head {
  static constexpr std::int64_t kBlockParts = kSmallBlock / kLanes;
  /// Several parts begin where a block does.
  template <int P>
  static void load_parts(const std::byte* head, std::int64_t feature, F32x16 (&to)[P]) {
    if constexpr (P == 1) {
      to[0] = load(head, feature);
    } else {
      const auto* blocks = reinterpret_cast<const BlockQ8_0*>(head) + feature / kSmallBlock;
#pragma GCC unroll 4
      for (int p = 0; p < P; p += kBlockParts) {
        const BlockQ8_0& block = blocks[p / kBlockParts];
        const F32x16 d = broadcast_f16(block.d);
        for (int i = 0; i < kBlockParts; ++i) {
          to[p + i] = multiply(d, to_float(load_bytes16(block.qs + i * kLanes)));
        }
      }
    }
  }
  static F32x16 load(const std::byte* head, std::int64_t feature) {
    const auto& block = reinterpret_cast<const BlockQ8_0*>(head)[feature / kSmallBlock];
    return multiply(broadcast_f16(block.d),
                    to_float(load_bytes16(block.qs + feature % kSmallBlock)));
  }
  static F32x16 load_first(const std::byte* head, std::int64_t feature, std::int64_t) {
    return load(head, feature);  // heads are whole blocks
  }
};

/// Fetches bytes [begin, end) of piece `i`. Always inlined, as GCC drops calls that only fetch.
[[gnu::always_inline]] inline void fetch(const Upcoming& next, std::int64_t i, std::int64_t begin,
                                         std::int64_t end) {
  constexpr std::int64_t kLine = 64;
  if (i >= next.count) return;
  for (std::int64_t at = begin; at < end; at += kLine) {
    __builtin_prefetch(next.pieces[i] + at, 0, 2);
  }
}

// ---- Keys

/// 16 features of 16 rows, of which any may be missing; the last features may be fewer.
template <class Head>
void load_part(const KeyPanelJob& job, std::int64_t feature, F32x16 (&square)[kLanes]) {
  const std::int64_t n = smaller(job.features - feature, kLanes);
  for (int r = 0; r < kLanes; ++r) {
    square[r] = job.rows[r] ? Head::load_first(job.rows[r] + job.offset, feature, n) : zeros();
  }
}

inline void store_columns(F32x16 (&square)[kLanes], float* panel) {
  transpose16(square);
#pragma GCC unroll 16
  for (int c = 0; c < kLanes; ++c) store16(panel + c * kLanes, square[c]);
}

/// The same where nothing is missing, to columns of a panel.
template <class Head>
struct Transpose {
  static void features(const std::byte* const* rows, std::int64_t offset, std::int64_t feature,
                       float* panel) {
    F32x16 square[kLanes];
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) square[r] = Head::load(rows[r] + offset, feature);
    store_columns(square, panel);
  }
};

#if defined(__AVX512F__)  // which transposes codes, and applies scales to 16 of them at once

template <>
struct Transpose<Q80Head> {
  static void features(const std::byte* const* rows, std::int64_t offset, std::int64_t feature,
                       float* panel) {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(BlockQ8_0));
    const std::int64_t block = offset + feature / kSmallBlock * kBytes;
    std::uint16_t scales[kLanes];
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) std::memcpy(&scales[r], rows[r] + block, sizeof scales[r]);
    const F32x16 d = load16_f16(scales);
    constexpr auto kCodes = static_cast<std::int64_t>(offsetof(BlockQ8_0, qs));
    alignas(64) std::int8_t columns[kLanes][kLanes];
    transpose_bytes16(rows, block + kCodes + feature % kSmallBlock, columns);
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c) {
      store16(panel + c * kLanes, multiply(d, to_float(load_bytes16(columns[c]))));
    }
  }
};

#endif

template <class Head>
void key_panel(const KeyPanelJob& job) {
  bool whole_rows = true;
  for (int r = 0; r < kLanes; ++r) whole_rows = whole_rows && job.rows[r];
  const std::int64_t steps = (job.features + kLanes - 1) / kLanes;
  std::int64_t fetched = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t feature = step * kLanes;
    for (const std::int64_t end = (step + 1) * kLanes / steps; fetched < end; ++fetched) {
      fetch(job.next, fetched, 0, job.next.bytes);
    }
    float* panel = job.panel + feature * kLanes;
    if (whole_rows && feature + kLanes <= job.features) {
      Transpose<Head>::features(job.rows, job.offset, feature, panel);
    } else {
      F32x16 square[kLanes];
      load_part<Head>(job, feature, square);
      store_columns(square, panel);
    }
  }
}

// ---- Values: R rows by P times 16 features of sums, held in registers

template <class Head, int R, int P, bool kPart>
void value_tile(const ValuesJob& job, std::int64_t row, std::int64_t feature) {
  const std::int64_t part = job.features - feature;  // where kPart, of 16
  F32x16 sums[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sums[r][p] = zeros();
  }
  const float* weights = job.weights + row * kWeightsStride;
  const std::int64_t next_begin = feature * job.next.bytes / job.features;
  const std::int64_t next_end =
      row > 0 ? next_begin
              : smaller(feature + P * kLanes, job.features) * job.next.bytes / job.features;
  for (std::int64_t k = 0; k < job.depth; ++k) {
    const std::byte* head = job.values[k] + job.offset;
    F32x16 values[P];
    if constexpr (kPart) {
      values[0] = Head::load_first(head, feature, part);
    } else {
      Head::template load_parts<P>(head, feature, values);
    }
    fetch(job.next, k, next_begin, next_end);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 weight = broadcast(weights[r * kWeightsStride + k]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sums[r][p] = multiply_add(weight, values[p], sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const F32x16 scale = broadcast(job.scales[row + r]);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      float* out = job.out + (row + r) * job.out_stride + feature + p * kLanes;
      store16(out, multiply_add(load16(out), scale, sums[r][p]));
    }
  }
}

template <class Head, int R>
void value_rows(const ValuesJob& job, std::int64_t row) {
  constexpr int kPanels = value_panels(R);
  std::int64_t feature = 0;
  for (; feature + kPanels * kLanes <= job.features; feature += kPanels * kLanes) {
    value_tile<Head, R, kPanels, false>(job, row, feature);
  }
  for (; feature + kLanes <= job.features; feature += kLanes) {
    value_tile<Head, R, 1, false>(job, row, feature);
  }
  if (feature < job.features) value_tile<Head, R, 1, true>(job, row, feature);
}

template <class Head, int R>
void value_rows(const ValuesJob& job, std::int64_t row, std::int64_t count) {
  if (count == R) return value_rows<Head, R>(job, row);
  if constexpr (R > 1) value_rows<Head, R - 1>(job, row, count);
}

/// All rows, as many at a time as registers hold, in parts as equal as can be.
template <class Head>
void add_values(const ValuesJob& job) {
  std::int64_t parts = (job.rows + kValueRows - 1) / kValueRows;
  for (std::int64_t row = 0; parts > 0; --parts) {
    const std::int64_t count = (job.rows - row + parts - 1) / parts;
    value_rows<Head, kValueRows>(job, row, count);
    row += count;
  }
}

template <class Head>
constexpr HeadLoops kLoopsOf = {key_panel<Head>, add_values<Head>, 2 * kValueRows};

const HeadLoops kHeadLoops[kHeadTypes] = {kLoopsOf<PlainHead<StoredF32>>,
                                          kLoopsOf<PlainHead<StoredF16>>,
                                          kLoopsOf<PlainHead<StoredBf16>>, kLoopsOf<Q80Head>};

}  // namespace heddle::cpu::HEDDLE_SIMD
