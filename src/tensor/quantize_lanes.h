// Sixteen candidate scales for a block at once, a vector lane each. A lane adds up in the order of
// the elements, without fused multiplications, so that results do not depend on the processor.
#pragma once

#include <array>
#include <span>

namespace heddle::quantize_detail {

inline constexpr int kCandidates = 16;
struct alignas(64) Candidates : std::array<float, kCandidates> {};

/// Levels that codes stand for.
enum class LevelKind { linear, iq4 };
struct LevelRange {
  LevelKind kind;
  float low, high;
};

/// The least-squares scales for the codes that 1 / `inverse` rounds `xs` to, and by how much each
/// lowers the sum of squares.
struct ScaleCandidates {
  Candidates scale, explained;
};
void fit_scales(std::span<const float> xs, const Candidates& inverse, LevelRange levels,
                ScaleCandidates& fits);

/// Sums of squared errors of `xs` with these scales; 0 makes all zeros.
void scale_errors(std::span<const float> xs, const Candidates& scale, LevelRange levels,
                  Candidates& errors);

/// x = scale * code + min, with codes from 0 to a largest.
struct AffineCandidates {
  Candidates scale, min, error;
};
/// Improves pairs, whose scales are not 0, to the least-squares ones for the codes that they round
/// to, with a min of at most `min_limit`, and tells their errors.
void fit_affines(std::span<const float> xs, float max_code, float min_limit,
                 AffineCandidates& pairs);
/// Only tells the errors. A scale of 0 makes all codes 0.
void affine_errors(std::span<const float> xs, float max_code, AffineCandidates& pairs);

/// The place of the least value, the first of equals.
int least_of(const Candidates& values);

}  // namespace heddle::quantize_detail
