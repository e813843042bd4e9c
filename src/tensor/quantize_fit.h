// Finding scales that minimise the squared error of a rounded block. Without knowing what a weight
// will be multiplied by, all errors count alike.
//
// Blocks are fitted as multiples of a power of two about their largest magnitude, so that any
// finite float can be squared: Normalized holds the elements, and `unit`, in which scales are
// counted while they are searched for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tensor/blocks.h"
#include "tensor/quantize_lanes.h"

namespace heddle::quantize_detail {

template <int kElements>
struct Normalized {
  explicit Normalized(const float* x);
  std::span<const float> part(int begin, int size) const {
    return {values.data() + begin, static_cast<std::size_t>(size)};
  }
  std::array<float, kElements> values;
  double unit;  // x = unit * values
};
extern template struct Normalized<kSmallBlock>;
extern template struct Normalized<kSuperBlock>;

/// `value`, below 2^22, to the nearest integer in [low, high].
inline int round_clamped(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  constexpr float kMagic = 12582912.0f;  // leaves no room for a fraction; as in quantize_lanes
  return static_cast<int>((value + kMagic) - kMagic);
}

/// f16 bits of `value`, saturated so that a scale is never infinite.
std::uint16_t finite_f16_bits(double value);

/// The same for a scale, rounded away from zero where f16 is coarse (below 2^-14), so that the
/// codes still cover the range.
std::uint16_t covering_f16_bits(double value);
double f16_value(std::uint16_t bits);

/// Consecutive integers from `low`: code q stands for low + q.
struct LinearLevels {
  int low;
  int high;
  int nearest_code(float value) const { return round_clamped(value, low, high) - low; }
  LevelRange range() const {
    return {LevelKind::linear, static_cast<float>(low), static_cast<float>(high)};
  }
  float mean_gap() const { return 1; }
};

/// iq4's uneven levels.
struct Iq4Levels {
  int nearest_code(float value) const;
  LevelRange range() const { return {LevelKind::iq4, kIq4Codebook.front(), kIq4Codebook.back()}; }
  float mean_gap() const { return (range().high - range().low) / 15; }
};

/// The code of `x` where a level's value is multiplied by 1 / `inverse`; 0 for a scale of 0.
template <class Levels>
int encode(float x, float inverse, Levels levels) {
  return levels.nearest_code(x * inverse);
}
inline float inverse_or_zero(float scale) {
  return scale == 0 ? 0 : 1 / scale;
}

/// The scale, of either sign, that represents `xs` best by `levels`; 0 when all are 0.
template <class Levels>
float fit_scale(std::span<const float> xs, Levels levels);
extern template float fit_scale(std::span<const float>, LinearLevels);
extern template float fit_scale(std::span<const float>, Iq4Levels);

/// x = scale * code + min, with codes in [0, max_code].
struct Affine {
  float scale = 0;
  float min = 0;
};

inline int encode(float x, Affine affine, float inverse, int max_code) {
  return round_clamped((x - affine.min) * inverse, 0, max_code);
}

/// The best pair for `xs` with a non-negative scale and a min of at most `min_limit`.
Affine fit_affine(std::span<const float> xs, int max_code,
                  float min_limit = std::numeric_limits<float>::max());

}  // namespace heddle::quantize_detail
