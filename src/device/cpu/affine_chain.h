// Chains of multiplications by numbers and additions of numbers, which stay in registers from one
// to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::cpu {

/// y = x * factor + addend, both rounded. Each number stands there for every lane of a vector, as
/// to fill one with a number takes as long as to compute with it.
struct AffineStep {
  static constexpr std::size_t kLanes = 16;
  alignas(64) std::array<float, kLanes> factors;
  alignas(64) std::array<float, kLanes> addends;
};

inline AffineStep affine_step(float factor, float addend) {
  AffineStep step;
  step.factors.fill(factor);
  step.addends.fill(addend);
  return step;
}
/// As factor and addend these change no x.
inline constexpr float kNoFactor = 1.0f, kNoAddend = -0.0f;

/// All steps, any number of them, one after another on each of n elements. `out` may be `x`.
void affine_chain(const float* x, std::span<const AffineStep> steps, float* out, std::int64_t n);

/// The same past the caches, which takes a StreamFence. Best where `out` begins a cache line.
void affine_chain_streamed(const float* x, std::span<const AffineStep> steps, float* out,
                           std::int64_t n);

}  // namespace heddle::cpu
