// Finding scales that minimise the squared error of a rounded block. All sums are in double, so
// that any finite float can be squared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "tensor/blocks.h"

namespace heddle::quantize_detail {

/// `value` to the nearest integer in [low, high], halves away from zero.
inline int round_clamped(double value, int low, int high) {
  if (value <= low) return low;
  if (value >= high) return high;
  return static_cast<int>(value < 0 ? value - 0.5 : value + 0.5);
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
  int nearest_code(double value) const { return round_clamped(value, low, high) - low; }
  double value(int code) const { return low + code; }
  double lowest() const { return low; }
  double highest() const { return high; }
  double mean_gap() const { return 1; }
};

/// iq4's uneven levels.
struct Iq4Levels {
  int nearest_code(double value) const;
  double value(int code) const { return kIq4Codebook[static_cast<std::size_t>(code)]; }
  double lowest() const { return kIq4Codebook.front(); }
  double highest() const { return kIq4Codebook.back(); }
  double mean_gap() const { return (highest() - lowest()) / 15; }
};

/// The code of `x` where a level's value is multiplied by `scale`.
template <class Levels>
int encode(float x, double scale, Levels levels) {
  return levels.nearest_code(scale == 0 ? 0.0 : x / scale);
}

template <class Levels>
double squared_error(std::span<const float> xs, double scale, Levels levels) {
  double sum = 0;
  for (const float x : xs) {
    const double error = x - scale * levels.value(encode(x, scale, levels));
    sum += error * error;
  }
  return sum;
}

/// The scale, of either sign, that represents `xs` best by `levels`; 0 when all are 0.
template <class Levels>
double fit_scale(std::span<const float> xs, Levels levels);
extern template double fit_scale(std::span<const float>, LinearLevels);
extern template double fit_scale(std::span<const float>, Iq4Levels);

/// x = scale * code + min, with codes in [0, max_code].
struct Affine {
  double scale = 0;
  double min = 0;
};

inline int encode(float x, Affine affine, int max_code) {
  if (affine.scale == 0) return 0;
  return round_clamped((x - affine.min) / affine.scale, 0, max_code);
}

double squared_error(std::span<const float> xs, Affine affine, int max_code);

/// The best pair for `xs` with a non-negative scale and a min of at most `min_limit`.
Affine fit_affine(std::span<const float> xs, int max_code,
                  double min_limit = std::numeric_limits<double>::infinity());

}  // namespace heddle::quantize_detail
