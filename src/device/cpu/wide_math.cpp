#include "device/cpu/wide_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "device/cpu/combine.h"
#include "device/cpu/floor_division.h"
#include "device/cpu/isa.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/wide_math.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"
#include "hwy/contrib/math/math-inl.h"

#ifndef HEDDLE_CPU_WIDE_MATH_ONCE
#define HEDDLE_CPU_WIDE_MATH_ONCE
namespace heddle::cpu {
struct WideTable {
  FloatUnary (*unary)(UnaryKind);
  FloatBinary (*binary)(BinaryKind);
  FloatUnary (*streamed_unary)(UnaryKind);
  FloatBinary (*streamed_binary)(BinaryKind);
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON

using Mask = hn::Mask<FloatTag>;
constexpr std::size_t kMostLanes = hn::MaxLanes(FloatTag());

// ---- Loops

/// `result` with the lanes that are not `good` computed by the C library.
template <class Op>
HWY_NOINLINE HWY_ATTR FloatVec patched(FloatVec x, FloatVec result, Mask good) {
  const FloatTag d;
  HWY_ALIGN float in[kMostLanes], out[kMostLanes];
  std::uint8_t bits[8] = {};
  hn::Store(x, d, in);
  hn::Store(result, d, out);
  hn::StoreMaskBits(d, good, bits);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(bits[i / 8] >> (i % 8) & 1)) out[i] = Op::exact(in[i]);
  }
  return hn::Load(d, out);
}
template <class Op>
HWY_NOINLINE HWY_ATTR FloatVec patched(FloatVec a, FloatVec b, FloatVec result, Mask good) {
  const FloatTag d;
  HWY_ALIGN float in_a[kMostLanes], in_b[kMostLanes], out[kMostLanes];
  std::uint8_t bits[8] = {};
  hn::Store(a, d, in_a);
  hn::Store(b, d, in_b);
  hn::Store(result, d, out);
  hn::StoreMaskBits(d, good, bits);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(bits[i / 8] >> (i % 8) & 1)) out[i] = Op::exact(in_a[i], in_b[i]);
  }
  return hn::Load(d, out);
}

template <class Op>
HWY_INLINE HWY_ATTR FloatVec checked(FloatVec x) {
  const FloatVec result = Op::apply(x);
  const Mask good = Op::good(x);
  if (HWY_LIKELY(hn::AllTrue(FloatTag(), good))) return result;
  return patched<Op>(x, result, good);
}
template <class Op>
HWY_INLINE HWY_ATTR FloatVec checked(FloatVec a, FloatVec b) {
  Mask good;
  const FloatVec result = Op::apply(a, b, good);
  if (HWY_LIKELY(hn::AllTrue(FloatTag(), good))) return result;
  return patched<Op>(a, b, result, good);
}

/// What is left of whole vectors is filled up with the last element.
HWY_INLINE HWY_ATTR FloatVec load_rest(const float* x, std::int64_t n) {
  HWY_ALIGN float rest[kMostLanes];
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kMostLanes); ++i) {
    rest[i] = x[i < n ? i : n - 1];
  }
  return hn::Load(FloatTag(), rest);
}
HWY_INLINE HWY_ATTR void store_rest(FloatVec v, float* out, std::int64_t n) {
  HWY_ALIGN float rest[kMostLanes];
  hn::Store(v, FloatTag(), rest);
  for (std::int64_t i = 0; i < n; ++i) out[i] = rest[i];
}

template <class Op, Stores kStores>
HWY_NOINLINE HWY_ATTR void map_unary(const float* x, float* out, std::int64_t n) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    fetch_ahead<kStores>(x, i);
    put<kStores>(checked<Op>(hn::LoadU(d, x + i)), out + i);
  }
  if (i < n) store_rest(checked<Op>(load_rest(x + i, n - i)), out + i, n - i);
}
template <class Op, Stores kStores>
HWY_NOINLINE HWY_ATTR void map_binary(const float* a, const float* b, float* out, std::int64_t n) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    fetch_ahead<kStores>(a, i);
    fetch_ahead<kStores>(b, i);
    put<kStores>(checked<Op>(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), out + i);
  }
  if (i == n) return;
  const FloatVec rest = checked<Op>(load_rest(a + i, n - i), load_rest(b + i, n - i));
  store_rest(rest, out + i, n - i);
}

