#include "device/cpu/row_ops.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/row_ops.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kAllBits = std::bit_cast<float>(0xffffffffu);
constexpr int kVectorLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
constexpr int kVectors = kSumLanes / kVectorLanes;

/// kSumLanes accumulators, in as many vectors as they take.
struct Lanes {
  FloatVec v[kVectors];
};

/// Calls step(lane's vector, vector) over x in groups of kSumLanes, the last one padded. Meanwhile
/// as much of `next`, if that is not null, is fetched.
template <class Step>
HWY_INLINE HWY_ATTR void for_groups(const float* x, std::int64_t n, float padding, Lanes& lanes,
                                    const Step& step = {}, const float* next = nullptr) {
  constexpr int kLine = 16;
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int k = 0; next && k < kSumLanes; k += kLine) __builtin_prefetch(next + i + k, 0, 2);
    for (int k = 0; k < kVectors; ++k) {
      lanes.v[k] = step.apply(lanes.v[k], hn::LoadU(d, x + i + k * kVectorLanes));
    }
  }
  if (i == n) return;
  HWY_ALIGN float rest[kSumLanes];
  for (float& r : rest) r = padding;
  std::memcpy(rest, x + i, static_cast<std::size_t>(n - i) * sizeof(float));
  for (int k = 0; k < kVectors; ++k) {
    lanes.v[k] = step.apply(lanes.v[k], hn::Load(d, rest + k * kVectorLanes));
  }
}

HWY_INLINE HWY_ATTR Lanes filled(float value) {
  Lanes lanes;
  for (int k = 0; k < kVectors; ++k) lanes.v[k] = constant(value);
  return lanes;
}

struct AddStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::Add(a, x);
  }
};
struct AddSquareStep {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec x) {
    return hn::Add(a, hn::Mul(x, x));
  }
};
struct MaxStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::Max(x, a);
  }
};

struct MultiplyStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::Mul(a, x);
  }
};
/// a where it is NaN or the larger, else x, which then may be NaN.
struct LargestStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, x)), a, x);
  }
};
struct SmallestStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, x)), a, x);
  }
};

struct AllStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(hn::DFromV<V>())), a);
  }
};
struct AnyStep {
  template <class V>
  static HWY_INLINE HWY_ATTR V apply(V a, V x) {
    const hn::DFromV<V> d;
    const auto is_zero = hn::Eq(x, hn::Zero(d));
    return hn::Or(a, hn::IfThenZeroElse(is_zero, hn::Set(d, kAllBits)));
  }
};

