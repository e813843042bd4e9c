#include "device/cpu/affine_chain.h"

#include <cstring>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/affine_chain.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math_basics-inl.h"

#ifndef HEDDLE_CPU_AFFINE_CHAIN_ONCE
#define HEDDLE_CPU_AFFINE_CHAIN_ONCE
namespace heddle::cpu {
using AffineChain = void (*)(const float* x, std::span<const AffineStep> steps, float* out,
                             std::int64_t n);
struct AffineChains {
  AffineChain plain, streamed;
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

/// So many vectors go through a step side by side: as each waits for its product before its sum,
/// and for that before its next step, fewer would leave the units for both idle.
constexpr std::int64_t kSideBySide = 8;

template <std::int64_t kVectors, Stores kStores>
HWY_INLINE HWY_ATTR void affine_vectors(const float* x, std::span<const AffineStep> steps,
                                        float* out) {
  const hn::ScalableTag<float> d;
  static_assert(hn::MaxLanes(d) <= AffineStep::kLanes);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> y[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) y[v] = hn::LoadU(d, x + v * lanes);
  for (const AffineStep& step : steps) {
    const auto factor = hn::Load(d, step.factors.data()), addend = hn::Load(d, step.addends.data());
    for (std::int64_t v = 0; v < kVectors; ++v) y[v] = hn::Mul(y[v], factor);
    for (std::int64_t v = 0; v < kVectors; ++v) y[v] = hn::Add(y[v], addend);
  }
  for (std::int64_t v = 0; v < kVectors; ++v) put<kStores>(y[v], out + v * lanes);
}

/// Fewer elements than a vector has, as part of one.
HWY_INLINE HWY_ATTR void affine_rest(const float* x, std::span<const AffineStep> steps, float* out,
                                     std::int64_t n) {
  HWY_ALIGN float rest[hn::MaxLanes(hn::ScalableTag<float>())] = {};
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  std::memcpy(rest, x, bytes);
  affine_vectors<1, Stores::cached>(rest, steps, rest);
  std::memcpy(out, rest, bytes);
}

template <Stores kStores>
HWY_ATTR void affine_array(const float* x, std::span<const AffineStep> steps, float* out,
                           std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t many = kSideBySide * lanes;
  std::int64_t i = 0;
  for (; i + many <= n; i += many) affine_vectors<kSideBySide, kStores>(x + i, steps, out + i);
  for (; i + lanes <= n; i += lanes) affine_vectors<1, kStores>(x + i, steps, out + i);
  if (i < n) affine_rest(x + i, steps, out + i, n - i);
}

HWY_ATTR void affine_streamed(const float* x, std::span<const AffineStep> steps, float* out,
                              std::int64_t n) {
  constexpr std::size_t kLine = 64;
  const auto odd =
      static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(out) % kLine / sizeof(float));
  const std::int64_t before = odd < n ? odd : n;
  affine_array<Stores::cached>(x, steps, out, before);
  affine_array<Stores::streamed>(x + before, steps, out + before, n - before);
}

const AffineChains& affine_chains() {
  static constexpr AffineChains kChains{affine_array<Stores::cached>, affine_streamed};
  return kChains;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const AffineChains& chains() {
  HEDDLE_SIMD_RETURN(affine_chains);
}
}  // namespace

void affine_chain(const float* x, std::span<const AffineStep> steps, float* out, std::int64_t n) {
  chains().plain(x, steps, out, n);
}
void affine_chain_streamed(const float* x, std::span<const AffineStep> steps, float* out,
                           std::int64_t n) {
  chains().streamed(x, steps, out, n);
}

}  // namespace heddle::cpu
#endif
