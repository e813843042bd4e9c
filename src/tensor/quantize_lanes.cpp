#include "tensor/quantize_lanes.h"

#include <algorithm>

#include "hwy/detect_compiler_arch.h"

#if HWY_ARCH_X86  // three levels are enough, and compile sooner
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#elif HWY_ARCH_ARM  // NEON alone: SVE's vectors cannot be members
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/quantize_lanes.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "tensor/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::quantize_detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kCandidates>;
using Vec = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));

HWY_INLINE HWY_ATTR Vec constant(float value) {
  return hn::Set(Tag(), value);
}

/// The nearest whole number of a value below 2^22: adding 1.5 * 2^23 leaves no room for a fraction.
HWY_INLINE HWY_ATTR Vec rounded(Vec value) {
  const Vec magic = constant(12582912.0f);
  return hn::Sub(hn::Add(value, magic), magic);
}

struct LinearLevels {
  Vec low, high;
  explicit HWY_ATTR LinearLevels(LevelRange range)
      : low(constant(range.low)), high(constant(range.high)) {}
  HWY_INLINE HWY_ATTR Vec nearest(Vec value) const {
    return rounded(hn::Min(hn::Max(value, low), high));
  }
};

struct Iq4Levels {
  explicit HWY_ATTR Iq4Levels(LevelRange) {}
  HWY_INLINE HWY_ATTR Vec nearest(Vec value) const {
    Vec level = constant(kIq4Codebook[0]);
    for (std::size_t i = 1; i < kIq4Codebook.size(); ++i) {
      const Vec middle = constant(0.5f * static_cast<float>(kIq4Codebook[i - 1] + kIq4Codebook[i]));
      level = hn::IfThenElse(hn::Gt(value, middle), constant(kIq4Codebook[i]), level);
    }
    return level;
  }
};

HWY_INLINE HWY_ATTR Vec inverse_or_zero(Vec scale) {
  const Vec zero = hn::Zero(Tag());
  return hn::IfThenElse(hn::Eq(scale, zero), zero, hn::Div(constant(1), scale));
}

template <class Levels>
HWY_INLINE HWY_ATTR void fit_scales_to(std::span<const float> xs, const Candidates& inverse,
                                       LevelRange range, ScaleCandidates& fits) {
  const Tag d;
  const Levels levels(range);
  for (int lane = 0; lane < kCandidates; lane += kLanes) {
    const Vec inverses = hn::Load(d, inverse.data() + lane);
    Vec xq = hn::Zero(d), qq = hn::Zero(d);
    for (const float x : xs) {
      const Vec xv = hn::Set(d, x);
      const Vec q = levels.nearest(hn::Mul(xv, inverses));
      xq = hn::Add(xq, hn::Mul(xv, q));
      qq = hn::Add(qq, hn::Mul(q, q));
    }
    const Vec scale = hn::Mul(xq, inverse_or_zero(qq));
    hn::Store(scale, d, fits.scale.data() + lane);
    hn::Store(hn::Mul(xq, scale), d, fits.explained.data() + lane);
  }
}

template <class Levels>
HWY_INLINE HWY_ATTR void scale_errors_of(std::span<const float> xs, const Candidates& scale,
                                         LevelRange range, Candidates& errors) {
  const Tag d;
  const Levels levels(range);
  for (int lane = 0; lane < kCandidates; lane += kLanes) {
    const Vec scales = hn::Load(d, scale.data() + lane);
    const Vec inverses = inverse_or_zero(scales);
    Vec sum = hn::Zero(d);
    for (const float x : xs) {
      const Vec xv = hn::Set(d, x);
      const Vec error = hn::Sub(xv, hn::Mul(levels.nearest(hn::Mul(xv, inverses)), scales));
      sum = hn::Add(sum, hn::Mul(error, error));
    }
    hn::Store(sum, d, errors.data() + lane);
  }
}

HWY_ATTR void fit_scales(std::span<const float> xs, const Candidates& inverse, LevelRange levels,
                         ScaleCandidates& fits) {
  if (levels.kind == LevelKind::linear)
    fit_scales_to<LinearLevels>(xs, inverse, levels, fits);
  else
    fit_scales_to<Iq4Levels>(xs, inverse, levels, fits);
}

HWY_ATTR void scale_errors(std::span<const float> xs, const Candidates& scale, LevelRange levels,
                           Candidates& errors) {
  if (levels.kind == LevelKind::linear)
    scale_errors_of<LinearLevels>(xs, scale, levels, errors);
  else
    scale_errors_of<Iq4Levels>(xs, scale, levels, errors);
}