// ---- Ranges

constexpr float kSmallest = std::numeric_limits<float>::min();
constexpr float kLargest = std::numeric_limits<float>::max();

HWY_INLINE HWY_ATTR Mask between(FloatVec x, float low, float high) {
  return hn::And(hn::Ge(x, constant(low)), hn::Le(x, constant(high)));
}
HWY_INLINE HWY_ATTR Mask within(FloatVec x, float most) {
  return hn::Le(hn::Abs(x), constant(most));
}

// ---- Functions that Highway does not have, or not within 4 ulp

/// e^x + e^-x, halved.
HWY_INLINE HWY_ATTR FloatVec cosh(FloatVec x) {
  const FloatVec e = hn::Mul(constant(0.5f), exp_below_88(hn::Abs(x)));
  return hn::Add(e, hn::Div(constant(0.25f), e));
}

// Below 1 a polynomial (Chebyshev fit of (sinh(x)/x - 1) / x^2 in x^2, error 2e-10).
HWY_INLINE HWY_ATTR FloatVec sinh(FloatVec x) {
  const FloatVec s = hn::Mul(x, x);
  const FloatVec p = polynomial(s, 0.166666666f, 0.00833333951f, 0.000198381337f, 2.80610201e-06f);
  const FloatVec small = hn::MulAdd(hn::Mul(x, s), p, x);
  const FloatVec e = hn::Mul(constant(0.5f), exp_below_88(hn::Abs(x)));
  const FloatVec large = hn::CopySign(hn::Sub(e, hn::Div(constant(0.25f), e)), x);
  return hn::IfThenElse(hn::Lt(s, constant(1.0f)), small, large);
}

// Less a multiple of pi/2 in three parts, each product exact in the fused operation; then Cephes'
// polynomial for |x| <= pi/4, or its negative reciprocal in every other quarter.
HWY_INLINE HWY_ATTR FloatVec tan(FloatVec x) {
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec q = hn::Round(hn::Mul(x, constant(0.636619772f)));
  FloatVec r = hn::NegMulAdd(q, constant(1.57079637f), x);
  r = hn::NegMulAdd(q, constant(-4.37113883e-8f), r);
  r = hn::NegMulAdd(q, constant(-1.71512489e-15f), r);
  const FloatVec z = hn::Mul(r, r);
  const FloatVec p = polynomial(z, 3.33331568548e-1f, 1.33387994085e-1f, 5.34112807005e-2f,
                                2.44301354525e-2f, 3.11992232697e-3f, 9.38540185543e-3f);
  const FloatVec t = hn::MulAdd(hn::Mul(r, z), p, r);
  const auto odd = hn::TestBit(hn::ConvertTo(di, q), hn::Set(di, 1));
  return hn::IfThenElse(hn::RebindMask(FloatTag(), odd), hn::Div(constant(-1.0f), t), t);
}