/// The lanes of a vector folded in halves.
template <class Combine, int lanes, class V>
HWY_INLINE HWY_ATTR float fold_vector(V v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#else
  if constexpr (lanes > 4) {
    const hn::FixedTag<float, lanes / 2> half;
    return fold_vector<Combine, lanes / 2>(
        Combine::apply(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    static_assert(lanes == 4);
    const V pairs = Combine::apply(v, hn::Shuffle1032(v));
    return hn::GetLane(Combine::apply(pairs, hn::Shuffle2301(pairs)));
  }
#endif
}

/// The lanes folded in halves: l + (l + 16), then l + (l + 8), ...
template <class Combine>
HWY_INLINE HWY_ATTR float fold(Lanes lanes) {
  for (int half = kVectors / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) {
      lanes.v[k] = Combine::apply(lanes.v[k], lanes.v[k + half]);
    }
  }
  return fold_vector<Combine, kVectorLanes>(lanes.v[0]);
}

HWY_ATTR float sum(const float* x, std::int64_t n) {
  Lanes lanes = filled(0.0f);
  for_groups<AddStep>(x, n, 0.0f, lanes);
  return fold<AddStep>(lanes);
}

HWY_ATTR float sum_squares(const float* x, std::int64_t n) {
  Lanes lanes = filled(0.0f);
  for_groups<AddSquareStep>(x, n, 0.0f, lanes);
  return fold<AddStep>(lanes);
}

HWY_ATTR float max(const float* x, std::int64_t n) {
  Lanes lanes = filled(-kInfinity);
  for_groups<MaxStep>(x, n, -kInfinity, lanes);
  return fold<MaxStep>(lanes);
}

template <class Step>
constexpr float identity_of() {
  if (std::is_same_v<Step, MultiplyStep>) return 1.0f;
  if (std::is_same_v<Step, LargestStep>) return -kInfinity;
  if (std::is_same_v<Step, AllStep>) return kAllBits;
  return std::is_same_v<Step, SmallestStep> ? kInfinity : 0.0f;
}

template <class Step>
HWY_ATTR float fold_block(const float* x, const float* next, std::int64_t n) {
  if (n > kBlock) {
    std::int64_t half = kBlock;  // a power of two of blocks, as Pairwise combines them
    while (2 * half < n) half *= 2;
    const FloatVec first = constant(fold_block<Step>(x, next, half));
    const float rest = fold_block<Step>(x + half, next ? next + half : nullptr, n - half);
    return hn::GetLane(Step::apply(first, constant(rest)));
  }
  Lanes lanes = filled(identity_of<Step>());
  for_groups<Step>(x, n, identity_of<Step>(), lanes, {}, next);
  return fold<Step>(lanes);
}

template <class Step>
HWY_ATTR void fold_rows(const void* const* rows, const void* const* next, std::int64_t count,
                        std::int64_t n, float* out) {
  constexpr std::int64_t kLine = 16;
  const auto floats = [](const void* row) { return static_cast<const float*>(row); };
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    if (next && i % kLine == 0) {
      for (std::int64_t r = 0; r < count; ++r) __builtin_prefetch(floats(next[r]) + i, 0, 2);
    }
    FloatVec folded = hn::LoadU(d, out + i);
    for (std::int64_t r = 0; r < count; ++r) {
      folded = Step::apply(folded, hn::LoadU(d, floats(rows[r]) + i));
    }
    hn::StoreU(folded, d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[kVectorLanes] = {}, other[kVectorLanes] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
  std::memcpy(rest, out + i, bytes);
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(other, floats(rows[r]) + i, bytes);
    hn::Store(Step::apply(hn::Load(d, rest), hn::Load(d, other)), d, rest);
  }
  std::memcpy(out + i, rest, bytes);
}

template <class Step>
constexpr FloatFold kFold{fold_block<Step>, fold_rows<Step>};

/// out = f(x) by whole vectors, the rest through a padded copy.
template <class F>
HWY_INLINE HWY_ATTR void map(const float* x, float* out, std::int64_t n, const F& f) {
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(f.apply(hn::LoadU(d, x + i)), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[kVectorLanes] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
  std::memcpy(rest, x + i, bytes);
  hn::Store(f.apply(hn::Load(d, rest)), d, rest);
  std::memcpy(out + i, rest, bytes);
}

struct Scale {
  FloatVec factor;
  HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) const { return hn::Mul(x, factor); }
};
struct AddSquaredDeviation {
  FloatVec mean;
  HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec x) const {
    const FloatVec deviation = hn::Sub(x, mean);
    return hn::Add(a, hn::Mul(deviation, deviation));
  }
};

HWY_ATTR float exp_sum(const float* x, float shift, float* out, std::int64_t n) {
  const FloatTag d;
  const FloatVec shifts = constant(shift);
  Lanes lanes = filled(0.0f);
  const auto group = [&](const float* from, float* to) HWY_ATTR {
    for (int k = 0; k < kVectors; ++k) {
      const std::int64_t at = k * kVectorLanes;
      const FloatVec e = exp_below_88(hn::Sub(hn::LoadU(d, from + at), shifts));
      hn::StoreU(e, d, to + at);
      lanes.v[k] = hn::Add(lanes.v[k], e);
    }
  };
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) group(x + i, out + i);
  if (i < n) {
    HWY_ALIGN float rest[kSumLanes];
    for (float& r : rest) r = -kInfinity;
    const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
    std::memcpy(rest, x + i, bytes);
    group(rest, rest);
    std::memcpy(out + i, rest, bytes);
  }
  return fold<AddStep>(lanes);
}

