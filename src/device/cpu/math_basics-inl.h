// What vector functions of float are made of, for one Highway target: to be included again for
// each.
#if defined(HEDDLE_CPU_MATH_BASICS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_CPU_MATH_BASICS_INL
#undef HEDDLE_CPU_MATH_BASICS_INL
#else
#define HEDDLE_CPU_MATH_BASICS_INL
#endif

#include "device/cpu/streaming.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE HWY_ATTR FloatVec constant(float value) {
  return hn::Set(FloatTag(), value);
}

template <Stores kStores>
HWY_INLINE HWY_ATTR void put(FloatVec v, float* out) {
  if constexpr (kStores == Stores::streamed) {
    hn::Stream(v, FloatTag(), out);
  } else {
    hn::StoreU(v, FloatTag(), out);
  }
}
/// For functions that stream: a cache line a loop at x + i needs later. It may lie beyond the end.
template <Stores kStores>
HWY_INLINE HWY_ATTR void fetch_ahead(const float* x, std::int64_t i) {
  constexpr std::int64_t kLine = 16;
  if constexpr (kStores == Stores::streamed) {
    if (i % kLine == 0) __builtin_prefetch(x + i + kStreamedAhead, 0, 2);
  }
}

/// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
HWY_INLINE HWY_ATTR FloatVec polynomial(FloatVec, float c0) {
  return constant(c0);
}
template <class... Rest>
HWY_INLINE HWY_ATTR FloatVec polynomial(FloatVec x, float c0, Rest... rest) {
  return hn::MulAdd(polynomial(x, rest...), x, constant(c0));
}

/// log(1 + r) for |r| <= 1/32: a fit with an error of 3e-8 of r.
HWY_INLINE HWY_ATTR FloatVec log1p_of_small(FloatVec r) {
  const FloatVec p = polynomial(r, -0.49999994f, 0.33349526f, -0.2502316f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

/// 2^n for whole n in [-126, 127].
HWY_INLINE HWY_ATTR FloatVec power_of_two(hn::VFromD<hn::RebindToSigned<FloatTag>> n) {
  const hn::RebindToSigned<FloatTag> di;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2: a Chebyshev fit with an error of 1.4e-9.
HWY_INLINE HWY_ATTR FloatVec exp_rest(FloatVec r) {
  return polynomial(r, 0.5f, 0.166666667f, 0.0416664642f, 0.00833331084f, 0.00139337307f,
                    0.000198910805f);
}

/// 2^n e^r, in two steps so that results may be subnormal or infinite.
HWY_INLINE HWY_ATTR FloatVec exp_of_parts(FloatVec n, FloatVec r) {
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec e = hn::Add(hn::MulAdd(hn::Mul(r, r), exp_rest(r), r), constant(1.0f));
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  return hn::Mul(hn::Mul(e, power_of_two(half)), power_of_two(hn::Sub(whole, half)));
}

/// x - n ln 2, with ln 2 split so that n times its high part is exact.
HWY_INLINE HWY_ATTR FloatVec less_ln2(FloatVec x, FloatVec n) {
  const FloatVec r = hn::NegMulAdd(n, constant(0.693359375f), x);
  return hn::NegMulAdd(n, constant(-2.12194440e-4f), r);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
