// How panels of blocks (tensor/block_panels.h) become bytes for NEON's four-byte dot products: a
// function for each type of quant_panel_codes.h.
//
// A part is 32 elements of 16 rows. Its quad q holds elements 4q..4q+3 of all 16 rows, four bytes a
// row, in the order in which panels have them: 0, 2, 1, 3. A type's kOffset is taken off already.
#pragma once

#include "device/cpu/quant_panel_codes.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline constexpr int kQuads = 8;  // of a part

struct Quad {
  int8x16_t v[4];
};

template <class F>
[[gnu::always_inline]] inline Quad each_quarter(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}

struct QuadBits {
  uint8x16_t v[4];
};

inline QuadBits load_quad(const std::byte* field, int q) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(field + q * 4 * kPanelBlocks);
  return {{vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)}};
}
/// `count` bits from bit `shift` on.
inline QuadBits bits(const QuadBits& x, int shift, int count) {
  const int mask = (1 << count) - 1;
  return {{bits(x.v[0], shift, mask), bits(x.v[1], shift, mask), bits(x.v[2], shift, mask),
           bits(x.v[3], shift, mask)}};
}
/// x with the bits of `more` at `mask` once it is shifted to the right, or to the left.
inline QuadBits with_quad_bits(const QuadBits& x, const QuadBits& more, int shift, int mask) {
  const auto join = [&](int i) {
    return x.v[i] | (shift >= 0 ? bits(more.v[i], shift, mask) : bits_up(more.v[i], -shift, mask));
  };
  return {{join(0), join(1), join(2), join(3)}};
}
inline Quad minus(const QuadBits& x, int offset) {
  const int8x16_t offsets = vdupq_n_s8(static_cast<std::int8_t>(offset));
  return each_quarter([&](int i) { return vsubq_s8(vreinterpretq_s8_u8(x.v[i]), offsets); });
}
inline Quad codebook_quad(const QuadBits& codes) {
  const int8x16_t table = vld1q_s8(kIq4Codebook.data());
  return each_quarter([&](int i) { return vqtbl1q_s8(table, codes.v[i]); });
}

/// Of 16 bytes with elements 0..15 in the low nibbles and 16..31 in the high ones.
inline QuadBits small_nibble_quad(const std::byte* qs, int q) {
  return bits(load_quad(qs, q % 4), 4 * (q / 4), 4);
}

/// x with a row's 32 bits, of which the even ones come first, as bit 4 of its elements.
inline QuadBits with_fifth_bits(const QuadBits& x, const std::byte* field, int q) {
  const QuadBits all = load_quad(field, 0);
  // Element 4q is bit 2q % 8 of byte q / 4, its neighbour's half begins two bytes on.
  constexpr std::uint64_t kBytes = 0x0606040402020000, kEight = 0x0808080808080808;
  const std::uint64_t from = kBytes + static_cast<std::uint64_t>(q / 4) * (kEight / 8);
  const uint8x16_t which = two_words(from, from + kEight).v;
  const auto bit = static_cast<std::uint64_t>(1) << (2 * q % 8);
  const std::uint64_t four = bit | bit << 9 | bit << 16 | bit << 25;
  const uint8x16_t at = two_words(four | four << 32, four | four << 32).v;
  const auto join = [&](int i) {
    return x.v[i] | (vtstq_u8(vqtbl1q_u8(all.v[i], which), at) & all_bytes(16));
  };
  return {{join(0), join(1), join(2), join(3)}};
}

#define HEDDLE_QUAD_FIELD(member) at_offset(panel, offsetof(Block, member))

template <class T>
inline Quad quad(const std::byte* panel, int part, int q);

template <class T>
inline Quad nibble_quad(const std::byte* panel, int q) {
  using Block = typename T::Block;
  return minus(small_nibble_quad(HEDDLE_QUAD_FIELD(qs), q), T::kOffset);
}
template <>
inline Quad quad<PanelQ40>(const std::byte* panel, int, int q) {
  return nibble_quad<PanelQ40>(panel, q);
}
template <>
inline Quad quad<PanelQ41>(const std::byte* panel, int, int q) {
  return nibble_quad<PanelQ41>(panel, q);
}

