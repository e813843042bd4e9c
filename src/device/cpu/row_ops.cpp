#include "device/cpu/row_ops.h"

#include <cstring>
#include <limits>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/row_ops.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

constexpr int kVectorLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
constexpr int kVectors = kSumLanes / kVectorLanes;

/// kSumLanes accumulators, in as many vectors as they take.
struct Lanes {
  FloatVec v[kVectors];
};

/// Calls step(index, vector number, vector) over x in groups of kSumLanes, the last one padded.
template <class Step>
HWY_INLINE HWY_ATTR void for_groups(const float* x, std::int64_t n, float padding, Lanes& lanes) {
  const FloatTag d;
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int k = 0; k < kVectors; ++k) {
      lanes.v[k] = Step::apply(lanes.v[k], hn::LoadU(d, x + i + k * kVectorLanes));
    }
  }
  if (i == n) return;
  HWY_ALIGN float rest[kSumLanes];
  for (float& r : rest) r = padding;
  std::memcpy(rest, x + i, static_cast<std::size_t>(n - i) * sizeof(float));
  for (int k = 0; k < kVectors; ++k) {
    lanes.v[k] = Step::apply(lanes.v[k], hn::Load(d, rest + k * kVectorLanes));
  }
}

HWY_INLINE HWY_ATTR Lanes filled(float value) {
  Lanes lanes;
  for (int k = 0; k < kVectors; ++k) lanes.v[k] = constant(value);
  return lanes;
}

/// The lanes folded in halves: l + (l + 16), then l + (l + 8), ...
template <class Combine>
HWY_INLINE HWY_ATTR float fold(const Lanes& lanes, const Combine& combine) {
  HWY_ALIGN float lane[kSumLanes];
  for (int k = 0; k < kVectors; ++k) hn::Store(lanes.v[k], FloatTag(), lane + k * kVectorLanes);
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  }
  return lane[0];
}

struct AddStep {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec x) { return hn::Add(a, x); }
};
struct AddSquareStep {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec x) {
    return hn::Add(a, hn::Mul(x, x));
  }
};
struct MaxStep {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec x) { return hn::Max(x, a); }
};

HWY_ATTR float add(float a, float b) {
  return a + b;
}
HWY_ATTR float larger(float a, float b) {
  return b > a ? b : a;
}

HWY_ATTR float sum(const float* x, std::int64_t n) {
  Lanes lanes = filled(0.0f);
  for_groups<AddStep>(x, n, 0.0f, lanes);
  return fold(lanes, add);
}

HWY_ATTR float sum_squares(const float* x, std::int64_t n) {
  Lanes lanes = filled(0.0f);
  for_groups<AddSquareStep>(x, n, 0.0f, lanes);
  return fold(lanes, add);
}

HWY_ATTR float max(const float* x, std::int64_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Lanes lanes = filled(kLowest);
  for_groups<MaxStep>(x, n, kLowest, lanes);
  return fold(lanes, larger);
}

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

struct SubtractAndExp {
  FloatVec shift;
  HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) const { return exp(hn::Sub(x, shift)); }
};
struct Scale {
  FloatVec factor;
  HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) const { return hn::Mul(x, factor); }
};
struct Deviation {
  FloatVec mean;
  HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) const { return hn::Sub(x, mean); }
};

HWY_ATTR float exp_sum(const float* x, float shift, float* out, std::int64_t n) {
  map(x, out, n, SubtractAndExp{constant(shift)});
  return sum(out, n);
}

HWY_ATTR float sum_squared_deviations(const float* x, float mean, std::int64_t n) {
  HWY_ALIGN float deviation[kBlock];
  map(x, deviation, n, Deviation{constant(mean)});
  return sum_squares(deviation, n);
}

HWY_ATTR void scale(const float* x, float factor, float* out, std::int64_t n) {
  map(x, out, n, Scale{constant(factor)});
}

HWY_ATTR void normalize(const float* x, float mean, float factor, const float* weight,
                        const float* bias, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    float y = (x[i] - mean) * factor;
    if (weight) y *= weight[i];
    if (bias) y += bias[i];
    out[i] = y;
  }
}

const RowOps& row_table() {
  static constexpr RowOps kTable{sum,   sum_squares, sum_squared_deviations, max, exp_sum,
                                 scale, normalize};
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