// x times a polynomial in w = -log(1 - x^2) or in its root (Chebyshev fits, errors 2.6e-9 and
// 1.6e-8). The difference to 1 is exact where it counts.
HWY_INLINE HWY_ATTR FloatVec erfinv(FloatVec x) {
  const FloatTag d;
  const FloatVec a = hn::Abs(x), one = constant(1.0f);
  const FloatVec w = hn::Neg(hn::Log(d, hn::Mul(hn::Sub(one, a), hn::Add(one, a))));
  const FloatVec near_zero =
      polynomial(hn::Sub(w, constant(2.5f)), 1.50140935f, 0.246640289f, -0.00417733534f,
                 -0.00125274746f, 0.000218277224f, -4.96029377e-06f, -3.43212269e-06f,
                 4.65546063e-07f, 1.7572963e-08f, -8.74817132e-09f, 3.65704415e-10f);
  const FloatVec near_one =
      polynomial(hn::Sub(hn::Sqrt(w), constant(3.1304952f)), 2.96383594f, 1.0037957f,
                 0.00696253445f, -0.00521861226f, 0.0037115059f, -0.00247889533f, 0.00130156496f,
                 -0.000327936303f, -0.000169867407f, 0.000127018416f);
  return hn::Mul(x, hn::IfThenElse(hn::Lt(w, constant(5.0f)), near_zero, near_one));
}

#if HWY_TARGET != HWY_AVX3
/// Of x = 2^n m as scaled_about_one has it: n, and s = (m - 1) / (m + 1) in two parts.
struct Artanh {
  FloatVec n, s, rest;
};
HWY_INLINE HWY_ATTR Artanh artanh_of(FloatVec x) {
  const auto [n, m] = scaled_about_one(x);
  const FloatVec one = constant(1.0f);
  const FloatVec below = hn::Sub(m, one), above = hn::Add(m, one);
  const FloatVec inverse = hn::Div(one, above), s = hn::Mul(below, inverse);
  // What is missing of s above = below; `above` itself was rounded.
  const FloatVec lost = hn::Sub(m, hn::Sub(above, one));
  const FloatVec missing = hn::NegMulAdd(s, lost, hn::NegMulAdd(s, above, below));
  return {n, s, hn::Mul(missing, inverse)};
}

// log2(m) = 2 log2(e) artanh(s) in two parts, which together know it to some 2^-30. The
// polynomial is an interpolation of 2 log2(e) (artanh(s) - s) / s^3 in s^2, error 2^-33.
struct TwoFloats {
  FloatVec high, low;
};
HWY_INLINE HWY_ATTR TwoFloats log2_in_two(FloatVec x) {
  const Artanh a = artanh_of(x);
  const FloatVec factor = constant(2.88539004f), z = hn::Mul(a.s, a.s);
  const FloatVec p = polynomial(z, 0.961796701f, 0.577079773f, 0.411901265f, 0.336587489f);
  const FloatVec high = hn::Mul(a.s, factor);
  FloatVec low = hn::MulAdd(a.s, factor, hn::Neg(high));
  low = hn::MulAdd(a.s, constant(3.85192607e-08f), low);
  low = hn::MulAdd(a.rest, factor, low);
  low = hn::MulAdd(hn::Mul(a.s, z), p, low);
  const FloatVec sum = hn::Add(a.n, high);  // n is 0, or more than |high|
  low = hn::Add(hn::Sub(high, hn::Sub(sum, a.n)), low);
  const FloatVec rounded = hn::Add(sum, low);
  return {rounded, hn::Sub(low, hn::Sub(rounded, sum))};
}

// Below 0.75 a polynomial (an interpolation of (arcsinh(x)/x - 1) / x^2 in x^2, error 4e-9), above
// it log(|x| + sqrt(x^2 + 1)).
HWY_INLINE HWY_ATTR FloatVec arcsinh(FloatVec x) {
  const FloatVec a = hn::Abs(x), s = hn::Mul(x, x);
  const FloatVec p = polynomial(s, -0.166666657f, 0.0749989226f, -0.0446115658f, 0.0300318133f,
                                -0.020435594f, 0.0114546763f, -0.0035137611f);
  const FloatVec small = hn::MulAdd(hn::Mul(x, s), p, x);
  const FloatVec root = hn::Sqrt(hn::MulAdd(a, a, constant(1.0f)));
  const FloatVec other = hn::IfThenElse(hn::Lt(a, constant(1e9f)), root, a);  // not infinite
  const FloatVec large = hn::CopySign(log_of_normal(hn::Add(a, other)), x);
  return hn::IfThenElse(hn::Lt(a, constant(0.75f)), small, large);
}