template <class T>
inline Quad five_bit_quad(const std::byte* panel, int q) {
  using Block = typename T::Block;
  const QuadBits low = small_nibble_quad(HEDDLE_QUAD_FIELD(qs), q);
  return minus(with_fifth_bits(low, HEDDLE_QUAD_FIELD(qh), q), T::kOffset);
}
template <>
inline Quad quad<PanelQ50>(const std::byte* panel, int, int q) {
  return five_bit_quad<PanelQ50>(panel, q);
}
template <>
inline Quad quad<PanelQ51>(const std::byte* panel, int, int q) {
  return five_bit_quad<PanelQ51>(panel, q);
}

template <>
inline Quad quad<PanelQ80>(const std::byte* panel, int, int q) {
  using Block = BlockQ8_0;
  return minus(load_quad(HEDDLE_QUAD_FIELD(qs), q), 0);
}

template <>
inline Quad quad<PanelIq4Nl>(const std::byte* panel, int, int q) {
  using Block = BlockIq4Nl;
  return codebook_quad(small_nibble_quad(HEDDLE_QUAD_FIELD(qs), q));
}
template <>
inline Quad quad<PanelIq4Xs>(const std::byte* panel, int part, int q) {
  using Block = BlockIq4Xs;
  return codebook_quad(small_nibble_quad(HEDDLE_QUAD_FIELD(qs) + 16 * part * kPanelBlocks, q));
}

/// The nibbles of q4_K and q5_K.
inline QuadBits four_bit_quad(const std::byte* qs, int part, int q) {
  return bits(load_quad(qs + part / 2 * 32 * kPanelBlocks, q), 4 * (part % 2), 4);
}
template <>
inline Quad quad<PanelQ4K>(const std::byte* panel, int part, int q) {
  using Block = BlockQ4K;
  return minus(four_bit_quad(HEDDLE_QUAD_FIELD(qs), part, q), 0);
}
template <>
inline Quad quad<PanelQ5K>(const std::byte* panel, int part, int q) {
  using Block = BlockQ5K;
  const QuadBits low = four_bit_quad(HEDDLE_QUAD_FIELD(qs), part, q);
  return minus(with_quad_bits(low, load_quad(HEDDLE_QUAD_FIELD(qh), q), part - 4, 16), 0);
}

/// The two bits of q2_K and q3_K.
inline QuadBits two_bit_quad(const std::byte* qs, int part, int q) {
  return bits(load_quad(qs + part / 4 * 32 * kPanelBlocks, q), 2 * (part % 4), 2);
}
template <>
inline Quad quad<PanelQ2K>(const std::byte* panel, int part, int q) {
  using Block = BlockQ2K;
  return minus(two_bit_quad(HEDDLE_QUAD_FIELD(qs), part, q), 0);
}
template <>
inline Quad quad<PanelQ3K>(const std::byte* panel, int part, int q) {
  using Block = BlockQ3K;
  const QuadBits low = two_bit_quad(HEDDLE_QUAD_FIELD(qs), part, q);
  return minus(with_quad_bits(low, load_quad(HEDDLE_QUAD_FIELD(hmask), q), part - 2, 4),
               PanelQ3K::kOffset);
}

template <>
inline Quad quad<PanelQ6K>(const std::byte* panel, int part, int q) {
  using Block = BlockQ6K;
  const int half = part / 4, quarter = part % 4;
  const std::byte* ql = HEDDLE_QUAD_FIELD(ql) + (64 * half + 32 * (quarter % 2)) * kPanelBlocks;
  const std::byte* qh = HEDDLE_QUAD_FIELD(qh) + 32 * half * kPanelBlocks;
  const QuadBits low = bits(load_quad(ql, q), 4 * (quarter / 2), 4);
  return minus(with_quad_bits(low, load_quad(qh, q), 2 * quarter - 4, 0x30), PanelQ6K::kOffset);
}

#undef HEDDLE_QUAD_FIELD

}  // namespace heddle::cpu::HEDDLE_SIMD
