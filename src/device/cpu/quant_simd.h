// The loops of quant.h, written once; quant_<level>.cpp builds them for each level.
#pragma once

#include "device/cpu/quant.h"
#include "device/cpu/quant_unpack.h"
#include "heddle/half.h"

namespace heddle::cpu::HEDDLE_SIMD {

// ---- Rounding

void round(const float* x, std::int64_t count, RoundedBlock& to) {
  F32x16 largest = zeros(), nothing = zeros();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const F32x16 values = load16(x + i);
    largest = maximum(magnitude(values), largest);
    nothing = multiply_add(values, zeros(), nothing);  // NaN if any is not finite
  }
  std::memset(&to, 0, sizeof to);
  if (sum_lanes(nothing) != 0.0f) {
    to.scale = __builtin_nanf("");
    return;
  }
  // Smaller scales are so coarse themselves that codes might exceed 32767.
  constexpr float kSmallest = 0x1p-130f;
  const float scale = max_lanes(largest) / 32767.0f;
  to.scale = scale > kSmallest ? scale : kSmallest;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const F32x16 codes = round_even(divide(load16(x + i), broadcast(to.scale)));
    store_i16(to.codes + i, codes);
    const float sum = sum_lanes(codes);
    to.sums[i / kRoundedGroup] = sum;
    to.pair_sums[i / (2 * kRoundedGroup)] += sum;
  }
}

// ---- Products of R rows with C columns

template <class T, int R, int C>
struct QuantTile {
  const RoundedBlock* x[R];
  const typename T::Block* w[C];
};

/// Sums over 256 elements, in units of the rows' scales.
template <class T, int R, int C>
inline void sum_super(const QuantTile<T, R, C>& t, std::int64_t at, std::int64_t,
                      F32x16 (&sums)[R][C]) {
  SuperHeader headers[C];
  I32x16 dots[R][C];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) T::read_header(t.w[c][at], headers[c]);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) dots[r][c] = no_sums();
  }
#pragma GCC unroll 8
  for (int part = 0; part < kParts; ++part) {
    I16x32 weights[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      weights[c] = scale(T::codes(t.w[c][at], part), headers[c].scales, part);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const I16x32 x = load_any(t.x[r][at].codes + part * kPart);
      // Within 32 bits: 16 products of at most 2^12 * 32767 to a lane.
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) dots[r][c] = dot_add(dots[r][c], weights[c], x);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      sums[r][c] = multiply(to_float(dots[r][c]), headers[c].d);
      if constexpr (T::kHasMins) {
        sums[r][c] = multiply_add(load16(t.x[r][at].sums), headers[c].mins, sums[r][c]);
      }
    }
  }
}

/// Minima of `count` <= 8 blocks of 32, each for two groups of 16; then the last again, for groups
/// whose sums are zero.
template <class Block>
inline F32x16 load_mins(const Block* blocks, std::int64_t count) {
  const auto two_blocks = [&](std::int64_t i) {
    constexpr std::uint32_t kTwice = 0x10001;
    return join_words(blocks[smaller(i, count - 1)].m * kTwice,
                      blocks[smaller(i + 1, count - 1)].m * kTwice);
  };
  return floats_of_f16(two_words(two_blocks(0), two_blocks(2)),
                       two_words(two_blocks(4), two_blocks(6)));
}

template <class T, int R, int C>
inline void sum_small(const QuantTile<T, R, C>& t, std::int64_t at, std::int64_t parts,
                      F32x16 (&sums)[R][C]) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    F32x16 mins = zeros();
    if constexpr (T::kHasMins) mins = load_mins(t.w[c] + at * kParts, parts);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sums[r][c] = T::kHasMins ? multiply(load16(t.x[r][at].sums), mins) : zeros();
    }
  }
  for (std::int64_t part = 0; part < parts; ++part) {
    I16x32 weights[C];
    F32x16 scales[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const auto& block = t.w[c][at * kParts + part];
      weights[c] = T::codes(block);
      scales[c] = broadcast_f16(block.d);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const I16x32 x = load_any(t.x[r][at].codes + part * kPart);
      // Exact in float: two products of at most 2^7 * 32767 to a lane.
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        sums[r][c] = multiply_add(to_float(dot(weights[c], x)), scales[c], sums[r][c]);
      }
    }
  }
}

/// Fetches 256 elements' weights: into the first level of caches, or into the second where reading
/// outruns the number of lines that the first can wait for (measured on Zen 4).
template <class Block>
inline void fetch(const Block* block) {
  constexpr std::int64_t kLine = 64;
  constexpr std::int64_t kBytes =
      sizeof(Block) > sizeof(BlockQ8_0) ? sizeof(Block) : sizeof(Block) * kParts;
  constexpr int kLocality = kBytes > kRoundedElements ? 2 : 3;
  const auto* bytes = reinterpret_cast<const char*>(block);
  for (std::int64_t i = 0; i < kBytes; i += kLine) __builtin_prefetch(bytes + i, 0, kLocality);
}

/// How many blocks ahead to fetch, so that C columns at a time fetch each block once: as many tiles
/// as make some 8 KiB.
template <class Block, int C>
inline std::int64_t blocks_ahead(std::int64_t stride) {
  constexpr std::int64_t kBlocks = 8192 / sizeof(Block);
  const std::int64_t tile = larger(C * stride, 1);
  return (kBlocks + tile - 1) / tile * tile;
}

