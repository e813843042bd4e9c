#include "tensor/quantize_fit.h"

#include <algorithm>
#include <cmath>

#include "heddle/half.h"

namespace heddle::quantize_detail {

namespace {

constexpr double kLargestF16 = 65504.0;
// Candidate scales put the extreme value within one gap between levels of the last level.
constexpr int kCandidates = 21;

double trim_of_candidate(int i) {
  return 2.0 * i / (kCandidates - 1) - 1.0;
}

float largest_magnitude(std::span<const float> xs) {
  float extreme = 0;
  for (const float x : xs) {
    if (std::fabs(x) > std::fabs(extreme)) extreme = x;
  }
  return extreme;
}

struct ScaleFit {
  double scale = 0;
  double explained = 0;  // by how much the scale lowers the sum of squares
};

// The least-squares scale for the codes that `trial` rounds to.
template <class Levels>
ScaleFit refine_scale(std::span<const float> xs, double trial, Levels levels) {
  const double inverse = 1.0 / trial;
  double xq = 0;
  double qq = 0;
  for (const float x : xs) {
    const double q = levels.value(levels.nearest_code(x * inverse));
    xq += x * q;
    qq += q * q;
  }
  if (qq == 0) return {};
  return {xq / qq, xq * xq / qq};
}

struct Moments {
  double count, q, qq, x, xq;
};

Moments moments_of_codes(std::span<const float> xs, Affine trial, int max_code) {
  Moments sums{static_cast<double>(xs.size()), 0, 0, 0, 0};
  for (const float x : xs) {
    const double q = encode(x, trial, max_code);
    sums.q += q;
    sums.qq += q * q;
    sums.x += x;
    sums.xq += x * q;
  }
  return sums;
}

// The least-squares pair for given codes.
Affine solve(const Moments& sums, Affine trial, double min_limit) {
  const double determinant = sums.count * sums.qq - sums.q * sums.q;
  if (determinant <= 0) return trial;  // one code only: nothing to solve
  Affine best;
  best.scale = (sums.count * sums.xq - sums.x * sums.q) / determinant;
  best.min = (sums.qq * sums.x - sums.q * sums.xq) / determinant;
  if (best.min > min_limit) {
    best.min = min_limit;
    best.scale = (sums.xq - min_limit * sums.q) / sums.qq;
  }
  return best.scale > 0 ? best : trial;
}

}  // namespace

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

int Iq4Levels::nearest_code(double value) const {
  const double doubled = 2 * value;
  int code = 0;
  for (const int half : {8, 4, 2, 1}) {  // bisection
    const int next = code + half;
    if (doubled > kIq4Codebook[next - 1] + kIq4Codebook[next]) code = next;
  }
  return code;
}

template <class Levels>
double fit_scale(std::span<const float> xs, Levels levels) {
  const double extreme = largest_magnitude(xs);
  if (extreme == 0) return 0;
  ScaleFit best;
  for (const double end : {levels.lowest(), levels.highest()}) {
    for (int i = 0; i < kCandidates; ++i) {
      const double reached = end + levels.mean_gap() * trim_of_candidate(i);
      const ScaleFit fit = refine_scale(xs, extreme / reached, levels);
      if (fit.explained > best.explained) best = fit;
    }
  }
  return best.scale;
}

template double fit_scale(std::span<const float>, LinearLevels);
template double fit_scale(std::span<const float>, Iq4Levels);

double squared_error(std::span<const float> xs, Affine affine, int max_code) {
  double sum = 0;
  for (const float x : xs) {
    const double error = x - (affine.scale * encode(x, affine, max_code) + affine.min);
    sum += error * error;
  }
  return sum;
}

Affine fit_affine(std::span<const float> xs, int max_code, double min_limit) {
  const auto [lowest, highest] = std::minmax_element(xs.begin(), xs.end());
  const double min = std::min<double>(*lowest, min_limit);
  const double range = *highest - min;
  Affine best{0, min};
  if (range == 0) return best;
  double least = squared_error(xs, best, max_code);
  for (int i = 0; i < kCandidates; ++i) {
    const Affine trial{range / (max_code + trim_of_candidate(i)), min};
    const Affine fit = solve(moments_of_codes(xs, trial, max_code), trial, min_limit);
    const double error = squared_error(xs, fit, max_code);
    if (error < least) {
      least = error;
      best = fit;
    }
  }
  return best;
}

}  // namespace heddle::quantize_detail
