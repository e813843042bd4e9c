// How the blocks of tensor/blocks.h become 16-bit integers, 32 elements at a time: one struct for
// each type.
//
// SuperTypes have blocks of 256 elements in 16 groups, w = d * scale * code + min, where scale is
// an integer: |scale * code| <= 2^12. SmallTypes have blocks of 32, w = d * code + min.
#pragma once

#include "device/cpu/quant_int.h"
#include "tensor/blocks.h"

namespace heddle::cpu::HEDDLE_SIMD {

struct SuperHeader {
  GroupScales scales;
  F32x16 d;
  F32x16 mins;  // of each group; only where the type has them
};

inline std::uint64_t load_word(const void* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
inline std::uint32_t load_half_word(const void* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
inline std::uint64_t join_words(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

inline F32x16 scaled_mins(std::uint16_t dmin, Bytes16 mins) {
  constexpr std::uint16_t kSign = 0x8000;  // minima are subtracted
  return multiply(broadcast_f16(dmin ^ kSign), to_float(mins));
}

/// q4_K's and q5_K's: see k_scale_min. All eight at once, a byte each.
template <class Block>
inline void read_k_header(const Block& block, SuperHeader& header) {
  const std::uint32_t a = load_half_word(block.scales), b = load_half_word(block.scales + 4),
                      c = load_half_word(block.scales + 8);
  constexpr std::uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTwo = 0x03030303;
  const std::uint32_t last_scales = (c & kFour) | (a >> 6 & kTwo) << 4;
  const std::uint32_t last_mins = (c >> 4 & kFour) | (b >> 6 & kTwo) << 4;
  header.scales = group_scales(each_twice(join_words(a & kSix, last_scales)));
  header.d = broadcast_f16(block.d);
  header.mins = scaled_mins(block.dmin, each_twice(join_words(b & kSix, last_mins)));
}

struct Q2K {
  using Block = BlockQ2K;
  static constexpr bool kHasMins = true;
  static void read_header(const Block& block, SuperHeader& header) {
    const Bytes16 both = load_bytes16(block.scales);
    header.scales = group_scales(bits(both, 0, 15));
    header.d = broadcast_f16(block.d);
    header.mins = scaled_mins(block.dmin, bits(both, 4, 15));
  }
  static I16x32 codes(const Block& block, int part) {
    return widen(bits(load_bytes32(block.qs + part / 4 * 32), 2 * (part % 4), 3));
  }
};

struct Q3K {
  using Block = BlockQ3K;
  static constexpr bool kHasMins = false;
  /// See q3k_scale. Four at once, a byte each.
  static void read_header(const Block& block, SuperHeader& header) {
    const std::uint64_t low = load_word(block.scales);
    const std::uint32_t high = load_half_word(block.scales + 8);
    constexpr std::uint64_t kFour = 0x0f0f0f0f0f0f0f0f;
    constexpr std::uint32_t kTwo = 0x03030303;
    const auto fours = [&](int shift) {
      return join_words((high >> shift & kTwo) << 4, (high >> (shift + 2) & kTwo) << 4);
    };
    const Bytes16 scales = two_words((low & kFour) | fours(0), (low >> 4 & kFour) | fours(4));
    header.scales = group_scales(add(scales, -32));
    header.d = broadcast_f16(block.d);
  }
  static I16x32 codes(const Block& block, int part) {
    const Bytes32 low = bits(load_bytes32(block.qs + part / 4 * 32), 2 * (part % 4), 3);
    const Bytes32 mask = load_bytes32(block.hmask);
    const Bytes32 high = part < 2 ? bits_up(mask, 2 - part, 4) : bits(mask, part - 2, 4);
    return widen(add(bit_or(low, high), -4));
  }
};

struct Q4K {
  using Block = BlockQ4K;
  static constexpr bool kHasMins = true;
  static void read_header(const Block& block, SuperHeader& header) { read_k_header(block, header); }
  static I16x32 codes(const Block& block, int part) {
    return widen(bits(load_bytes32(block.qs + part / 2 * 32), 4 * (part % 2), 15));
  }
};

struct Q5K {
  using Block = BlockQ5K;
  static constexpr bool kHasMins = true;
  static void read_header(const Block& block, SuperHeader& header) { read_k_header(block, header); }
  static I16x32 codes(const Block& block, int part) {
    const Bytes32 low = bits(load_bytes32(block.qs + part / 2 * 32), 4 * (part % 2), 15);
    const Bytes32 fifth = load_bytes32(block.qh);
    const Bytes32 high = part < 4 ? bits_up(fifth, 4 - part, 16) : bits(fifth, part - 4, 16);
    return widen(bit_or(low, high));
  }
};

struct Q6K {
  using Block = BlockQ6K;
  static constexpr bool kHasMins = false;
  static void read_header(const Block& block, SuperHeader& header) {
    header.scales = group_scales(load_bytes16(block.scales));
    header.d = broadcast_f16(block.d);
  }
  static I16x32 codes(const Block& block, int part) {
    const int half = part / 4, quarter = part % 4;
    const Bytes32 low =
        bits(load_bytes32(block.ql + 64 * half + 32 * (quarter % 2)), 4 * (quarter / 2), 15);
    const Bytes32 two = load_bytes32(block.qh + 32 * half);
    const Bytes32 high =
        quarter < 2 ? bits_up(two, 4 - 2 * quarter, 0x30) : bits(two, 2 * quarter - 4, 0x30);
    return widen(add(bit_or(low, high), -32));
  }
};

inline constexpr const std::int8_t* kCodebook = kIq4Codebook.data();

struct Iq4Xs {
  using Block = BlockIq4Xs;
  static constexpr bool kHasMins = false;
  /// See iq4xs_scale. Nibbles and pairs of bits are moved apart until each has a byte.
  static void read_header(const Block& block, SuperHeader& header) {
    std::uint64_t low = load_half_word(block.scales_l);
    low = (low | low << 16) & 0x0000ffff0000ffff;
    low = (low | low << 8) & 0x00ff00ff00ff00ff;
    low = (low | low << 4) & 0x0f0f0f0f0f0f0f0f;
    std::uint64_t high = block.scales_h;
    high = (high | high << 24) & 0x000000ff000000ff;
    high = (high | high << 12) & 0x000f000f000f000f;
    high = (high | high << 6) & 0x0303030303030303;
    header.scales = group_scales(add(each_twice(low | high << 4), -32));
    header.d = broadcast_f16(block.d);
  }
  static I16x32 codes(const Block& block, int part) {
    return widen(look_up(kCodebook, nibbles(block.qs + 16 * part)));
  }
};

struct Q40 {
  using Block = BlockQ4_0;
  static constexpr bool kHasMins = false;
  static I16x32 codes(const Block& block) { return widen(add(nibbles(block.qs), -8)); }
};

struct Q41 {
  using Block = BlockQ4_1;
  static constexpr bool kHasMins = true;
  static I16x32 codes(const Block& block) { return widen(nibbles(block.qs)); }
};

struct Q50 {
  using Block = BlockQ5_0;
  static constexpr bool kHasMins = false;
  static I16x32 codes(const Block& block) {
    return widen(add(bit_or(nibbles(block.qs), spread_bits(block.qh, 16)), -16));
  }
};

struct Q51 {
  using Block = BlockQ5_1;
  static constexpr bool kHasMins = true;
  static I16x32 codes(const Block& block) {
    return widen(bit_or(nibbles(block.qs), spread_bits(block.qh, 16)));
  }
};

struct Q80 {
  using Block = BlockQ8_0;
  static constexpr bool kHasMins = false;
  static I16x32 codes(const Block& block) { return widen(load_bytes32(block.qs)); }
};

struct Iq4Nl {
  using Block = BlockIq4Nl;
  static constexpr bool kHasMins = false;
  static I16x32 codes(const Block& block) { return widen(look_up(kCodebook, nibbles(block.qs))); }
};

template <class T>
inline constexpr bool kIsSuper = sizeof(typename T::Block) > sizeof(BlockQ8_0);

}  // namespace heddle::cpu::HEDDLE_SIMD