HWY_INLINE HWY_ATTR FloatVec log1p(FloatVec x) {
  return hn::Log1p(FloatTag(), x);
}

HWY_INLINE HWY_ATTR FloatVec expm1(FloatVec x) {
  return hn::Expm1(FloatTag(), x);
}
#endif

/// Exact for powers of two.
HWY_INLINE HWY_ATTR FloatVec log2(FloatVec x) {
  const TwoFloats logarithm = log2_in_two(x);
  return hn::Add(logarithm.high, logarithm.low);
}

/// Where erf never comes to.
inline float inverse_at_end(float x) {
  using Limits = std::numeric_limits<float>;
  return std::fabs(x) == 1 ? std::copysign(Limits::infinity(), x) : Limits::quiet_NaN();
}

#define HEDDLE_WIDE_UNARY(NAME, EXPRESSION, GOOD, EXACT)                         \
  struct NAME##_op {                                                             \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) { return EXPRESSION; } \
    static HWY_INLINE HWY_ATTR Mask good(FloatVec x) { return GOOD; }            \
    static float exact(float x) { return EXACT; }                                \
  }
HEDDLE_WIDE_UNARY(log, log_of_normal(x), between(x, kSmallest, kLargest), std::log(x));
HEDDLE_WIDE_UNARY(log2, log2(x), between(x, kSmallest, kLargest), std::log2(x));
HEDDLE_WIDE_UNARY(log10, hn::Mul(log_of_normal(x), constant(0.434294482f)),
                  between(x, kSmallest, kLargest), std::log10(x));
HEDDLE_WIDE_UNARY(log1p, log1p(x), between(x, -0.999f, 1e37f), std::log1p(x));
HEDDLE_WIDE_UNARY(expm1, expm1(x), between(x, -100.0f, 88.0f), std::expm1(x));
HEDDLE_WIDE_UNARY(sin, hn::Sin(FloatTag(), x), within(x, 39000.0f), std::sin(x));
HEDDLE_WIDE_UNARY(cos, hn::Cos(FloatTag(), x), within(x, 39000.0f), std::cos(x));
HEDDLE_WIDE_UNARY(tan, tan(x), within(x, 8192.0f), std::tan(x));
HEDDLE_WIDE_UNARY(sinh, sinh(x), within(x, 88.0f), std::sinh(x));
HEDDLE_WIDE_UNARY(cosh, cosh(x), within(x, 88.0f), std::cosh(x));
HEDDLE_WIDE_UNARY(arcsin, hn::Asin(FloatTag(), x), within(x, 1.0f), std::asin(x));
HEDDLE_WIDE_UNARY(arccos, hn::Acos(FloatTag(), x), within(x, 1.0f), std::acos(x));
HEDDLE_WIDE_UNARY(arctan, hn::Atan(FloatTag(), x), hn::Eq(x, x), std::atan(x));
HEDDLE_WIDE_UNARY(erfinv, erfinv(x), within(x, 0x1.fffffep-1f), inverse_at_end(x));
#if HWY_TARGET != HWY_AVX3
HEDDLE_WIDE_UNARY(arcsinh, arcsinh(x), within(x, 1e38f), std::asinh(x));
HEDDLE_WIDE_UNARY(arccosh, hn::Acosh(FloatTag(), x), between(x, 1.0f, kLargest), std::acosh(x));
HEDDLE_WIDE_UNARY(arctanh, hn::Atanh(FloatTag(), x), within(x, 0.999f), std::atanh(x));
#endif
#undef HEDDLE_WIDE_UNARY

// ---- No range is left to the library

#define HEDDLE_WHOLE_UNARY(NAME, EXPRESSION)                                                      \
  struct NAME##_op {                                                                              \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) { return EXPRESSION; }                  \
    static HWY_INLINE HWY_ATTR Mask good(FloatVec) { return hn::FirstN(FloatTag(), kMostLanes); } \
    static float exact(float x) { return x; }                                                     \
  }
