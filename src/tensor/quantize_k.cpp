// The types of 256-element super-blocks: sub-blocks are fitted on their own, their scales are
// rounded against the super-block's, and each is then moved by one step where that fits better.
#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/quantize_blocks.h"
#include "tensor/quantize_fit.h"

namespace heddle::quantize_detail {

namespace {

using SuperBlock = Normalized<kSuperBlock>;

template <int kSubBlocks>
std::span<const float> sub_block(const SuperBlock& block, int s) {
  constexpr int kSize = kSuperBlock / kSubBlocks;
  return block.part(s * kSize, kSize);
}

using Codes = std::array<std::uint8_t, kSuperBlock>;

template <int kSubBlocks>
struct SignedFit {  // x = d * scales * level(code)
  std::uint16_t d = 0;
  std::array<int, kSubBlocks> scales{};
  Codes codes{};
};

struct ScaleRange {
  int low;
  int high;
};

/// The best of the scales about `wanted`; of equals, the nearest to it.
int best_scale(std::span<const float> xs, float d, float wanted, LevelRange levels,
               ScaleRange range) {
  const int middle = round_clamped(wanted / d, range.low, range.high);
  std::array<int, kCandidates> tried;
  Candidates scales, errors;
  for (int i = 0; i < kCandidates; ++i) {
    const int step = (i + 1) / 2 * (i % 2 == 0 ? 1 : -1);  // 0, -1, 1, -2, 2, ...
    const auto at = static_cast<std::size_t>(i);
    tried[at] = std::clamp(middle + step, range.low, range.high);
    scales[at] = d * static_cast<float>(tried[at]);
  }
  scale_errors(xs, scales, levels, errors);
  return tried[static_cast<std::size_t>(least_of(errors))];
}

template <int kSubBlocks, class Levels>
SignedFit<kSubBlocks> fit_signed(const float* x, Levels levels, ScaleRange range) {
  const SuperBlock block(x);
  std::array<float, kSubBlocks> wanted;
  for (int s = 0; s < kSubBlocks; ++s) {
    wanted[s] = fit_scale(sub_block<kSubBlocks>(block, s), levels);
  }
  const float extreme = *std::max_element(
      wanted.begin(), wanted.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  SignedFit<kSubBlocks> fit;
  fit.d = covering_f16_bits(block.unit * extreme / range.low);
  const auto d = static_cast<float>(f16_value(fit.d) / block.unit);
  for (int s = 0; s < kSubBlocks; ++s) {
    const auto xs = sub_block<kSubBlocks>(block, s);
    fit.scales[s] = d == 0 ? 0 : best_scale(xs, d, wanted[s], levels.range(), range);
    const float inverse = inverse_or_zero(d * static_cast<float>(fit.scales[s]));
    std::uint8_t* codes = fit.codes.data() + s * xs.size();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      codes[i] = static_cast<std::uint8_t>(encode(xs[i], inverse, levels));
    }
  }
  return fit;
}

template <int kSubBlocks>
struct AffineFit {  // x = d * scale * code - dmin * min
  std::uint16_t d = 0;
  std::uint16_t dmin = 0;
  std::array<ScaleMin, kSubBlocks> subs{};
  Codes codes{};
};

struct SuperScales {
  float d;
  float dmin;
  Affine operator()(ScaleMin sub) const {
    return {d * static_cast<float>(sub.scale), -dmin * static_cast<float>(sub.min)};
  }
};

/// The best of the pairs about `wanted`; of equals, the nearest to it.
ScaleMin best_scale_min(std::span<const float> xs, SuperScales super, Affine wanted, int max_code,
                        int max_scale) {
  const auto rounded = [max_scale](float value, float unit) {
    return unit == 0 ? 0 : round_clamped(value / unit, 0, max_scale);
  };
  const ScaleMin middle{rounded(wanted.scale, super.d), rounded(-wanted.min, super.dmin)};
  std::array<ScaleMin, kCandidates> tried;
  tried.fill(middle);
  constexpr int kSteps[] = {0, -1, 1, -2, 2};
  AffineCandidates pairs;
  for (std::size_t i = 0; i < kCandidates; ++i) {
    if (i < 15) {
      tried[i].scale = std::clamp(middle.scale + kSteps[i / 5], 0, max_scale);
      tried[i].min = std::clamp(middle.min + kSteps[i % 5], 0, max_scale);
    }
    const Affine pair = super(tried[i]);
    pairs.scale[i] = pair.scale;
    pairs.min[i] = pair.min;
  }
  affine_errors(xs, static_cast<float>(max_code), pairs);
  return tried[static_cast<std::size_t>(least_of(pairs.error))];
}

template <int kSubBlocks>
AffineFit<kSubBlocks> fit_affine_blocks(const float* x, int max_code, int max_scale) {
  const SuperBlock block(x);
  std::array<Affine, kSubBlocks> wanted;
  Affine extreme;
  for (int s = 0; s < kSubBlocks; ++s) {
    wanted[s] = fit_affine(sub_block<kSubBlocks>(block, s), max_code, 0.0f);
    extreme.scale = std::max(extreme.scale, wanted[s].scale);
    extreme.min = std::min(extreme.min, wanted[s].min);
  }
  AffineFit<kSubBlocks> fit;
  fit.d = covering_f16_bits(block.unit * extreme.scale / max_scale);
  fit.dmin = covering_f16_bits(block.unit * -extreme.min / max_scale);
  const SuperScales super{static_cast<float>(f16_value(fit.d) / block.unit),
                          static_cast<float>(f16_value(fit.dmin) / block.unit)};
  for (int s = 0; s < kSubBlocks; ++s) {
    const auto xs = sub_block<kSubBlocks>(block, s);
    fit.subs[s] = best_scale_min(xs, super, wanted[s], max_code, max_scale);
    const Affine affine = super(fit.subs[s]);
    const float inverse = inverse_or_zero(affine.scale);
    std::uint8_t* codes = fit.codes.data() + s * xs.size();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      codes[i] = static_cast<std::uint8_t>(encode(xs[i], affine, inverse, max_code));
    }
  }
  return fit;
}

void pack_two_bits(const Codes& codes, std::uint8_t (&qs)[64]) {
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    qs[32 * half + i % 32] |= static_cast<std::uint8_t>((codes[i] & 3) << (2 * quarter));
  }
}

