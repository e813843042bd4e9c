// A vector of floats as doubles, where a target has vectors of these: to be included again for
// each.
#if defined(HEDDLE_CPU_WIDENED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_CPU_WIDENED_INL
#undef HEDDLE_CPU_WIDENED_INL
#else
#define HEDDLE_CPU_WIDENED_INL
#endif

#include "device/cpu/math_basics-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON

using DoubleTag = hn::RepartitionToWide<FloatTag>;
using DoubleVec = hn::Vec<DoubleTag>;
using HalfTag = hn::Half<FloatTag>;  // as many floats as a vector has doubles
constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));
constexpr auto kDoubles = static_cast<std::int64_t>(hn::MaxLanes(DoubleTag()));

struct Wide {
  DoubleVec low, high;
};
HWY_INLINE HWY_ATTR Wide widened(FloatVec x) {
  const DoubleTag d;
  const HalfTag half;
  return {hn::PromoteTo(d, hn::LowerHalf(half, x)), hn::PromoteTo(d, hn::UpperHalf(half, x))};
}
HWY_INLINE HWY_ATTR FloatVec narrowed(Wide x) {
  const HalfTag half;
  return hn::Combine(FloatTag(), hn::DemoteTo(half, x.high), hn::DemoteTo(half, x.low));
}
HWY_INLINE HWY_ATTR Wide load_wide(const double* from) {
  return {hn::LoadU(DoubleTag(), from), hn::LoadU(DoubleTag(), from + kDoubles)};
}
HWY_INLINE HWY_ATTR void store_wide(Wide x, double* to) {
  hn::StoreU(x.low, DoubleTag(), to);
  hn::StoreU(x.high, DoubleTag(), to + kDoubles);
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
