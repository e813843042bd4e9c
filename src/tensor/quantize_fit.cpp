#include "tensor/quantize_fit.h"

#include <algorithm>
#include <cmath>

#include "heddle/half.h"

namespace heddle::quantize_detail {

namespace {

constexpr double kLargestF16 = 65504.0;
/// Far below what f16 scales can represent; the scales themselves then stay within float.
constexpr int kLeastExponent = -64;

/// Candidate scales put the extreme value within one gap between levels of the last level.
float trim_of_candidate(int i) {
  return 2.0f * static_cast<float>(i) / (kCandidates - 1) - 1.0f;
}

float largest_magnitude(std::span<const float> xs) {
  float extreme = 0;
  for (const float x : xs) {
    if (std::fabs(x) > std::fabs(extreme)) extreme = x;
  }
  return extreme;
}

}  // namespace

template <int kElements>
Normalized<kElements>::Normalized(const float* x) {
  const float extreme = largest_magnitude({x, static_cast<std::size_t>(kElements)});
  int exponent = 0;
  std::frexp(extreme, &exponent);
  exponent = std::max(exponent, kLeastExponent);
  unit = std::ldexp(1.0, exponent);
  // Two steps, as 2^-128 and 2^64 are floats but the inverse of a float's largest power is not.
  const float half = std::ldexp(1.0f, -exponent / 2),
              rest = std::ldexp(1.0f, -exponent + exponent / 2);
  for (int i = 0; i < kElements; ++i) values[static_cast<std::size_t>(i)] = x[i] * half * rest;
}
template struct Normalized<kSmallBlock>;
template struct Normalized<kSuperBlock>;

std::uint16_t finite_f16_bits(double value) {
  return f32_to_f16_bits(static_cast<float>(std::clamp(value, -kLargestF16, kLargestF16)));
}

std::uint16_t covering_f16_bits(double value) {
  const std::uint16_t nearest = finite_f16_bits(value);
  const bool subnormal = (nearest & 0x7fffu) < 0x0400u;
  const bool too_small = std::fabs(f16_value(nearest)) < std::fabs(value);
  return subnormal && too_small ? static_cast<std::uint16_t>(nearest + 1) : nearest;
}

double f16_value(std::uint16_t bits) {
  return f16_bits_to_f32(bits);
}

int Iq4Levels::nearest_code(float value) const {
  const float doubled = 2 * value;
  int code = 0;
  for (const int half : {8, 4, 2, 1}) {  // bisection
    const int next = code + half;
    const int middle = kIq4Codebook[static_cast<std::size_t>(next - 1)] +
                       kIq4Codebook[static_cast<std::size_t>(next)];
    if (doubled > static_cast<float>(middle)) code = next;
  }
  return code;
}

template <class Levels>
float fit_scale(std::span<const float> xs, Levels levels) {
  const float extreme = largest_magnitude(xs);
  if (extreme == 0) return 0;
  float most = 0, scale = 0;
  for (const float end : {levels.range().low, levels.range().high}) {
    Candidates inverse;
    for (int i = 0; i < kCandidates; ++i) {
      inverse[static_cast<std::size_t>(i)] =
          (end + levels.mean_gap() * trim_of_candidate(i)) / extreme;
    }
    ScaleCandidates fits;
    fit_scales(xs, inverse, levels.range(), fits);
    for (std::size_t i = 0; i < kCandidates; ++i) {
      if (fits.explained[i] <= most) continue;
      most = fits.explained[i];
      scale = fits.scale[i];
    }
  }
  return scale;
}

template float fit_scale(std::span<const float>, LinearLevels);
template float fit_scale(std::span<const float>, Iq4Levels);

Affine fit_affine(std::span<const float> xs, int max_code, float min_limit) {
  const auto [lowest, highest] = std::minmax_element(xs.begin(), xs.end());
  const float min = std::min(*lowest, min_limit);
  const float range = *highest - min;
  if (range == 0) return {0, min};
  AffineCandidates pairs;
  pairs.min.fill(min);
  for (int i = 0; i < kCandidates; ++i) {
    pairs.scale[static_cast<std::size_t>(i)] =
        range / (static_cast<float>(max_code) + trim_of_candidate(i));
  }
  fit_affines(xs, static_cast<float>(max_code), min_limit, pairs);
  const auto best = static_cast<std::size_t>(least_of(pairs.error));
  return {pairs.scale[best], pairs.min[best]};
}

}  // namespace heddle::quantize_detail