void pack_four_bits(const Codes& codes, std::uint8_t (&qs)[128]) {
  for (int i = 0; i < kSuperBlock; ++i) {
    const int pair = i / 64;
    const int shift = i % 64 < 32 ? 0 : 4;
    qs[32 * pair + i % 32] |= static_cast<std::uint8_t>((codes[i] & 15) << shift);
  }
}

// The inverse of k_scale_min.
void pack_scale_mins(const std::array<ScaleMin, 8>& subs, std::uint8_t (&scales)[12]) {
  for (int s = 0; s < 4; ++s) {
    const ScaleMin& late = subs[s + 4];
    scales[s] = static_cast<std::uint8_t>(subs[s].scale | late.scale >> 4 << 6);
    scales[s + 4] = static_cast<std::uint8_t>(subs[s].min | late.min >> 4 << 6);
    scales[s + 8] = static_cast<std::uint8_t>((late.scale & 15) | (late.min & 15) << 4);
  }
}

// The inverse of q3k_scale.
void pack_q3k_scales(const std::array<int, 16>& values, std::uint8_t (&scales)[12]) {
  for (int s = 0; s < 16; ++s) {
    const int code = values[s] + 32;
    scales[s % 8] |= static_cast<std::uint8_t>((code & 15) << (s < 8 ? 0 : 4));
    scales[8 + s % 4] |= static_cast<std::uint8_t>((code >> 4) << (2 * (s / 4)));
  }
}

}  // namespace

void encode_block(const float* x, BlockQ2K& block) {
  const auto fit = fit_affine_blocks<16>(x, 3, 15);
  block.d = fit.d;
  block.dmin = fit.dmin;
  for (int s = 0; s < 16; ++s) {
    block.scales[s] = static_cast<std::uint8_t>(fit.subs[s].scale | fit.subs[s].min << 4);
  }
  pack_two_bits(fit.codes, block.qs);
}

void encode_block(const float* x, BlockQ3K& block) {
  const auto fit = fit_signed<16>(x, LinearLevels{-4, 3}, {-32, 31});
  block.d = fit.d;
  pack_q3k_scales(fit.scales, block.scales);
  pack_two_bits(fit.codes, block.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    block.hmask[i % 32] |= static_cast<std::uint8_t>((fit.codes[i] >> 2) << (i / 32));
  }
}

void encode_block(const float* x, BlockQ4K& block) {
  const auto fit = fit_affine_blocks<8>(x, 15, 63);
  block.d = fit.d;
  block.dmin = fit.dmin;
  pack_scale_mins(fit.subs, block.scales);
  pack_four_bits(fit.codes, block.qs);
}

void encode_block(const float* x, BlockQ5K& block) {
  const auto fit = fit_affine_blocks<8>(x, 31, 63);
  block.d = fit.d;
  block.dmin = fit.dmin;
  pack_scale_mins(fit.subs, block.scales);
  pack_four_bits(fit.codes, block.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    block.qh[i % 32] |= static_cast<std::uint8_t>((fit.codes[i] >> 4) << (i / 32));
  }
}

void encode_block(const float* x, BlockQ6K& block) {
  const auto fit = fit_signed<16>(x, LinearLevels{-32, 31}, {-128, 127});
  block.d = fit.d;
  for (int s = 0; s < 16; ++s) block.scales[s] = static_cast<std::int8_t>(fit.scales[s]);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int l = i % 32;
    std::uint8_t& low = block.ql[64 * half + 32 * (quarter % 2) + l];
    low |= static_cast<std::uint8_t>((fit.codes[i] & 15) << (quarter < 2 ? 0 : 4));
    block.qh[32 * half + l] |= static_cast<std::uint8_t>((fit.codes[i] >> 4) << (2 * quarter));
  }
}

void encode_block(const float* x, BlockIq4Xs& block) {
  const auto fit = fit_signed<8>(x, Iq4Levels{}, {-32, 31});
  block.d = fit.d;
  for (int s = 0; s < 8; ++s) {
    const int code = fit.scales[s] + 32;
    block.scales_l[s / 2] |= static_cast<std::uint8_t>((code & 15) << (4 * (s % 2)));
    block.scales_h |= static_cast<std::uint16_t>((code >> 4) << (2 * s));
    for (int j = 0; j < 16; ++j) {
      const std::uint8_t* codes = fit.codes.data() + 32 * s;
      block.qs[16 * s + j] = static_cast<std::uint8_t>(codes[j] | codes[j + 16] << 4);
    }
  }
}

}  // namespace heddle::quantize_detail
