// Vector functions of float, for one Highway target: to be included again for each.
#if defined(HEDDLE_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_CPU_MATH_INL
#undef HEDDLE_CPU_MATH_INL
#else
#define HEDDLE_CPU_MATH_INL
#endif

#include "device/cpu/math_tables.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE HWY_ATTR FloatVec constant(float value) {
  return hn::Set(FloatTag(), value);
}

/// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
HWY_INLINE HWY_ATTR FloatVec polynomial(FloatVec, float c0) {
  return constant(c0);
}
template <class... Rest>
HWY_INLINE HWY_ATTR FloatVec polynomial(FloatVec x, float c0, Rest... rest) {
  return hn::MulAdd(polynomial(x, rest...), x, constant(c0));
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

#if HWY_TARGET == HWY_AVX3
// Tables stay in registers here, and a look-up costs as much as a product.

/// Lane by lane the table's element that the lowest four bits of `index` say.
HWY_INLINE HWY_ATTR FloatVec look_up(const float (&table)[16], FloatVec index) {
  const FloatVec elements = hn::Load(FloatTag(), table);
  return FloatVec{_mm512_permutexvar_ps(_mm512_castps_si512(index.raw), elements.raw)};
}

/// e^(x + rest) for |x| < 10^4 and a small rest: 2^y e^r with y a multiple of 1/16, whose
/// fraction the low bits of its sum with 1.5 * 2^19 say, and |r| <= ln(2)/32. NaN stays.
template <class... Rest>
HWY_INLINE HWY_ATTR FloatVec exp_by_table(FloatVec x, Rest... rest) {
  const FloatVec shift = constant(786432.0f);
  const FloatVec shifted = hn::MulAdd(x, constant(1.44269504f), shift);
  const FloatVec y = hn::Sub(shifted, shift), root = look_up(kRootsOfTwo, shifted);
  FloatVec r = hn::Add(less_ln2(x, y), look_up(kRootsOfTwoRest, shifted));
  ((r = hn::Add(r, rest)), ...);
  const FloatVec p = hn::MulAdd(hn::Mul(r, r), polynomial(r, 0.5f, 0.166666672f), r);
  return FloatVec{_mm512_scalef_ps(hn::MulAdd(root, p, root).raw, y.raw)};
}

/// 2^(x + rest) for |x| < 10^4 and |rest| <= 1, usually tiny, in the same way: the polynomial of
/// 2^f is Taylor's, with an error of 9e-9.
HWY_INLINE HWY_ATTR FloatVec exp2_by_table(FloatVec x, FloatVec rest) {
  const FloatVec shift = constant(786432.0f), shifted = hn::Add(x, shift);
  const FloatVec y = hn::Sub(shifted, shift), f = hn::Add(hn::Sub(x, y), rest);
  const FloatVec quotient = polynomial(f, 0.693147182f, 0.240226507f, 0.0555041087f);
  const FloatVec p = hn::MulAdd(f, quotient, look_up(kRootsOfTwoRest, shifted));
  const FloatVec root = look_up(kRootsOfTwo, shifted);
  return FloatVec{_mm512_scalef_ps(hn::MulAdd(root, p, root).raw, y.raw)};
}

/// A function of a in [0, 15 start), or NaN, by its pieces (math_tables.h).
template <int kTerms>
HWY_INLINE HWY_ATTR FloatVec by_pieces(const float (&table)[kTerms][kPieces], float start,
                                       FloatVec a) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const FloatVec above = hn::Add(a, constant(start));
  const auto bits = hn::BitCast(du, above), piece = hn::ShiftRight<20>(bits);
  const FloatVec t = hn::Sub(above, hn::BitCast(d, hn::And(bits, hn::Set(du, 0xfff00000u))));
  const auto term = [&](int c) HWY_ATTR {
    const FloatVec low = hn::Load(d, table[c]), high = hn::Load(d, table[c] + kPieces / 2);
    return FloatVec{_mm512_permutex2var_ps(low.raw, piece.raw, high.raw)};
  };
  FloatVec value = term(kTerms - 1);
  for (int c = kTerms - 2; c >= 0; --c) value = hn::MulAdd(value, t, term(c));
  return value;
}

/// An odd function that is 1 from `end` on, where a piece begins; by pieces of its quotient with x
/// below 1.
template <int kTerms>
HWY_INLINE HWY_ATTR FloatVec odd_by_pieces(const float (&table)[kTerms][kPieces], float start,
                                           float end, FloatVec x) {
  const FloatVec a = hn::Min(constant(end), hn::Abs(x));  // the second if it is NaN
  const FloatVec factor = hn::Min(constant(1.0f), a);
  return hn::CopySign(hn::Mul(factor, by_pieces(table, start, a)), x);
}

HWY_INLINE HWY_ATTR FloatVec exp(FloatVec x) {
  const FloatVec low = hn::Max(constant(-105.0f), x);  // the second if it is NaN
  return exp_by_table(hn::Min(constant(89.0f), low));
}

/// e^x for x <= 88. NaN stays.
HWY_INLINE HWY_ATTR FloatVec exp_below_88(FloatVec x) {
  return exp_by_table(hn::Max(constant(-105.0f), x));
}
#else
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
#endif

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

/// Works from e^-|x|, which never overflows.
HWY_INLINE HWY_ATTR FloatVec sigmoid(FloatVec x) {
  const FloatVec e = exp_below_88(hn::Neg(hn::Abs(x)));
  const FloatVec numerator = hn::IfThenElse(hn::Lt(x, constant(0.0f)), e, constant(1.0f));
  return hn::Div(numerator, hn::Add(e, constant(1.0f)));
}

HWY_INLINE HWY_ATTR FloatVec silu(FloatVec x) {
  return hn::Mul(x, sigmoid(x));
}

#if HWY_TARGET == HWY_AVX3
HWY_INLINE HWY_ATTR FloatVec tanh(FloatVec x) {
  return odd_by_pieces(kTanh, 1.0f, 10.0f, x);
}

HWY_INLINE HWY_ATTR FloatVec erf(FloatVec x) {
  return odd_by_pieces(kErf, 0.5f, 4.0f, x);
}

// x * Phi(x), with Phi(-a) = e^(-a^2 / 2) times Mills' ratio for a >= 0, so that its small values
// keep their relative accuracy; what a^2 loses by rounding joins after the reduction.
HWY_INLINE HWY_ATTR FloatVec gelu(FloatVec x) {
  const FloatVec a = hn::Min(constant(14.5f), hn::Abs(x));  // the second if it is NaN
  const FloatVec minus_half = constant(-0.5f), square = hn::Mul(a, a);
  const FloatVec rest = hn::Mul(minus_half, hn::MulSub(a, a, square));
  const FloatVec gauss = exp_by_table(hn::Mul(minus_half, square), rest);
  const FloatVec tail = hn::Mul(gauss, by_pieces(kMillsRatio, 1.0f, a));
  const auto negative = hn::Lt(x, constant(0.0f));
  return hn::Mul(x, hn::IfThenElse(negative, tail, hn::Sub(constant(1.0f), tail)));
}
#else
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
#endif

// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
HWY_INLINE HWY_ATTR FloatVec gelu_tanh(FloatVec x) {
  const FloatVec cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), constant(0.044715f), x);
  return hn::Mul(x, sigmoid(hn::Mul(cubic, constant(1.59576912f))));
}

HWY_INLINE HWY_ATTR FloatVec relu(FloatVec x) {
  return hn::IfThenElse(hn::Lt(x, constant(0.0f)), constant(0.0f), x);  // NaN passes
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
