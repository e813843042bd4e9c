// Vector functions of float, for one Highway target: to be included again for each.
#if defined(HEDDLE_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_CPU_MATH_INL
#undef HEDDLE_CPU_MATH_INL
#else
#define HEDDLE_CPU_MATH_INL
#endif

#include "device/cpu/math_basics-inl.h"
#include "device/cpu/math_by_table-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_AVX3
HWY_INLINE HWY_ATTR FloatVec exp(FloatVec x) {
  const FloatVec clamped = hn::Min(hn::Max(x, constant(-105.0f)), constant(89.0f));
  const FloatVec n = hn::Round(hn::Mul(clamped, constant(1.44269504f)));
  return hn::IfThenElse(hn::IsNaN(x), x, exp_of_parts(n, less_ln2(clamped, n)));
}

/// e^x for x <= 88, perhaps with 0 for what would be subnormal. NaN stays.
HWY_INLINE HWY_ATTR FloatVec exp_below_88(FloatVec x) {
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec n = hn::Round(hn::Mul(x, constant(1.44269504f)));
  const FloatVec r = less_ln2(x, n);
  const FloatVec e = hn::Add(hn::MulAdd(hn::Mul(r, r), exp_rest(r), r), constant(1.0f));
  const FloatVec scaled = hn::Mul(e, power_of_two(hn::ConvertTo(di, n)));
  return hn::IfThenZeroElse(hn::Lt(x, constant(-87.3f)), scaled);
}
/// x = 2^n m, a normal number above 0, with m between the roots of 1/2 and 2.
struct Scaled {
  FloatVec n, m;
};
HWY_INLINE HWY_ATTR Scaled scaled_about_one(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto bits = hn::BitCast(di, x);
  const auto n = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  return {hn::ConvertTo(d, n), hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(n)))};
}

// n ln 2 + log m, where log m = 2 artanh(s) with s = (m - 1) / (m + 1). The polynomial is an
// interpolation of (2 artanh(s) - 2s) / s^3 in s^2 with an error of 2.5e-9.
HWY_INLINE HWY_ATTR FloatVec log_of_normal(FloatVec x) {
  const auto [exponent, m] = scaled_about_one(x);
  const FloatVec one = constant(1.0f);
  const FloatVec s = hn::Div(hn::Sub(m, one), hn::Add(m, one)), z = hn::Mul(s, s);
  const FloatVec p = polynomial(z, 0.666666865f, 0.3998878f, 0.295799494f);
  const FloatVec log_m = hn::MulAdd(hn::Mul(s, z), p, hn::Add(s, s));
  return hn::MulAdd(exponent, constant(0.693359375f),
                    hn::MulAdd(exponent, constant(-2.12194440e-4f), log_m));
}

// What sums of powers add up: e^(x - s), where kTermUnit s is `shift`. NaN stays.
constexpr float kTermUnit = 1;
HWY_INLINE HWY_ATTR FloatVec term_exponent(FloatVec x, FloatVec shift) {
  return hn::Sub(x, shift);
}
HWY_INLINE HWY_ATTR FloatVec term_of(FloatVec exponent) {
  return exp_below_88(hn::Min(constant(88.0f), exponent));  // the second if it is NaN
}
#endif

/// Works from e^-|x|, which never overflows.
HWY_INLINE HWY_ATTR FloatVec sigmoid(FloatVec x) {
  const FloatVec e = exp_below_88(hn::Neg(hn::Abs(x)));
  const FloatVec numerator = hn::IfThenElse(hn::Lt(x, constant(0.0f)), e, constant(1.0f));
  return hn::Div(numerator, hn::Add(e, constant(1.0f)));
}

HWY_INLINE HWY_ATTR FloatVec silu(FloatVec x) {
  return hn::Mul(x, sigmoid(x));
}

#if HWY_TARGET != HWY_AVX3
// Below 0.625 a polynomial (Chebyshev fit of (tanh(x)/x - 1) / x^2 in x^2, error 1.8e-9), which
// keeps small values exact; above it 1 - 2 / (e^2x + 1).
HWY_INLINE HWY_ATTR FloatVec tanh(FloatVec x) {
  const FloatVec a = hn::Abs(x), s = hn::Mul(x, x);
  const FloatVec p = polynomial(s, -0.333333331f, 0.133333001f, -0.0539584616f, 0.0217625029f,
                                -0.00832318706f, 0.00226950168f);
  const FloatVec small = hn::MulAdd(hn::Mul(x, s), p, x);
  const FloatVec twice = hn::Add(a, a), most = constant(40.0f);
  const FloatVec e = exp_below_88(hn::IfThenElse(hn::Gt(twice, most), most, twice));  // NaN stays
  const FloatVec large =
      hn::Sub(constant(1.0f), hn::Div(constant(2.0f), hn::Add(e, constant(1.0f))));
  return hn::IfThenElse(hn::Lt(a, constant(0.625f)), small, hn::CopySign(large, x));
}