/// What max, exp_sum and scale give one after another, with the row's end taken apart once.
HWY_ATTR void softmax(const float* x, std::int64_t n, float* out, std::int64_t whole) {
  const FloatTag d;
  HWY_ALIGN float terms[kBlock];
  const std::int64_t groups = n / kSumLanes * kSumLanes;
  const std::int64_t padded = (n + kSumLanes - 1) / kSumLanes * kSumLanes;
  for (std::int64_t i = groups; i < padded; i += kVectorLanes) {
    hn::Store(constant(-kInfinity), d, terms + i);
  }
  std::memcpy(terms + groups, x + groups, static_cast<std::size_t>(n - groups) * sizeof(float));
  Lanes lanes = filled(-kInfinity);
  for_groups<MaxStep>(x, groups, -kInfinity, lanes);
  for_groups<MaxStep>(terms + groups, padded - groups, -kInfinity, lanes);
  const float max = fold<MaxStep>(lanes);
  const FloatVec shift = constant(max > -kInfinity ? max : 0.0f);

  lanes = filled(0.0f);
  const auto group = [&](const float* from, float* to) HWY_ATTR {
    for (int k = 0; k < kVectors; ++k) {
      const std::int64_t at = k * kVectorLanes;
      const FloatVec e = exp_below_88(hn::Sub(hn::LoadU(d, from + at), shift));
      hn::Store(e, d, to + at);
      lanes.v[k] = hn::Add(lanes.v[k], e);
    }
  };
  for (std::int64_t i = 0; i < groups; i += kSumLanes) group(x + i, terms + i);
  if (groups < n) group(terms + groups, terms + groups);
  const float sum = fold<AddStep>(lanes);

  const FloatVec factor = constant(sum == 0.0f ? 0.0f : 1.0f / sum);
  for (std::int64_t i = 0; i < padded; i += kVectorLanes) {
    hn::Store(hn::Mul(hn::Load(d, terms + i), factor), d, terms + i);
  }
  std::memcpy(out, terms, static_cast<std::size_t>(n) * sizeof(float));
  std::memset(out + n, 0, static_cast<std::size_t>(whole - n) * sizeof(float));
}

HWY_ATTR float sum_squared_deviations(const float* x, float mean, std::int64_t n) {
  Lanes lanes = filled(0.0f);
  for_groups(x, n, mean, lanes, AddSquaredDeviation{constant(mean)});
  return fold<AddStep>(lanes);
}

HWY_ATTR void scale(const float* x, float factor, float* out, std::int64_t n) {
  map(x, out, n, Scale{constant(factor)});
}

/// (x - mean) * factor [* weight] [+ bias]
template <bool kWeight, bool kBias>
HWY_ATTR void normalize_as(const float* x, float mean, float factor, const float* weight,
                           const float* bias, float* out, std::int64_t n) {
  const FloatTag d;
  const FloatVec means = constant(mean), factors = constant(factor);
  const auto one = [&](const float* at, const float* w, const float* b) HWY_ATTR {
    FloatVec y = hn::Mul(hn::Sub(hn::LoadU(d, at), means), factors);
    if constexpr (kWeight) y = hn::Mul(y, hn::LoadU(d, w));
    if constexpr (kBias) y = hn::Add(y, hn::LoadU(d, b));
    return y;
  };
  std::int64_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::StoreU(one(x + i, kWeight ? weight + i : x, kBias ? bias + i : x), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[3][kVectorLanes] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
  std::memcpy(rest[0], x + i, bytes);
  if (kWeight) std::memcpy(rest[1], weight + i, bytes);
  if (kBias) std::memcpy(rest[2], bias + i, bytes);
  hn::Store(one(rest[0], rest[1], rest[2]), d, rest[0]);
  std::memcpy(out + i, rest[0], bytes);
}

void normalize(const float* x, float mean, float factor, const float* weight, const float* bias,
               float* out, std::int64_t n) {
  const auto function = weight ? (bias ? normalize_as<true, true> : normalize_as<true, false>)
                               : (bias ? normalize_as<false, true> : normalize_as<false, false>);
  function(x, mean, factor, weight, bias, out, n);
}

HWY_ATTR void stream(const void* from, void* to, std::int64_t bytes) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#else
  constexpr std::int64_t kLine = 64;
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* target = static_cast<std::uint8_t*>(to);
  const auto odd = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % kLine);
  std::int64_t at = odd < bytes ? odd : bytes;
  std::memcpy(target, source, static_cast<std::size_t>(at));
  for (; at + kLine <= bytes; at += kLine) {
    for (std::int64_t i = at; i < at + kLine; i += lanes) {
      hn::Stream(hn::LoadU(d, source + i), d, target + i);
    }
  }
  std::memcpy(target + at, source + at, static_cast<std::size_t>(bytes - at));
#endif
}

const RowOps& row_table() {
  static constexpr RowOps kTable{sum,
                                 sum_squares,
                                 sum_squared_deviations,
                                 max,
                                 exp_sum,
                                 softmax,
                                 scale,
                                 normalize,
                                 stream,
                                 kFold<AddStep>,
                                 kFold<MultiplyStep>,
                                 kFold<LargestStep>,
                                 kFold<SmallestStep>,
                                 kFold<AllStep>,
                                 kFold<AnyStep>};
  return kTable;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

const RowOps& row_ops() {
  HEDDLE_SIMD_RETURN(row_table);
}

}  // namespace heddle::cpu
#endif
