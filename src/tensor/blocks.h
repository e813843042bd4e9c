// GGUF's block formats, bit for bit, and their plain decoding.
//
// Source of the layouts: the GGUF specification's tensor types and ggml's ggml-common.h and
// ggml-quants.c, which define them. All fields are little-endian. `d`, `m` and `dmin` are f16 bits.
// The K types make a super-block of 256 elements from sub-blocks, whose scales are themselves
// quantised against the super-block's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "heddle/dtype.h"

namespace heddle {

inline constexpr int kSmallBlock = 32;
inline constexpr int kSuperBlock = 256;

// In the 32-element formats, byte j of qs holds element j in its low and element j + 16 in its high
// four bits.

struct BlockQ4_0 {  // x = d * (q - 8)
  std::uint16_t d;
  std::uint8_t qs[16];
};

struct BlockQ4_1 {  // x = d * q + m
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};

struct BlockQ5_0 {  // x = d * (q - 16); bit i of qh, as a 32-bit integer, is bit 4 of element i
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};

struct BlockQ5_1 {  // x = d * q + m; qh as in q5_0
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};

struct BlockQ8_0 {  // x = d * q
  std::uint16_t d;
  std::int8_t qs[32];
};

// 16 sub-blocks of 16: x = d * scale * q - dmin * min.
struct BlockQ2K {
  std::uint8_t scales[16];  // scale in the low, min in the high four bits
  std::uint8_t qs[64];      // element 128h + 32k + l: bits 2k, 2k + 1 of qs[32h + l]
  std::uint16_t d;
  std::uint16_t dmin;
};

// 16 sub-blocks of 16: x = d * scale * (q - 4), with q of three bits and scale in [-32, 31].
struct BlockQ3K {
  std::uint8_t hmask[32];   // element 128h + 32k + l: bit 2 of q is bit 4h + k of hmask[l]
  std::uint8_t qs[64];      // the two low bits, as in q2_K
  std::uint8_t scales[12];  // see q3k_scale
  std::uint16_t d;
};

// 8 sub-blocks of 32: x = d * scale * q - dmin * min.
struct BlockQ4K {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];  // see k_scale_min
  std::uint8_t qs[128];     // element 64p + l: low, 64p + 32 + l: high four bits of qs[32p + l]
};

struct BlockQ5K {  // as q4_K, with a fifth bit
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];  // element 32s + l: bit 4 of q is bit s of qh[l]
  std::uint8_t qs[128];
};

// 16 sub-blocks of 16: x = d * scale * (q - 32), with q of six bits. In element 128h + 32k + l, k
// counts quarters of a half: the low four bits are nibble k / 2 of ql[64h + 32(k % 2) + l], the two
// high ones bits 2k, 2k + 1 of qh[32h + l].
struct BlockQ6K {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};

struct BlockIq4Nl {  // x = d * kIq4Codebook[q]
  std::uint16_t d;
  std::uint8_t qs[16];
};

// 8 sub-blocks of 32: x = d * scale * kIq4Codebook[q], scale in [-32, 31]. Sub-block s's elements
// lie in qs[16s..16s + 15] as in the 32-element formats.
struct BlockIq4Xs {
  std::uint16_t d;
  std::uint16_t scales_h;  // see iq4xs_scale
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};

template <class Block>
inline constexpr bool kIsPlainBlock = std::is_trivially_copyable_v<Block> && alignof(Block) <= 2;
static_assert(sizeof(BlockQ4_0) == 18 && kIsPlainBlock<BlockQ4_0>);
static_assert(sizeof(BlockQ4_1) == 20 && kIsPlainBlock<BlockQ4_1>);
static_assert(sizeof(BlockQ5_0) == 22 && kIsPlainBlock<BlockQ5_0>);
static_assert(sizeof(BlockQ5_1) == 24 && kIsPlainBlock<BlockQ5_1>);
static_assert(sizeof(BlockQ8_0) == 34 && kIsPlainBlock<BlockQ8_0>);
static_assert(sizeof(BlockQ2K) == 84 && kIsPlainBlock<BlockQ2K>);
static_assert(sizeof(BlockQ3K) == 110 && kIsPlainBlock<BlockQ3K>);
static_assert(sizeof(BlockQ4K) == 144 && kIsPlainBlock<BlockQ4K>);
static_assert(sizeof(BlockQ5K) == 176 && kIsPlainBlock<BlockQ5K>);
static_assert(sizeof(BlockQ6K) == 210 && kIsPlainBlock<BlockQ6K>);
static_assert(sizeof(BlockIq4Nl) == 18 && kIsPlainBlock<BlockIq4Nl>);
static_assert(sizeof(BlockIq4Xs) == 136 && kIsPlainBlock<BlockIq4Xs>);

/// The values of iq4_nl's and iq4_xs's codes, ascending. Zero is not among them.
inline constexpr std::array<std::int8_t, 16> kIq4Codebook{-127, -104, -83, -65, -49, -35, -22, -10,
                                                          1,    13,   25,  38,  53,  69,  89,  113};

struct ScaleMin {
  int scale;
  int min;
};

/// The six-bit scale and min of sub-block `s` in [0, 8) of a q4_K or q5_K block. Bytes 0..3
/// and 4..7 hold those of the first four; the last four have their low bits in the nibbles of
/// bytes 8..11 and their high ones in the upper bits that the first four leave over.
inline ScaleMin k_scale_min(const std::uint8_t (&scales)[12], int s) {
  if (s < 4) return {scales[s] & 63, scales[s + 4] & 63};
  return {(scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4, (scales[s + 4] >> 4) | (scales[s] >> 6)
                                                                                       << 4};
}

/// The scale, in [-32, 31], of sub-block `s` in [0, 16) of a q3_K block: its low four bits are a
/// nibble of bytes 0..7, its high two are in bytes 8..11.
inline int q3k_scale(const std::uint8_t (&scales)[12], int s) {
  const int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
  const int high = scales[8 + s % 4] >> (2 * (s / 4)) & 3;
  return (low | high << 4) - 32;
}

/// The scale, in [-32, 31], of sub-block `s` in [0, 8) of an iq4_xs block.
inline int iq4xs_scale(const BlockIq4Xs& block, int s) {
  const int low = block.scales_l[s / 2] >> (4 * (s % 2)) & 15;
  const int high = block.scales_h >> (2 * s) & 3;
  return (low | high << 4) - 32;
}

/// Decodes `n` elements stored as `dtype` (f32, f16, bf16 or a block type) from `src`, which may
/// have any alignment, to `dst`. This is the reference that every kernel is tested against: each
/// result is the exact value of the format's formula, rounded once. Throws invalid_argument for
/// other types and where `n` is not a whole number of blocks.
void dequantize_row(DType dtype, const void* src, float* dst, std::int64_t n);

}  // namespace heddle