// Below 0.8 a polynomial (Chebyshev fit of erf(x)/x in x^2, error 3e-9); above it 1 - 2^p with a
// polynomial for p = log2(erfc(x)), which moves erf(x) by 3e-10 at most. 3.95 and more are 1.
HWY_INLINE HWY_ATTR FloatVec erf(FloatVec x) {
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec a = hn::Abs(x), s = hn::Mul(x, x);
  const FloatVec near_zero = polynomial(s, 1.12837916f, -0.376126038f, 0.112831428f, -0.0268221081f,
                                        0.005087439f, -0.000654959132f);
  const FloatVec t = hn::Min(a, constant(3.95f));
  const FloatVec p = polynomial(t, 0.000180045986f, -1.62918004f, -0.914504687f, -0.155315808f,
                                0.0356309824f, -0.00577646643f, 0.000575075184f, -2.58002259e-5f);
  const FloatVec n = hn::Round(p), f = hn::Sub(p, n);
  const FloatVec power = polynomial(f, 1.00000007f, 0.693146967f, 0.240221197f, 0.0555071334f,
                                    0.00967554117f, 0.00132764515f);
  const FloatVec tail = hn::Mul(power, power_of_two(hn::ConvertTo(di, n)));
  const FloatVec large = hn::CopySign(hn::Sub(constant(1.0f), tail), x);
  const FloatVec value = hn::IfThenElse(hn::Lt(a, constant(0.8f)), hn::Mul(x, near_zero), large);
  return hn::IfThenElse(hn::IsNaN(x), x, value);
}

/// e^(-x^2 / 2) for |x| <= 15 with its full relative accuracy: the square of x's high bits is
/// exact, and what is left joins after the reduction.
HWY_INLINE HWY_ATTR FloatVec gauss(FloatVec x) {
  const hn::RebindToUnsigned<FloatTag> du;
  const FloatVec high =
      hn::BitCast(FloatTag(), hn::And(hn::BitCast(du, x), hn::Set(du, 0xfffff000u)));
  const FloatVec rest = hn::Mul(hn::Mul(constant(-0.5f), hn::Sub(x, high)), hn::Add(x, high));
  const FloatVec exponent = hn::Mul(constant(-0.5f), hn::Mul(high, high));
  const FloatVec n = hn::Round(hn::Mul(hn::Add(exponent, rest), constant(1.44269504f)));
  return exp_of_parts(n, hn::Add(less_ln2(exponent, n), rest));
}

// x * Phi(x), with Phi(-a) = e^(-a^2 / 2) R(t) / (1 + a) for a >= 0, so that its small values keep
// their relative accuracy. R is an interpolation in t = (a - 4.5) / (a + 4.5) for a <= 15, error
// 3e-8; both quotients come from one division.
HWY_INLINE HWY_ATTR FloatVec gelu(FloatVec x) {
  const FloatVec a = hn::Min(hn::Abs(x), constant(15.0f)), one = constant(1.0f);
  const FloatVec u = hn::Add(a, constant(4.5f)), v = hn::Add(a, one);
  const FloatVec inverse = hn::Div(one, hn::Mul(u, v));
  const FloatVec t = hn::Mul(hn::Mul(hn::Sub(a, constant(4.5f)), v), inverse);
  const FloatVec r =
      polynomial(t, 0.466418654f, -0.0944567621f, 0.023842508f, 0.0189228356f, -0.030369956f,
                 0.0226152465f, -0.0106289051f, 0.0027057766f, 0.000205084114f, -0.000319719169f);
  const FloatVec tail = hn::Mul(gauss(a), hn::Mul(hn::Mul(r, u), inverse));
  const FloatVec phi = hn::IfThenElse(hn::Lt(x, constant(0.0f)), tail, hn::Sub(one, tail));
  return hn::Mul(x, phi);
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
HWY_INLINE HWY_ATTR FloatVec gelu_tanh(FloatVec x) {
  const FloatVec cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), constant(0.044715f), x);
  return hn::Mul(x, sigmoid(hn::Mul(cubic, constant(1.59576912f))));
}
#endif

HWY_INLINE HWY_ATTR FloatVec relu(FloatVec x) {
  return hn::IfThenElse(hn::Lt(x, constant(0.0f)), constant(0.0f), x);  // NaN passes
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
