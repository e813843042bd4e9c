// Chains of multiplications by numbers and additions of numbers, which stay in registers from one
// to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::cpu {

/// y = x * factor + addend, both rounded. As they are here, neither changes any x.
struct AffineStep {
  float factor = 1.0f, addend = -0.0f;
};

/// Steps of one pass: their numbers fill half of the registers there are with AVX-512.
inline constexpr std::size_t kMostAffineSteps = 8;

/// All steps, any number of them, one after another on each of n elements. `out` may be `x`.
void affine_chain(const float* x, std::span<const AffineStep> steps, float* out, std::int64_t n);

}  // namespace heddle::cpu