/// Rows from `row` on and columns from `column` on. Where there are fewer than R or C, the last is
/// computed again.
template <class T, int R, int C>
void quant_tile(const QuantJob& job, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t kBlocksAt = kIsSuper<T> ? 1 : kParts;  // weight blocks of 256 elements
  const std::int64_t whole = rounded_blocks(job.depth);
  const std::int64_t stride = job.depth / (kIsSuper<T> ? kSuperBlock : kSmallBlock);
  const auto* weights = reinterpret_cast<const typename T::Block*>(job.weights);
  const std::int64_t ahead = blocks_ahead<typename T::Block, C>(stride);
  QuantTile<T, R, C> t;
  for (int r = 0; r < R; ++r) t.x[r] = job.x + smaller(row + r, job.rows - 1) * whole;
  for (int c = 0; c < C; ++c) t.w[c] = weights + smaller(column + c, job.columns - 1) * stride;
  F32x16 totals[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) totals[r][c] = zeros();
  }
  for (std::int64_t at = 0; at < whole; ++at) {
    if (row == 0) {
      for (int c = 0; c < C; ++c) fetch(t.w[c] + ahead + at * kBlocksAt);
    }
    F32x16 sums[R][C];
    if constexpr (kIsSuper<T>) {
      sum_super<T, R, C>(t, at, kParts, sums);
    } else {
      sum_small<T, R, C>(t, at, smaller(kParts, job.depth / kPart - at * kParts), sums);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 scale = broadcast(t.x[r][at].scale);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) totals[r][c] = multiply_add(sums[r][c], scale, totals[r][c]);
    }
  }
  for (int r = 0; r < R && row + r < job.rows; ++r) {
    for (int c = 0; c < C && column + c < job.columns; ++c) {
      job.out[(row + r) * job.out_stride + column + c] = sum_lanes(totals[r][c]);
    }
  }
}

/// The next rows, in the smallest tile that holds what is left, or else in the largest; how many.
template <class T, int R = kQuantRows>
std::int64_t quant_rows(const QuantJob& job, std::int64_t row, std::int64_t column) {
  if constexpr (R > 1) {
    if (job.rows - row <= R / 2) return quant_rows<T, R / 2>(job, row, column);
  }
  quant_tile<T, R, kQuantColumns>(job, row, column);
  return R;
}

/// All rows against the columns that a tile has, so that weights are read from memory once. A
/// single row waits for memory, which is quickest in one stream.
template <class T>
void quant_dots(const QuantJob& job) {
  if (job.rows == 1) {
    for (std::int64_t column = 0; column < job.columns; ++column) {
      quant_tile<T, 1, 1>(job, 0, column);
    }
    return;
  }
  for (std::int64_t column = 0; column < job.columns; column += kQuantColumns) {
    for (std::int64_t row = 0; row < job.rows;) row += quant_rows<T>(job, row, column);
  }
}

// ---- Rows of q8_0, as states have them

void decode_q8_0(const std::byte* from, std::int64_t count, float* to) {
  const auto* blocks = reinterpret_cast<const BlockQ8_0*>(from);
  for (std::int64_t i = 0; i < count; i += kSmallBlock, ++blocks) {
    const F32x16 d = broadcast_f16(blocks->d);
    for (int half = 0; half < kSmallBlock; half += kLanes) {
      store16(to + i + half, multiply(d, to_float(load_bytes16(blocks->qs + half))));
    }
  }
}

/// The scale's f16 bits, for elements of which `largest` is the largest magnitude: at least so much
/// that 127.5 steps reach it, though f16 be coarse there.
inline std::uint16_t q8_0_scale(float largest) {
  constexpr float kMost = 65504.0f;
  const float wanted = largest / 127.0f;
  const std::uint16_t nearest = f32_to_f16_bits(wanted < kMost ? wanted : kMost);
  const bool reaches = wanted >= kMost || first_lane(broadcast_f16(nearest)) * 127.5f >= largest;
  return static_cast<std::uint16_t>(nearest + (reaches ? 0 : 1));
}

inline F32x16 within_127(F32x16 x) {
  const F32x16 minus = broadcast(-1.0f), least = broadcast(-127.0f);
  return multiply(maximum(multiply(maximum(x, least), minus), least), minus);
}

inline void encode_block(const float* from, BlockQ8_0& block) {
  constexpr std::uint16_t kNan = 0x7e00;
  const F32x16 low = load16(from), high = load16(from + kLanes);
  const float largest = max_lanes(maximum(magnitude(low), magnitude(high)));
  const F32x16 nothing = multiply_add(low, zeros(), multiply(high, zeros()));
  std::memset(&block, 0, sizeof block);
  if (sum_lanes(nothing) != 0.0f) {  // NaN: not all are finite
    block.d = kNan;
  } else if (largest > 0.0f) {
    block.d = q8_0_scale(largest);
    const F32x16 d = broadcast_f16(block.d);
    store_i8(block.qs, within_127(round_even(divide(low, d))));
    store_i8(block.qs + kLanes, within_127(round_even(divide(high, d))));
  }
}

void encode_q8_0(const float* from, void* to, std::int64_t count) {
  auto* blocks = static_cast<BlockQ8_0*>(to);
  for (std::int64_t i = 0; i < count; i += kSmallBlock) encode_block(from + i, *blocks++);
}

const QuantLoops kQuantLoops = {
    round,
    {quant_dots<Q40>, quant_dots<Q41>, quant_dots<Q50>, quant_dots<Q51>, quant_dots<Q80>,
     quant_dots<Q2K>, quant_dots<Q3K>, quant_dots<Q4K>, quant_dots<Q5K>, quant_dots<Q6K>,
     quant_dots<Iq4Nl>, quant_dots<Iq4Xs>},
    decode_q8_0,
    encode_q8_0,
};

}  // namespace heddle::cpu::HEDDLE_SIMD