HEDDLE_WHOLE_UNARY(floor, hn::Floor(x));
HEDDLE_WHOLE_UNARY(ceil, hn::Ceil(x));
HEDDLE_WHOLE_UNARY(trunc, hn::Trunc(x));
HEDDLE_WHOLE_UNARY(round, hn::Round(x));
HEDDLE_WHOLE_UNARY(sign, hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, constant(0.0f))), x,
                                        hn::CopySign(constant(1.0f), x)));
#if HWY_TARGET == HWY_AVX3
HEDDLE_WHOLE_UNARY(arcsinh, arcsinh(x));
HEDDLE_WHOLE_UNARY(arccosh, arccosh(x));
HEDDLE_WHOLE_UNARY(arctanh, arctanh(x));
#endif
#undef HEDDLE_WHOLE_UNARY

// ---- Of two arguments

HWY_INLINE HWY_ATTR Mask finite(FloatVec a, FloatVec b) {
  return hn::And(within(a, kLargest), within(b, kLargest));
}

// a = q b + r with a whole q and r of b's sign. Below 2^22 quotients are exact up to one, and so is
// the remainder in the fused operation, which then says which q is right.
struct Division {
  FloatVec quotient, rest;
  Mask good;
};
HWY_INLINE HWY_ATTR Division divide_whole(FloatVec a, FloatVec b) {
  const FloatVec one = constant(1.0f), zero = constant(0.0f);
  const FloatVec ratio = hn::Div(a, b), size = hn::Abs(b);
  FloatVec q = hn::Floor(ratio);
  // In the direction of b, so that a right rest lies in [0, |b|).
  FloatVec r = hn::Mul(hn::NegMulAdd(q, b, a), hn::CopySign(one, b));
  const auto low = hn::Lt(r, zero), high = hn::Ge(r, size);
  q = hn::IfThenElse(low, hn::Sub(q, one), hn::IfThenElse(high, hn::Add(q, one), q));
  r = hn::Mul(hn::NegMulAdd(q, b, a), hn::CopySign(one, b));
  const Mask good = hn::And(hn::And(within(ratio, 4194304.0f), between(r, 0.0f, kLargest)),
                            hn::And(between(size, 1e-30f, 1e30f), within(a, 1e30f)));
  // A quotient of 0 has the sign of a / b.
  return {hn::IfThenElse(hn::Eq(q, zero), hn::CopySign(zero, ratio), q), hn::CopySign(r, b), good};
}

struct remainder_op {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b, Mask& good) {
    const Division division = divide_whole(a, b);
    good = division.good;
    return division.rest;
  }
  static float exact(float a, float b) { return floor_rest(a, b); }
};
struct floor_divide_op {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b, Mask& good) {
    const Division division = divide_whole(a, b);
    good = division.good;
    return division.quotient;
  }
  static float exact(float a, float b) { return floor_quotient(a, b); }
};

