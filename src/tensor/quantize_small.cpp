// The types of 32-element blocks.
#include "tensor/quantize_blocks.h"
#include "tensor/quantize_fit.h"

namespace heddle::quantize_detail {

namespace {

std::span<const float> small_block(const float* x) {
  return {x, static_cast<std::size_t>(kSmallBlock)};
}

std::uint8_t pack_nibbles(int low, int high) {
  return static_cast<std::uint8_t>(low | high << 4);
}

template <class Levels>
std::uint16_t fit_f16_scale(const float* x, Levels levels) {
  const auto xs = small_block(x);
  const double scale = fit_scale(xs, levels);
  const std::uint16_t nearest = finite_f16_bits(scale);
  const std::uint16_t covering = covering_f16_bits(scale);
  if (nearest == covering) return nearest;
  const auto error = [&](std::uint16_t bits) { return squared_error(xs, f16_value(bits), levels); };
  return error(covering) < error(nearest) ? covering : nearest;
}

struct AffineBits {
  std::uint16_t scale;
  std::uint16_t min;
  Affine rounded() const { return {f16_value(scale), f16_value(min)}; }
};

AffineBits fit_f16_affine(const float* x, int max_code) {
  const Affine fit = fit_affine(small_block(x), max_code);
  return {covering_f16_bits(fit.scale), finite_f16_bits(fit.min)};
}

template <class Block>
void store_five_bit_code(Block& block, int i, int code) {
  block.qs[i % 16] |= static_cast<std::uint8_t>((code & 15) << (i < 16 ? 0 : 4));
  block.qh[i / 8] |= static_cast<std::uint8_t>((code >> 4) << (i % 8));
}

template <class Levels, class Block>
void encode_four_bits(const float* x, Levels levels, Block& block) {
  block.d = fit_f16_scale(x, levels);
  const double scale = f16_value(block.d);
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = pack_nibbles(encode(x[j], scale, levels), encode(x[j + 16], scale, levels));
  }
}

}  // namespace

void encode_block(const float* x, BlockQ4_0& block) {
  encode_four_bits(x, LinearLevels{-8, 7}, block);
}

void encode_block(const float* x, BlockIq4Nl& block) {
  encode_four_bits(x, Iq4Levels{}, block);
}

void encode_block(const float* x, BlockQ4_1& block) {
  const AffineBits bits = fit_f16_affine(x, 15);
  block.d = bits.scale;
  block.m = bits.min;
  const Affine affine = bits.rounded();
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = pack_nibbles(encode(x[j], affine, 15), encode(x[j + 16], affine, 15));
  }
}

void encode_block(const float* x, BlockQ5_0& block) {
  constexpr LinearLevels kLevels{-16, 15};
  block.d = fit_f16_scale(x, kLevels);
  const double scale = f16_value(block.d);
  for (int i = 0; i < kSmallBlock; ++i) {
    store_five_bit_code(block, i, encode(x[i], scale, kLevels));
  }
}

void encode_block(const float* x, BlockQ5_1& block) {
  const AffineBits bits = fit_f16_affine(x, 31);
  block.d = bits.scale;
  block.m = bits.min;
  const Affine affine = bits.rounded();
  for (int i = 0; i < kSmallBlock; ++i) store_five_bit_code(block, i, encode(x[i], affine, 31));
}

void encode_block(const float* x, BlockQ8_0& block) {
  constexpr LinearLevels kLevels{-127, 127};
  block.d = fit_f16_scale(x, kLevels);
  const double scale = f16_value(block.d);
  for (int i = 0; i < kSmallBlock; ++i) {
    block.qs[i] = static_cast<std::int8_t>(kLevels.value(encode(x[i], scale, kLevels)));
  }
}

}  // namespace heddle::quantize_detail