struct Pair {
  Vec scale, min, inverse, max_code;
  HWY_ATTR Pair(Vec s, Vec m, float most)
      : scale(s), min(m), inverse(inverse_or_zero(s)), max_code(constant(most)) {}
  HWY_INLINE HWY_ATTR Vec code(Vec x) const {
    const Vec value = hn::Mul(hn::Sub(x, min), inverse);
    return rounded(hn::Min(hn::Max(value, hn::Zero(Tag())), max_code));
  }
};

HWY_INLINE HWY_ATTR Vec error_of(std::span<const float> xs, const Pair& pair) {
  const Tag d;
  Vec sum = hn::Zero(d);
  for (const float x : xs) {
    const Vec xv = hn::Set(d, x);
    const Vec error = hn::Sub(xv, hn::Add(hn::Mul(pair.code(xv), pair.scale), pair.min));
    sum = hn::Add(sum, hn::Mul(error, error));
  }
  return sum;
}

/// The least-squares pair for the codes of `trial`, or `trial` itself where they are all the same.
HWY_INLINE HWY_ATTR Pair improved(std::span<const float> xs, const Pair& trial, float max_code,
                                  float min_limit) {
  const Tag d;
  Vec q = hn::Zero(d), qq = hn::Zero(d), xq = hn::Zero(d), sum = hn::Zero(d);
  for (const float x : xs) {
    const Vec xv = hn::Set(d, x);
    const Vec code = trial.code(xv);
    q = hn::Add(q, code);
    qq = hn::Add(qq, hn::Mul(code, code));
    xq = hn::Add(xq, hn::Mul(xv, code));
    sum = hn::Add(sum, xv);
  }
  const Vec n = constant(static_cast<float>(xs.size())), limit = constant(min_limit);
  const Vec determinant = hn::Sub(hn::Mul(n, qq), hn::Mul(q, q));
  const Vec inverse = inverse_or_zero(determinant);
  Vec scale = hn::Mul(hn::Sub(hn::Mul(n, xq), hn::Mul(sum, q)), inverse);
  Vec min = hn::Mul(hn::Sub(hn::Mul(qq, sum), hn::Mul(q, xq)), inverse);
  const auto beyond = hn::Gt(min, limit);
  scale =
      hn::IfThenElse(beyond, hn::Mul(hn::Sub(xq, hn::Mul(limit, q)), inverse_or_zero(qq)), scale);
  min = hn::IfThenElse(beyond, limit, min);
  const auto good = hn::And(hn::Gt(determinant, hn::Zero(d)), hn::Gt(scale, hn::Zero(d)));
  return {hn::IfThenElse(good, scale, trial.scale), hn::IfThenElse(good, min, trial.min), max_code};
}

HWY_ATTR void fit_affines(std::span<const float> xs, float max_code, float min_limit,
                          AffineCandidates& pairs) {
  const Tag d;
  for (int lane = 0; lane < kCandidates; lane += kLanes) {
    const Pair trial(hn::Load(d, pairs.scale.data() + lane), hn::Load(d, pairs.min.data() + lane),
                     max_code);
    const Pair pair = improved(xs, trial, max_code, min_limit);
    hn::Store(pair.scale, d, pairs.scale.data() + lane);
    hn::Store(pair.min, d, pairs.min.data() + lane);
    hn::Store(error_of(xs, pair), d, pairs.error.data() + lane);
  }
}

HWY_ATTR void affine_errors(std::span<const float> xs, float max_code, AffineCandidates& pairs) {
  const Tag d;
  for (int lane = 0; lane < kCandidates; lane += kLanes) {
    const Pair pair(hn::Load(d, pairs.scale.data() + lane), hn::Load(d, pairs.min.data() + lane),
                    max_code);
    hn::Store(error_of(xs, pair), d, pairs.error.data() + lane);
  }
}

}  // namespace heddle::quantize_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::quantize_detail {

HWY_EXPORT(fit_scales);
HWY_EXPORT(scale_errors);
HWY_EXPORT(fit_affines);
HWY_EXPORT(affine_errors);

void fit_scales(std::span<const float> xs, const Candidates& inverse, LevelRange levels,
                ScaleCandidates& fits) {
  HWY_DYNAMIC_DISPATCH(fit_scales)(xs, inverse, levels, fits);
}

void scale_errors(std::span<const float> xs, const Candidates& scale, LevelRange levels,
                  Candidates& errors) {
  HWY_DYNAMIC_DISPATCH(scale_errors)(xs, scale, levels, errors);
}

void fit_affines(std::span<const float> xs, float max_code, float min_limit,
                 AffineCandidates& pairs) {
  HWY_DYNAMIC_DISPATCH(fit_affines)(xs, max_code, min_limit, pairs);
}

void affine_errors(std::span<const float> xs, float max_code, AffineCandidates& pairs) {
  HWY_DYNAMIC_DISPATCH(affine_errors)(xs, max_code, pairs);
}

int least_of(const Candidates& values) {
  return static_cast<int>(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace heddle::quantize_detail
#endif