// |a|^b = 2^(b log2 |a|), with a logarithm in two parts since its error is multiplied by what may
// be 128; a negative base has a power where the exponent is whole. The polynomial is an
// interpolation of 2^f for |f| <= 1/2, error 9e-9.
struct power_op {
  /// b times a logarithm, in two parts.
  static HWY_INLINE HWY_ATTR TwoFloats exponent(TwoFloats logarithm, FloatVec b) {
    const FloatVec product = hn::Mul(b, logarithm.high);
    return {product, hn::MulAdd(b, logarithm.low, hn::MulSub(b, logarithm.high, product))};
  }
  static HWY_INLINE HWY_ATTR FloatVec of_size(FloatVec size, FloatVec b) {
    // Bounds beyond which any power of another number than 1 overflows or vanishes.
    const FloatVec factor = hn::Min(hn::Max(b, constant(-1e12f)), constant(1e12f));
    const auto [product, rest] = exponent(log2_in_two(size), factor);
    const FloatVec bounded = hn::Min(hn::Max(product, constant(-200.0f)), constant(200.0f));
    const FloatVec one = constant(1.0f), low = hn::Min(hn::Max(rest, hn::Neg(one)), one);
#if HWY_TARGET == HWY_AVX3
    return exp2_by_table(bounded, low);
#else
    const FloatVec n = hn::Round(bounded), f = hn::Add(hn::Sub(bounded, n), low);
    const FloatVec e = polynomial(f, 1.0f, 0.693147182f, 0.240226507f, 0.0555035695f,
                                  0.00961808302f, 0.00133908633f, 0.000154531634f);
    const auto whole = hn::ConvertTo(hn::RebindToSigned<FloatTag>(), n);
    const auto half = hn::ShiftRight<1>(whole);
    return hn::Mul(hn::Mul(e, power_of_two(half)), power_of_two(hn::Sub(whole, half)));
#endif
  }
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b, Mask& good) {
#if HWY_TARGET == HWY_AVX3
    // Within bounds that leave nothing to bound: what of_size() gives, with less work.
    const auto [product, rest] = exponent(log2_in_two(a), b);
    good = hn::And(between(a, kSmallest, kLargest), within(product, 120.0f));
    if (HWY_LIKELY(hn::AllTrue(FloatTag(), good))) return exp2_by_table(product, rest);
#else
    good = hn::And(between(a, kSmallest, kLargest), within(b, kLargest));
    if (HWY_LIKELY(hn::AllTrue(FloatTag(), good))) return of_size(a, b);
#endif
    return of_any(a, b, good);
  }
  /// Bases that are 0 or negative too.
  static HWY_NOINLINE HWY_ATTR FloatVec of_any(FloatVec a, FloatVec b, Mask& good) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec size = hn::Abs(a);
    FloatVec power = of_size(size, b);
    const Mask is_zero = hn::Eq(a, constant(0.0f)), is_negative = hn::Lt(a, constant(0.0f));
    const Mask is_whole = hn::And(hn::Eq(hn::Round(b), b), within(b, 8388608.0f));
    const auto odd_bit = hn::TestBit(hn::ConvertTo(di, b), hn::Set(di, 1));
    const Mask is_odd = hn::And(is_whole, hn::RebindMask(d, odd_bit));
    power = hn::IfThenZeroElse(is_zero, power);
    power = hn::IfThenElse(is_odd, hn::CopySign(power, a), power);
    const Mask usual = hn::And(between(size, kSmallest, kLargest), within(b, kLargest));
    const Mask zero_raised =
        hn::And(is_zero, hn::And(hn::Gt(b, constant(0.0f)), within(b, kLargest)));
    good = hn::Or(hn::And(usual, hn::Or(hn::Not(is_negative), is_whole)), zero_raised);
    return power;
  }
  static float exact(float a, float b) {
    return std::pow(a, b);
  }
};

// From the smaller over the larger of both, turned into its octant.
struct arctan2_op {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec y, FloatVec x, Mask& good) {
    const FloatVec size_y = hn::Abs(y), size_x = hn::Abs(x);
    const FloatVec larger = hn::Max(size_y, size_x), smaller = hn::Min(size_y, size_x);
    const FloatVec t = hn::Div(smaller, larger);
    FloatVec angle = hn::Atan(FloatTag(), t);
    angle = hn::IfThenElse(hn::Gt(size_y, size_x),
                           hn::Sub(constant(std::numbers::pi_v<float> / 2), angle), angle);
    angle = hn::IfThenElse(hn::Lt(x, constant(0.0f)),
                           hn::Sub(constant(std::numbers::pi_v<float>), angle), angle);
    good = hn::And(hn::And(finite(y, x), hn::Ge(larger, constant(kSmallest))),
                   hn::Or(hn::Ge(t, constant(kSmallest)), hn::Eq(smaller, constant(0.0f))));
    return hn::CopySign(angle, y);
  }
  static float exact(float y, float x) { return std::atan2(y, x); }
};

