#include "device/cpu/affine_chain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/affine_chain.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#ifndef HEDDLE_CPU_AFFINE_CHAIN_ONCE
#define HEDDLE_CPU_AFFINE_CHAIN_ONCE
namespace heddle::cpu {
using AffinePass = void (*)(const float* x, const AffineStep* steps, float* out, std::int64_t n);
/// By number of steps, from one on.
using AffinePasses = std::array<AffinePass, kMostAffineSteps>;
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <std::size_t kSteps>
HWY_NOINLINE HWY_ATTR void affine_pass(const float* x, const AffineStep* steps, float* out,
                                       std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> factors[kSteps], addends[kSteps];
  for (std::size_t s = 0; s < kSteps; ++s) {
    factors[s] = hn::Set(d, steps[s].factor);
    addends[s] = hn::Set(d, steps[s].addend);
  }
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto y = hn::LoadU(d, x + i);
    for (std::size_t s = 0; s < kSteps; ++s) y = hn::Add(hn::Mul(y, factors[s]), addends[s]);
    hn::StoreU(y, d, out + i);
  }
  for (; i < n; ++i) {
    float y = x[i];
    for (std::size_t s = 0; s < kSteps; ++s) y = y * steps[s].factor + steps[s].addend;
    out[i] = y;
  }
}

template <std::size_t... kCounts>
constexpr AffinePasses passes_of(std::index_sequence<kCounts...>) {
  return {affine_pass<kCounts + 1>...};
}

const AffinePasses& affine_passes() {
  static constexpr AffinePasses kPasses = passes_of(std::make_index_sequence<kMostAffineSteps>());
  return kPasses;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const AffinePasses& passes() {
  HEDDLE_SIMD_RETURN(affine_passes);
}
}  // namespace

void affine_chain(const float* x, std::span<const AffineStep> steps, float* out, std::int64_t n) {
  while (!steps.empty()) {
    const std::size_t now = std::min(steps.size(), kMostAffineSteps);
    passes()[now - 1](x, steps.data(), out, n);
    x = out;
    steps = steps.subspan(now);
  }
}

}  // namespace heddle::cpu
#endif
