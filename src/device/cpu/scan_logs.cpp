// Sums of e^(x - shift) along a line, and their logarithms, by blocks. What is further than
// kFurthestLogs below the largest number is left to others, who compute in double, one by one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu/isa.h"
#include "device/cpu/scan_ops.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/scan_logs.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"

#ifndef HEDDLE_CPU_SCAN_LOGS_ONCE
#define HEDDLE_CPU_SCAN_LOGS_ONCE
namespace heddle::cpu {
using LogSums = bool (*)(const float* x, std::int64_t n, bool reverse, bool exclusive, double& sum,
                         float* out);
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON

constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

struct Extent {
  float low, high;
};
HWY_INLINE HWY_ATTR Extent extent_of(const float* x, std::int64_t n) {
  const FloatTag d;
  FloatVec low = constant(x[0]), high = low, poison = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) {
    const FloatVec v = hn::LoadU(d, x + i);
    low = hn::Min(low, v), high = hn::Max(high, v);
    poison = hn::Add(poison, hn::Sub(v, v));  // NaN for what is not finite
  }
  Extent extent{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high))};
  float rest = hn::GetLane(hn::SumOfLanes(d, poison));
  for (; i < n; ++i) {
    extent.low = std::min(extent.low, x[i]);
    extent.high = std::max(extent.high, x[i]);
    rest += x[i] - x[i];
  }
  if (rest != 0) extent.high = std::numeric_limits<float>::infinity();
  return extent;
}

/// What a scan of a vector's lanes by halves takes: for each of its steps, the lanes that join
/// others, and these.
using Lanes = decltype(hn::SetTableIndices(FloatTag(), static_cast<std::int32_t*>(nullptr)));
struct LaneSteps {
  static constexpr int kSteps = kFloats == 16 ? 4 : kFloats == 8 ? 3 : 2;
  Lanes from[kSteps];
  Lanes before, last;
  hn::Mask<FloatTag> joined[kSteps];
};
HWY_INLINE HWY_ATTR LaneSteps lane_steps() {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  LaneSteps steps;
  for (int s = 0; s < LaneSteps::kSteps; ++s) {
    const std::int32_t half = 1 << s;
    HWY_ALIGN std::int32_t lanes[kFloats];
    for (std::int32_t i = 0; i < kFloats; ++i) lanes[i] = i & half ? i / half * half - 1 : i;
    steps.from[s] = hn::SetTableIndices(d, lanes);
    const auto bits = hn::TestBit(hn::Iota(di, 0), hn::Set(di, half));
    steps.joined[s] = hn::RebindMask(d, bits);
  }
  HWY_ALIGN std::int32_t lanes[kFloats];
  for (std::int32_t i = 0; i < kFloats; ++i) lanes[i] = std::max(0, i - 1);
  steps.before = hn::SetTableIndices(d, lanes);
  std::fill_n(lanes, kFloats, static_cast<std::int32_t>(kFloats - 1));
  steps.last = hn::SetTableIndices(d, lanes);
  return steps;
}
HWY_INLINE HWY_ATTR FloatVec scanned(FloatVec v, const LaneSteps& steps) {
  for (int s = 0; s < LaneSteps::kSteps; ++s) {
    const FloatVec lower = hn::TableLookupLanes(v, steps.from[s]);
    v = hn::Add(v, hn::IfThenElseZero(steps.joined[s], lower));
  }
  return v;
}

/// Terms of floats, each e^(x - shift), whose sums within a vector are floats too.
template <bool kReverse>
HWY_NOINLINE HWY_ATTR void log_terms(const float* x, std::int64_t n, bool exclusive, float shift,
                                     double& total, float* out) {
  const FloatTag d;
  const LaneSteps steps = lane_steps();
  const FloatVec shifts = constant(shift);
  const auto ordered = [d](FloatVec v) HWY_ATTR { return kReverse ? hn::Reverse(d, v) : v; };
  const auto vector = [&](const float* from, float* to, std::int64_t count) HWY_ATTR {
    const FloatVec terms = exp_below_88(hn::Sub(ordered(hn::LoadU(d, from)), shifts));
    const FloatVec some = count < kFloats ? hn::IfThenElseZero(hn::FirstN(d, count), terms) : terms;
    const FloatVec sums = scanned(some, steps), all = constant(static_cast<float>(total));
    total += static_cast<double>(hn::GetLane(hn::TableLookupLanes(sums, steps.last)));
    if (to == nullptr) return;
    FloatVec counted = hn::Add(sums, all);
    if (exclusive) {
      const FloatVec shifted = hn::TableLookupLanes(sums, steps.before);
      counted = hn::Add(hn::IfThenZeroElse(hn::FirstN(d, 1), shifted), all);
    }
    hn::StoreU(ordered(hn::Add(log_of_normal(counted), shifts)), d, to);
  };
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) {
    const std::int64_t first = kReverse ? n - kFloats - i : i;
    vector(x + first, out ? out + first : nullptr, kFloats);
  }
  if (i == n) return;
  const std::int64_t rest = n - i, first = kReverse ? 0 : i, from = kReverse ? kFloats - rest : 0;
  HWY_ALIGN float padded[kFloats];
  std::fill_n(padded, kFloats, shift);
  std::copy_n(x + first, rest, padded + from);
  vector(padded, padded, rest);
  if (out) std::copy_n(padded + from, rest, out + first);
}

HWY_ATTR bool log_sums(const float* x, std::int64_t n, bool reverse, bool exclusive, double& sum,
                       float* out) {
  const Extent extent = extent_of(x, n);
  const bool starts = std::isinf(sum);
  const double base = starts ? static_cast<double>(extent.low) : sum;
  const double high = static_cast<double>(extent.high);
  if (!(high - base < static_cast<double>(kFurthestLogs)) || !(base <= 1e30) ||
      (starts && (exclusive || sum > 0))) {
    return false;
  }
  const auto shift = static_cast<float>(std::max(base, high));
  double total = starts ? 0 : std::exp(sum - static_cast<double>(shift));
  reverse ? log_terms<true>(x, n, exclusive, shift, total, out)
          : log_terms<false>(x, n, exclusive, shift, total, out);
  sum = static_cast<double>(shift) + std::log(total);
  return true;
}

#else

bool log_sums(const float*, std::int64_t, bool, bool, double&, float*) {
  return false;
}

#endif

LogSums log_table() {
  return log_sums;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
LogSums table() {
  HEDDLE_SIMD_RETURN(log_table);
}
}  // namespace

bool scan_log_sums(const float* x, std::int64_t n, bool reverse, bool exclusive, double& sum,
                   float* out) {
  return table()(x, n, reverse, exclusive, sum, out);
}

}  // namespace heddle::cpu
#endif
