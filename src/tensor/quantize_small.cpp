// The types of 32-element blocks.
#include "tensor/quantize_blocks.h"
#include "tensor/quantize_fit.h"

namespace heddle::quantize_detail {

namespace {

using SmallBlock = Normalized<kSmallBlock>;

std::uint8_t pack_nibbles(int low, int high) {
  return static_cast<std::uint8_t>(low | high << 4);
}

template <class Levels>
std::uint16_t fit_f16_scale(const SmallBlock& block, Levels levels) {
  const double scale = block.unit * fit_scale(std::span(block.values), levels);
  const std::uint16_t nearest = finite_f16_bits(scale);
  const std::uint16_t covering = covering_f16_bits(scale);
  if (nearest == covering) return nearest;
  Candidates scales{}, errors;
  scales[0] = static_cast<float>(f16_value(nearest) / block.unit);
  scales[1] = static_cast<float>(f16_value(covering) / block.unit);
  scale_errors(block.values, scales, levels.range(), errors);
  return errors[1] < errors[0] ? covering : nearest;
}

/// A block fitted to levels, which then tells the codes of its elements.
template <class Levels>
class ScaledBlock {
 public:
  ScaledBlock(const float* x, Levels levels)
      : block_(x),
        levels_(levels),
        scale_(fit_f16_scale(block_, levels)),
        inverse_(inverse_or_zero(static_cast<float>(f16_value(scale_) / block_.unit))) {}

  std::uint16_t scale() const { return scale_; }
  int code(int i) const {
    return encode(block_.values[static_cast<std::size_t>(i)], inverse_, levels_);
  }

 private:
  SmallBlock block_;
  Levels levels_;
  std::uint16_t scale_;
  float inverse_;
};

/// The same with a scale and a min.
class AffineBlock {
 public:
  AffineBlock(const float* x, int max_code) : block_(x), max_code_(max_code) {
    const Affine fit = fit_affine(block_.values, max_code);
    scale_ = covering_f16_bits(fit.scale * block_.unit);
    min_ = finite_f16_bits(fit.min * block_.unit);
    rounded_ = {static_cast<float>(f16_value(scale_) / block_.unit),
                static_cast<float>(f16_value(min_) / block_.unit)};
    inverse_ = inverse_or_zero(rounded_.scale);
  }

  std::uint16_t scale() const { return scale_; }
  std::uint16_t min() const { return min_; }
  int code(int i) const {
    return encode(block_.values[static_cast<std::size_t>(i)], rounded_, inverse_, max_code_);
  }

 private:
  SmallBlock block_;
  int max_code_;
  std::uint16_t scale_, min_;
  Affine rounded_;
  float inverse_;
};

template <class Block>
void store_five_bit_code(Block& block, int i, int code) {
  block.qs[i % 16] |= static_cast<std::uint8_t>((code & 15) << (i < 16 ? 0 : 4));
  block.qh[i / 8] |= static_cast<std::uint8_t>((code >> 4) << (i % 8));
}

template <class Levels, class Block>
void encode_four_bits(const float* x, Levels levels, Block& block) {
  const ScaledBlock fit(x, levels);
  block.d = fit.scale();
  for (int j = 0; j < 16; ++j) block.qs[j] = pack_nibbles(fit.code(j), fit.code(j + 16));
}

}  // namespace

void encode_block(const float* x, BlockQ4_0& block) {
  encode_four_bits(x, LinearLevels{-8, 7}, block);
}

void encode_block(const float* x, BlockIq4Nl& block) {
  encode_four_bits(x, Iq4Levels{}, block);
}

void encode_block(const float* x, BlockQ4_1& block) {
  const AffineBlock fit(x, 15);
  block.d = fit.scale();
  block.m = fit.min();
  for (int j = 0; j < 16; ++j) block.qs[j] = pack_nibbles(fit.code(j), fit.code(j + 16));
}

void encode_block(const float* x, BlockQ5_0& block) {
  const ScaledBlock fit(x, LinearLevels{-16, 15});
  block.d = fit.scale();
  for (int i = 0; i < kSmallBlock; ++i) store_five_bit_code(block, i, fit.code(i));
}

void encode_block(const float* x, BlockQ5_1& block) {
  const AffineBlock fit(x, 31);
  block.d = fit.scale();
  block.m = fit.min();
  for (int i = 0; i < kSmallBlock; ++i) store_five_bit_code(block, i, fit.code(i));
}

void encode_block(const float* x, BlockQ8_0& block) {
  constexpr LinearLevels kLevels{-127, 127};
  const ScaledBlock fit(x, kLevels);
  block.d = fit.scale();
  for (int i = 0; i < kSmallBlock; ++i) {
    block.qs[i] = static_cast<std::int8_t>(kLevels.low + fit.code(i));
  }
}

}  // namespace heddle::quantize_detail
