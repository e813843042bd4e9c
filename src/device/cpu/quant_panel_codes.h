// How panels of blocks (tensor/block_panels.h) become 16-bit integers: one struct for each type.
//
// A part is 32 elements of 16 rows. Its pair k holds elements 2k and 2k + 1 of all 16 rows, row r's
// in the integers 2r and 2r + 1. w = scale * (code - kOffset) + min, where a scale and a min belong
// to a part (kGroups is 1) or to half of one (2).
#pragma once

#include "device/cpu/quant_int.h"
#include "tensor/block_panels.h"
#include "tensor/blocks.h"

namespace heddle::cpu::HEDDLE_SIMD {

/// What a block says once, of 16 rows.
struct PanelHeader {
  F32x16 d;
  F32x16 m;  // of small blocks the min, else -dmin; only where the type has minima
};

/// Where 16 blocks of a type keep what one of them has at `offset`.
inline const std::byte* at_offset(const std::byte* panel, std::size_t offset) {
  return panel + offset * kPanelBlocks;
}
#define HEDDLE_FIELD(Block, panel, member) at_offset(panel, offsetof(Block, member))

inline F32x16 load_halves(const std::byte* from) {
  return load16_f16(reinterpret_cast<const std::uint16_t*>(from));
}
/// Four bytes of each row, the `i`th of a field.
inline I16x32 load_fours(const std::byte* field, int i) {
  return load_any(field + i * 4 * kPanelBlocks);
}
inline Bytes16 load_each(const std::byte* field, int i) {
  return load_bytes16(field + i * kPanelBlocks);
}

/// Of 16 bytes with elements 0..15 in the low nibbles and 16..31 in the high ones.
inline I16x32 small_nibbles(const std::byte* qs, int k) {
  return bits(load_fours(qs, k % 8 / 2), 8 * (k % 2) + 4 * (k / 8), 4);
}
/// Of bytes of which each has the `width` bits from `shift` on of an element.
inline I16x32 byte_bits(const std::byte* bytes, int k, int shift, int width) {
  return bits(load_fours(bytes, k / 2), 8 * (k % 2) + shift, width);
}
inline I16x32 with_byte_bits(I16x32 low, const std::byte* bytes, int k, int shift, int mask) {
  return with_bits(low, load_fours(bytes, k / 2), 8 * (k % 2) + shift, mask);
}

// ---- Blocks of 32

template <class B, int Offset>
struct SmallPanel {
  using Block = B;
  static constexpr int kGroups = 1, kOffset = Offset;
  static constexpr bool kHasMins = false;
  static PanelHeader header(const std::byte* panel) {
    const F32x16 d = load_halves(HEDDLE_FIELD(B, panel, d));
    return {d, d};
  }
  static F32x16 scale(const PanelHeader& header, const std::byte*, int) { return header.d; }
  static F32x16 min(const PanelHeader& header, const std::byte*, int) { return header.m; }
};

template <class B>
struct SmallPanelWithMins : SmallPanel<B, 0> {
  static constexpr bool kHasMins = true;
  static PanelHeader header(const std::byte* panel) {
    return {load_halves(HEDDLE_FIELD(B, panel, d)), load_halves(HEDDLE_FIELD(B, panel, m))};
  }
};

template <class Block>
inline I16x32 five_bits(const std::byte* panel, int k) {
  return with_bits(small_nibbles(HEDDLE_FIELD(Block, panel, qs), k),
                   load_fours(HEDDLE_FIELD(Block, panel, qh), 0), k - 4, 16);
}

struct PanelQ40 : SmallPanel<BlockQ4_0, 8> {
  static I16x32 codes(const std::byte* panel, int, int k) {
    return small_nibbles(HEDDLE_FIELD(Block, panel, qs), k);
  }
};
struct PanelQ41 : SmallPanelWithMins<BlockQ4_1> {
  static I16x32 codes(const std::byte* panel, int, int k) {
    return small_nibbles(HEDDLE_FIELD(Block, panel, qs), k);
  }
};
struct PanelQ50 : SmallPanel<BlockQ5_0, 16> {
  static I16x32 codes(const std::byte* panel, int, int k) { return five_bits<Block>(panel, k); }
};
struct PanelQ51 : SmallPanelWithMins<BlockQ5_1> {
  static I16x32 codes(const std::byte* panel, int, int k) { return five_bits<Block>(panel, k); }
};
struct PanelQ80 : SmallPanel<BlockQ8_0, 0> {
  static I16x32 codes(const std::byte* panel, int, int k) {
    const I16x32 both = load_fours(HEDDLE_FIELD(Block, panel, qs), k / 2);
    return k % 2 == 0 ? low_bytes(both) : high_bytes(both);
  }
};
struct PanelIq4Nl : SmallPanel<BlockIq4Nl, 0> {
  static I16x32 codes(const std::byte* panel, int, int k) {
    return look_up(kIq4Codebook.data(), small_nibbles(HEDDLE_FIELD(Block, panel, qs), k));
  }
};

// ---- Blocks of 256

template <class B, int Groups, int Offset>
struct SuperPanel {
  using Block = B;
  static constexpr int kGroups = Groups, kOffset = Offset;
  static constexpr bool kHasMins = false;
  static PanelHeader header(const std::byte* panel) {
    const F32x16 d = load_halves(HEDDLE_FIELD(B, panel, d));
    return {d, d};
  }
  static F32x16 min(const PanelHeader& header, const std::byte*, int) { return header.m; }
};

template <class B, int Groups>
struct SuperPanelWithMins : SuperPanel<B, Groups, 0> {
  static constexpr bool kHasMins = true;
  static PanelHeader header(const std::byte* panel) {
    return {load_halves(HEDDLE_FIELD(B, panel, d)),
            multiply(load_halves(HEDDLE_FIELD(B, panel, dmin)), broadcast(-1.0f))};
  }
};

/// q4_K's and q5_K's: see k_scale_min.
template <class B>
struct FourBitSuperPanel : SuperPanelWithMins<B, 1> {
  static F32x16 scale(const PanelHeader& header, const std::byte* panel, int s) {
    const std::byte* all = HEDDLE_FIELD(B, panel, scales);
    return multiply(to_float(s < 4 ? bits(load_each(all, s), 0, 63)
                                   : bit_or(bits(load_each(all, s + 4), 0, 15),
                                            bits(load_each(all, s - 4), 2, 0x30))),
                    header.d);
  }
  static F32x16 min(const PanelHeader& header, const std::byte* panel, int s) {
    const std::byte* all = HEDDLE_FIELD(B, panel, scales);
    return multiply(to_float(s < 4 ? bits(load_each(all, s + 4), 0, 63)
                                   : bit_or(bits(load_each(all, s + 4), 4, 15),
                                            bits(load_each(all, s), 2, 0x30))),
                    header.m);
  }
  static I16x32 four_bits(const std::byte* panel, int part, int k) {
    return byte_bits(HEDDLE_FIELD(B, panel, qs) + part / 2 * 32 * kPanelBlocks, k, 4 * (part % 2),
                     4);
  }
};

struct PanelQ4K : FourBitSuperPanel<BlockQ4K> {
  static I16x32 codes(const std::byte* panel, int part, int k) { return four_bits(panel, part, k); }
};
struct PanelQ5K : FourBitSuperPanel<BlockQ5K> {
  static I16x32 codes(const std::byte* panel, int part, int k) {
    return with_byte_bits(four_bits(panel, part, k), HEDDLE_FIELD(Block, panel, qh), k, part - 4,
                          16);
  }
};

struct PanelQ2K : SuperPanelWithMins<BlockQ2K, 2> {
  static F32x16 scale(const PanelHeader& header, const std::byte* panel, int group) {
    const Bytes16 both = load_each(HEDDLE_FIELD(Block, panel, scales), group);
    return multiply(to_float(bits(both, 0, 15)), header.d);
  }
  static F32x16 min(const PanelHeader& header, const std::byte* panel, int group) {
    const Bytes16 both = load_each(HEDDLE_FIELD(Block, panel, scales), group);
    return multiply(to_float(bits(both, 4, 15)), header.m);
  }
  static I16x32 codes(const std::byte* panel, int part, int k) {
    return byte_bits(HEDDLE_FIELD(Block, panel, qs) + part / 4 * 32 * kPanelBlocks, k,
                     2 * (part % 4), 2);
  }
};

struct PanelQ3K : SuperPanel<BlockQ3K, 2, 4> {
  /// See q3k_scale.
  static F32x16 scale(const PanelHeader& header, const std::byte* panel, int group) {
    const std::byte* all = HEDDLE_FIELD(Block, panel, scales);
    const Bytes16 low = bits(load_each(all, group % 8), 4 * (group / 8), 15);
    const Bytes16 high = load_each(all, 8 + group % 4);
    const int shift = 2 * (group / 4) - 4;
    const Bytes16 scales =
        bit_or(low, shift < 0 ? bits_up(high, -shift, 0x30) : bits(high, shift, 0x30));
    return multiply(to_float(add(scales, -32)), header.d);
  }
  static I16x32 codes(const std::byte* panel, int part, int k) {
    const std::byte* qs = HEDDLE_FIELD(Block, panel, qs) + part / 4 * 32 * kPanelBlocks;
    return with_byte_bits(byte_bits(qs, k, 2 * (part % 4), 2), HEDDLE_FIELD(Block, panel, hmask), k,
                          part - 2, 4);
  }
};

struct PanelQ6K : SuperPanel<BlockQ6K, 2, 32> {
  static F32x16 scale(const PanelHeader& header, const std::byte* panel, int group) {
    return multiply(to_float(load_each(HEDDLE_FIELD(Block, panel, scales), group)), header.d);
  }
  static I16x32 codes(const std::byte* panel, int part, int k) {
    const int half = part / 4, quarter = part % 4;
    const std::byte* ql =
        HEDDLE_FIELD(Block, panel, ql) + (64 * half + 32 * (quarter % 2)) * kPanelBlocks;
    const std::byte* qh = HEDDLE_FIELD(Block, panel, qh) + 32 * half * kPanelBlocks;
    return with_byte_bits(byte_bits(ql, k, 4 * (quarter / 2), 4), qh, k, 2 * quarter - 4, 0x30);
  }
};

struct PanelIq4Xs : SuperPanel<BlockIq4Xs, 1, 0> {
  /// See iq4xs_scale.
  static F32x16 scale(const PanelHeader& header, const std::byte* panel, int s) {
    const Bytes16 low =
        bits(load_each(HEDDLE_FIELD(Block, panel, scales_l), s / 2), 4 * (s % 2), 15);
    const Bytes16 high = load_each(HEDDLE_FIELD(Block, panel, scales_h), s / 4);
    const int shift = 2 * (s % 4) - 4;
    const Bytes16 scales =
        bit_or(low, shift < 0 ? bits_up(high, -shift, 0x30) : bits(high, shift, 0x30));
    return multiply(to_float(add(scales, -32)), header.d);
  }
  static I16x32 codes(const std::byte* panel, int part, int k) {
    const std::byte* qs = HEDDLE_FIELD(Block, panel, qs) + 16 * part * kPanelBlocks;
    return look_up(kIq4Codebook.data(), small_nibbles(qs, k));
  }
};

#undef HEDDLE_FIELD

template <class T>
inline constexpr bool kIsSuperPanel = sizeof(typename T::Block) > sizeof(BlockQ8_0);

}  // namespace heddle::cpu::HEDDLE_SIMD