/// log(1 + e) = 2 artanh(s), s = e / (2 + e), for e in [0, 1]: an interpolation of
/// (2 artanh(s) - 2s) / s^3 in s^2, error 1e-9.
HWY_INLINE HWY_ATTR FloatVec log1p_of_part(FloatVec e) {
  const FloatVec s = hn::Div(e, hn::Add(e, constant(2.0f))), z = hn::Mul(s, s);
  const FloatVec p =
      polynomial(z, 0.666666687f, 0.399997056f, 0.28592357f, 0.217065752f, 0.232243299f);
  return hn::MulAdd(hn::Mul(s, z), p, hn::Add(s, s));
}

struct logaddexp_op {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b, Mask& good) {
    const FloatVec larger = hn::Max(a, b), smaller = hn::Min(a, b);
    good = finite(a, b);
    return hn::Add(larger, log1p_of_part(exp_below_88(hn::Sub(smaller, larger))));
  }
  static float exact(float a, float b) { return LogAddExp()(a, b); }
};

template <Stores kStores>
FloatUnary find_unary(UnaryKind kind) {
  switch (kind) {
#define HEDDLE_CASE(NAME) \
  case UnaryKind::NAME:   \
    return map_unary<NAME##_op, kStores>
    HEDDLE_CASE(log);
    HEDDLE_CASE(log2);
    HEDDLE_CASE(log10);
    HEDDLE_CASE(log1p);
    HEDDLE_CASE(expm1);
    HEDDLE_CASE(sin);
    HEDDLE_CASE(cos);
    HEDDLE_CASE(tan);
    HEDDLE_CASE(sinh);
    HEDDLE_CASE(cosh);
    HEDDLE_CASE(arcsin);
    HEDDLE_CASE(arccos);
    HEDDLE_CASE(arctan);
    HEDDLE_CASE(arcsinh);
    HEDDLE_CASE(arccosh);
    HEDDLE_CASE(arctanh);
    HEDDLE_CASE(erfinv);
    HEDDLE_CASE(floor);
    HEDDLE_CASE(ceil);
    HEDDLE_CASE(trunc);
    HEDDLE_CASE(round);
    HEDDLE_CASE(sign);
#undef HEDDLE_CASE
    default:
      return nullptr;
  }
}

template <Stores kStores>
FloatBinary find_binary(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::floor_divide:
      return map_binary<floor_divide_op, kStores>;
    case BinaryKind::remainder:
      return map_binary<remainder_op, kStores>;
    case BinaryKind::power:
      return map_binary<power_op, kStores>;
    case BinaryKind::arctan2:
      return map_binary<arctan2_op, kStores>;
    case BinaryKind::logaddexp:
      return map_binary<logaddexp_op, kStores>;
    default:
      return nullptr;
  }
}

#else

template <Stores>
FloatUnary find_unary(UnaryKind) {
  return nullptr;
}
template <Stores>
FloatBinary find_binary(BinaryKind) {
  return nullptr;
}

#endif

const WideTable& wide_table() {
  static constexpr WideTable kTable{find_unary<Stores::cached>, find_binary<Stores::cached>,
                                    find_unary<Stores::streamed>, find_binary<Stores::streamed>};
  return kTable;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const WideTable& table() {
  HEDDLE_SIMD_RETURN(wide_table);
}
}  // namespace

FloatUnary wide_unary(UnaryKind kind, Stores stores) {
  return stores == Stores::streamed ? table().streamed_unary(kind) : table().unary(kind);
}
FloatBinary wide_binary(BinaryKind kind, Stores stores) {
  return stores == Stores::streamed ? table().streamed_binary(kind) : table().binary(kind);
}

}  // namespace heddle::cpu
#endif
