#include "device/cpu/arg_ops.h"

#include <algorithm>
#include <limits>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/arg_ops.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

constexpr ArgOps kArgOps;

#else

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));
/// Elements whose extremes, lane by lane, are compared with the best at once.
constexpr int kVectors = 4;
constexpr std::int64_t kGroup = kVectors * kLanes;

struct Largest {
  static constexpr float kLeast = -std::numeric_limits<float>::infinity();
  static HWY_INLINE HWY_ATTR FloatVec best(FloatVec a, FloatVec b) { return hn::Max(a, b); }
  static HWY_INLINE HWY_ATTR auto beats(FloatVec a, FloatVec b) { return hn::Gt(a, b); }
  static HWY_INLINE HWY_ATTR float of_lanes(FloatVec v) {
    return hn::GetLane(hn::MaxOfLanes(FloatTag(), v));
  }
};
struct Smallest {
  static constexpr float kLeast = std::numeric_limits<float>::infinity();
  static HWY_INLINE HWY_ATTR FloatVec best(FloatVec a, FloatVec b) { return hn::Min(a, b); }
  static HWY_INLINE HWY_ATTR auto beats(FloatVec a, FloatVec b) { return hn::Lt(a, b); }
  static HWY_INLINE HWY_ATTR float of_lanes(FloatVec v) {
    return hn::GetLane(hn::MinOfLanes(FloatTag(), v));
  }
};

/// The best of each lane, and the first group that has it.
struct Best {
  FloatVec value;
  hn::Vec<IntTag> group;
  hn::Mask<FloatTag> poison;  // where NaN was seen
};

HWY_INLINE HWY_ATTR hn::Mask<FloatTag> either_is_nan(FloatVec a, FloatVec b) {
#if HWY_TARGET == HWY_AVX3
  return hn::Mask<FloatTag>{_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q)};
#else
  return hn::Or(hn::IsNaN(a), hn::IsNaN(b));
#endif
}

template <class Kind>
HWY_INLINE HWY_ATTR void join(const float* x, std::int64_t group, Best& best) {
  const FloatTag d;
  FloatVec v[kVectors];
  for (int k = 0; k < kVectors; ++k) v[k] = hn::LoadU(d, x + k * kLanes);
  best.poison = hn::Or(best.poison, hn::Or(either_is_nan(v[0], v[1]), either_is_nan(v[2], v[3])));
  const FloatVec of_group = Kind::best(Kind::best(v[0], v[1]), Kind::best(v[2], v[3]));
  const auto better = Kind::beats(of_group, best.value);
  best.value = Kind::best(best.value, of_group);
  best.group = hn::IfThenElse(hn::RebindMask(IntTag(), better),
                              hn::Set(IntTag(), static_cast<std::int32_t>(group)), best.group);
}

/// The first element from `from` on for which `is_it` holds; there is one.
template <class IsIt>
HWY_INLINE HWY_ATTR std::int64_t first_of(const float* x, std::int64_t from, std::int64_t n,
                                          const IsIt& is_it) {
  const FloatTag d;
  std::int64_t i = from;
  for (; i + kLanes <= n; i += kLanes) {
    const auto found = is_it(hn::LoadU(d, x + i));
    if (!hn::AllFalse(d, found)) return i + static_cast<std::int64_t>(hn::FindFirstTrue(d, found));
  }
  for (; i + 1 < n; ++i) {
    if (!hn::AllFalse(d, is_it(hn::Set(d, x[i])))) break;
  }
  return i;
}

/// Where `value` is first in a whole group that has it, without a branch that nobody foresees.
HWY_INLINE HWY_ATTR std::int64_t first_in_group(const float* x, FloatVec value) {
  const FloatTag d;
  const IntTag di;
  auto first = hn::Set(di, static_cast<std::int32_t>(kGroup));
  for (int k = kVectors - 1; k >= 0; --k) {
    const auto places = hn::Iota(di, static_cast<std::int32_t>(k * kLanes));
    const auto found = hn::Eq(hn::LoadU(d, x + k * kLanes), value);
    first = hn::IfThenElse(hn::RebindMask(di, found), places, first);
  }
  return hn::GetLane(hn::MinOfLanes(di, first));
}

template <class Kind>
HWY_NOINLINE HWY_ATTR std::int64_t find(const float* x, const float* next, std::int64_t n) {
  constexpr std::int64_t kLine = 16;
  const FloatTag d;
  const IntTag di;
  Best best{hn::Set(d, Kind::kLeast), hn::Zero(di), hn::Eq(hn::Zero(d), hn::Set(d, 1.0f))};
  std::int64_t i = 0, group = 0;
  for (; i + kGroup <= n; i += kGroup, ++group) {
    for (std::int64_t k = 0; next && k < kGroup; k += kLine) __builtin_prefetch(next + i + k);
    join<Kind>(x + i, group, best);
  }
  if (i < n) {
    HWY_ALIGN float rest[kGroup];
    std::fill_n(rest, kGroup, Kind::kLeast);
    std::copy_n(x + i, n - i, rest);
    join<Kind>(rest, group, best);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, best.poison))) {
    return first_of(x, 0, n, [](FloatVec v) HWY_ATTR { return hn::IsNaN(v); });
  }
  const FloatVec extreme = hn::Set(d, Kind::of_lanes(best.value));
  const auto has_it = hn::RebindMask(di, hn::Eq(best.value, extreme));
  const auto groups =
      hn::IfThenElse(has_it, best.group, hn::Set(di, std::numeric_limits<std::int32_t>::max()));
  const std::int64_t first = kGroup * hn::GetLane(hn::MinOfLanes(di, groups));
  if (HWY_LIKELY(first + kGroup <= n)) return first + first_in_group(x + first, extreme);
  return first_of(x, first, n, [&](FloatVec v) HWY_ATTR { return hn::Eq(v, extreme); });
}

constexpr ArgOps kArgOps{find<Largest>, find<Smallest>};

#endif

const ArgOps& arg_table() {
  return kArgOps;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

const ArgOps& arg_ops() {
  HEDDLE_SIMD_RETURN(arg_table);
}

}  // namespace heddle::cpu
#endif
