// Functions of math-inl.h by tables, for AVX-512: they stay in registers, and a look-up costs as
// much as a product. To be included again for each Highway target.
#if defined(HEDDLE_CPU_MATH_BY_TABLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_CPU_MATH_BY_TABLE_INL
#undef HEDDLE_CPU_MATH_BY_TABLE_INL
#else
#define HEDDLE_CPU_MATH_BY_TABLE_INL
#endif

#include <cmath>

#include "device/cpu/math_basics-inl.h"
#include "device/cpu/math_tables.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

/// Lane by lane the table's element that the lowest bits of `index` say.
HWY_INLINE HWY_ATTR FloatVec look_up(const float (&table)[16], IntVec index) {
  return FloatVec{_mm512_permutexvar_ps(index.raw, hn::Load(FloatTag(), table).raw)};
}
HWY_INLINE HWY_ATTR FloatVec look_up(const float (&table)[32], IntVec index) {
  const FloatVec low = hn::Load(FloatTag(), table), high = hn::Load(FloatTag(), table + 16);
  return FloatVec{_mm512_permutex2var_ps(low.raw, index.raw, high.raw)};
}

// ---- Powers

/// e^x = 2^floor(y) root e^r.
struct PowerParts {
  FloatVec y, root, r;
};
/// Of x + rest for |x| < 10^4 and a small rest: 2^y e^r with y a multiple of 1/16, whose fraction
/// the low bits of its sum with 1.5 * 2^19 say, and |r| <= ln(2)/32. NaN stays.
template <class... Rest>
HWY_INLINE HWY_ATTR PowerParts power_parts(FloatVec x, Rest... rest) {
  const FloatVec shift = constant(786432.0f);
  const FloatVec shifted = hn::MulAdd(x, constant(1.44269504f), shift);
  const IntVec index = hn::BitCast(IntTag(), shifted);
  const FloatVec y = hn::Sub(shifted, shift);
  FloatVec r = hn::Add(less_ln2(x, y), look_up(kRootsOfTwoRest, index));
  ((r = hn::Add(r, rest)), ...);
  return {y, look_up(kRootsOfTwo, index), r};
}
/// 2^floor(y) x.
HWY_INLINE HWY_ATTR FloatVec scaled(FloatVec x, FloatVec y) {
  return FloatVec{_mm512_scalef_ps(x.raw, y.raw)};
}

template <class... Rest>
HWY_INLINE HWY_ATTR FloatVec exp_by_table(FloatVec x, Rest... rest) {
  const auto [y, root, r] = power_parts(x, rest...);
  const FloatVec p = hn::MulAdd(hn::Mul(r, r), polynomial(r, 0.5f, 0.166666672f), r);
  return scaled(hn::MulAdd(root, p, root), y);
}

/// 2^(x + rest) for |x| < 10^4 and |rest| <= 1, usually tiny, in the same way: the polynomial of
/// 2^f is Taylor's, with an error of 9e-9.
HWY_INLINE HWY_ATTR FloatVec exp2_by_table(FloatVec x, FloatVec rest) {
  const FloatVec shift = constant(786432.0f), shifted = hn::Add(x, shift);
  const IntVec index = hn::BitCast(IntTag(), shifted);
  const FloatVec y = hn::Sub(shifted, shift), f = hn::Add(hn::Sub(x, y), rest);
  const FloatVec quotient = polynomial(f, 0.693147182f, 0.240226507f, 0.0555041087f);
  const FloatVec p = hn::MulAdd(f, quotient, look_up(kRootsOfTwoRest, index));
  const FloatVec root = look_up(kRootsOfTwo, index);
  return scaled(hn::MulAdd(root, p, root), y);
}

HWY_INLINE HWY_ATTR FloatVec exp(FloatVec x) {
  const FloatVec low = hn::Max(constant(-105.0f), x);  // the second if it is NaN
  return exp_by_table(hn::Min(constant(89.0f), low));
}

/// e^x for x <= 88. NaN stays.
HWY_INLINE HWY_ATTR FloatVec exp_below_88(FloatVec x) {
  return exp_by_table(hn::Max(constant(-105.0f), x));
}

/// e^x - 1 for x <= 88: about 0, where the root is 1, what is left is e^r - 1.
HWY_INLINE HWY_ATTR FloatVec expm1(FloatVec x) {
  const auto [y, root, r] = power_parts(hn::Max(constant(-105.0f), x));
  const FloatVec terms = polynomial(r, 0.5f, 0.166666672f, 0.0416666679f);
  const FloatVec p = hn::MulAdd(hn::Mul(r, r), terms, r);
  const FloatVec power = scaled(root, y);
  return hn::CopySign(hn::MulAdd(power, p, hn::Sub(power, constant(1.0f))), x);  // -0 too
}

// What sums of powers add up: e^(x - s) with an error of 1e-7 and what x - s was rounded by, where
// kTermUnit s is a float `shift`. What overflows is infinite, and NaN stays.
constexpr float kTermUnit = 1.44269504f;
HWY_INLINE HWY_ATTR FloatVec term_exponent(FloatVec x, FloatVec shift) {
  return hn::MulSub(x, constant(kTermUnit), shift);
}
HWY_INLINE HWY_ATTR FloatVec term_of(FloatVec exponent) {
  const FloatVec x = hn::Max(constant(-160.0f), exponent);  // the second if it is NaN
  const FloatVec shift = constant(393216.0f), shifted = hn::Add(x, shift);
  const FloatVec y = hn::Sub(shifted, shift), f = hn::Sub(x, y);
  const FloatVec root = look_up(kFineRootsOfTwo, hn::BitCast(IntTag(), shifted));
  const FloatVec quotient = polynomial(f, 0.6931573f, 0.24022886f);  // of 2^f - 1 and f
  return scaled(hn::MulAdd(hn::Mul(root, f), quotient, root), y);
}

// ---- Logarithms

/// x = 2^n m, a normal number above 0, with m from the number on whose bits are `least`; 2^23 n,
/// and that with how far m's bits are above `least`.
struct Taken {
  FloatVec n, m;
  IntVec power, above;
};
HWY_INLINE HWY_ATTR Taken taken_apart(FloatVec x, std::int32_t least) {
  const IntVec bits = hn::BitCast(IntTag(), x), above = hn::Sub(bits, hn::Set(IntTag(), least));
  const IntVec power = hn::And(above, hn::Set(IntTag(), -0x800000));
  return {hn::ConvertTo(FloatTag(), hn::ShiftRight<23>(above)),
          hn::BitCast(FloatTag(), hn::Sub(bits, power)), power, above};
}

// log x = n ln 2 - log c + log(1 + r), where c is nearly the inverse of m and r = c m - 1, so that
// |r| <= 1/32.
HWY_INLINE HWY_ATTR FloatVec log_of_normal(FloatVec x) {
  const Taken t = taken_apart(x, 0x3f340000);
  const IntVec piece = hn::ShiftRight<19>(t.above);
  const FloatVec whole = hn::MulAdd(t.n, constant(0.693147182f), look_up(kLogs, piece));
  const FloatVec r = hn::MulSub(t.m, look_up(kInverses, piece), constant(1.0f));
  return hn::Add(whole, log1p_of_small(r));
}

/// log(1 + x) for -1 < x <= 1e37: what the sum loses by rounding joins r.
HWY_INLINE HWY_ATTR FloatVec log1p(FloatVec x) {
  const FloatVec one = constant(1.0f), sum = hn::Add(one, x);
  const FloatVec lost = hn::Sub(x, hn::Sub(sum, one));
  const Taken t = taken_apart(sum, 0x3f340000);
  const IntVec piece = hn::ShiftRight<19>(t.above);
  const IntVec inverse_power = hn::Sub(hn::BitCast(IntTag(), one), t.power);
  const FloatVec to_m = hn::BitCast(FloatTag(), inverse_power);
  const FloatVec inverse = look_up(kInverses, piece);
  const FloatVec r = hn::MulAdd(hn::Mul(lost, to_m), inverse, hn::MulSub(t.m, inverse, one));
  const FloatVec whole = hn::MulAdd(t.n, constant(0.693147182f), look_up(kLogs, piece));
  return hn::CopySign(hn::Add(whole, log1p_of_small(r)), x);  // -0 too
}

// log2(x) = n - log2(c) + log2(1 + r) in two parts, which together know it to some 2^-31, by a
// table of k c for k, the float next to log2(e): s = k c m - k is exact in two parts. The
// polynomial is a fit of (log2(1 + s / k) - s) / s without what s has to do with 1 / ln 2 - k.
struct TwoFloats {
  FloatVec high, low;
};
HWY_INLINE HWY_ATTR TwoFloats log2_in_two(FloatVec x) {
  const Taken t = taken_apart(x, 0x3f360000);
  const IntVec piece = hn::ShiftRight<18>(t.above);
  const FloatVec inverse = look_up(kInversesForLog2, piece);
  const FloatVec product = hn::Mul(t.m, inverse), s = hn::Sub(product, constant(1.44269502f));
  const FloatVec rest = hn::MulSub(t.m, inverse, product);
  const FloatVec linear = hn::MulAdd(rest, constant(-0.693147182f), constant(1.3349759e-8f));
  const FloatVec q = polynomial(s, -0.3465736f, 0.160151f, -0.08327308f, 0.046180345f);
  const FloatVec low =
      hn::MulAdd(s, hn::MulAdd(s, q, linear), hn::Add(rest, look_up(kLogs2Rest, piece)));
  const FloatVec whole = hn::Add(t.n, look_up(kLogs2, piece));  // exact, and 0 or more than |s|
  const FloatVec high = hn::Add(whole, s);
  return {high, hn::Add(hn::Sub(s, hn::Sub(high, whole)), low)};
}

// ---- By pieces (math_tables.h)

/// The piece of a number, and where that begins.
struct Piece {
  IntVec index;
  FloatVec begin;
};
HWY_INLINE HWY_ATTR Piece piece_of(FloatVec above) {
  const IntVec bits = hn::BitCast(IntTag(), above);
  const IntVec begin = hn::And(bits, hn::Set(IntTag(), -0x100000));
  return {hn::ShiftRight<20>(bits), hn::BitCast(FloatTag(), begin)};
}

template <int kTerms>
HWY_INLINE HWY_ATTR FloatVec in_piece(const float (&table)[kTerms][kPieces], Piece piece,
                                      FloatVec t) {
  FloatVec value = look_up(table[kTerms - 1], piece.index);
  for (int c = kTerms - 2; c >= 0; --c) {
    value = hn::MulAdd(value, t, look_up(table[c], piece.index));
  }
  return value;
}

/// A function of a in [0, 15 start), or NaN, that hardly feels how a + start is rounded.
template <int kTerms>
HWY_INLINE HWY_ATTR FloatVec by_pieces(const float (&table)[kTerms][kPieces], float start,
                                       FloatVec a) {
  const FloatVec above = hn::Add(a, constant(start));
  const Piece piece = piece_of(above);
  return in_piece(table, piece, hn::Sub(above, piece.begin));
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

HWY_INLINE HWY_ATTR FloatVec tanh(FloatVec x) {
  return odd_by_pieces(kTanh, 1.0f, 10.0f, x);
}

HWY_INLINE HWY_ATTR FloatVec erf(FloatVec x) {
  return odd_by_pieces(kErf, 0.5f, 4.0f, x);
}

/// x times a function of it that is 1 from 9 on, by pieces from -5 on; where a lane is below that,
/// or NaN, Far::apply gives its value.
template <class Far, int kTerms>
HWY_INLINE HWY_ATTR FloatVec times_pieces(const float (&table)[kTerms][kPieces], FloatVec x) {
  constexpr float kStart = 6;
  const FloatVec bounded = hn::Min(constant(9.5f), x);  // the second if it is NaN
  const FloatVec above = hn::Add(bounded, constant(kStart));
  const Piece piece = piece_of(above);
  const FloatVec t = hn::Sub(bounded, hn::Sub(piece.begin, constant(kStart)));  // exact
  FloatVec value = in_piece(table, piece, t);
  const auto is_near = hn::Ge(above, constant(1.0f));
  if (HWY_UNLIKELY(!hn::AllTrue(FloatTag(), is_near))) {
    value = hn::IfThenElse(is_near, value, Far::apply(x));
  }
  return hn::Mul(x, value);
}

// Phi(-a) = e^(-a^2 / 2) times Mills' ratio for a >= 0, so that its small values keep their
// relative accuracy; what a^2 loses by rounding joins after the reduction.
struct FarPhi {
  static HWY_NOINLINE HWY_ATTR FloatVec apply(FloatVec x) {
    const FloatVec a = hn::Min(constant(14.5f), hn::Abs(x));  // the second if it is NaN
    const FloatVec minus_half = constant(-0.5f), square = hn::Mul(a, a);
    const FloatVec rest = hn::Mul(minus_half, hn::MulSub(a, a, square));
    const FloatVec gauss = exp_by_table(hn::Mul(minus_half, square), rest);
    return hn::Mul(gauss, by_pieces(kMillsRatio, 1.0f, a));
  }
};

/// x * Phi(x).
HWY_INLINE HWY_ATTR FloatVec gelu(FloatVec x) {
  return times_pieces<FarPhi>(kPhi, x);
}

// sigmoid(2u) = e^2u, u = sqrt(2/pi) (x + 0.044715 x^3), which is below -8.
struct FarGeluTanh {
  static HWY_NOINLINE HWY_ATTR FloatVec apply(FloatVec x) {
    const FloatVec cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), constant(0.044715f), x);
    return exp_below_88(hn::Mul(cubic, constant(1.59576912f)));
  }
};

/// 0.5 x (1 + tanh(u)) = x sigmoid(2u).
HWY_INLINE HWY_ATTR FloatVec gelu_tanh(FloatVec x) {
  return times_pieces<FarGeluTanh>(kGeluTanh, x);
}

/// log(a + sqrt(a^2 + one)) for a >= 15, or infinity, or NaN.
HWY_INLINE HWY_ATTR FloatVec far_inverse(FloatVec a, float one) {
  const FloatVec root = hn::Sqrt(hn::MulAdd(a, a, constant(one)));
  const auto is_huge = hn::Gt(a, constant(1e9f));
  const FloatVec most = constant(3.4e38f);
  const FloatVec sum = hn::IfThenElse(is_huge, hn::Min(a, most), hn::Add(a, root));
  const FloatVec value = log_of_normal(sum);
  const FloatVec doubled = hn::IfThenElse(is_huge, hn::Add(value, constant(0.693147182f)), value);
  return hn::IfThenElse(hn::Lt(a, constant(HUGE_VALF)), doubled, a);
}

struct FarArcsinh {
  static HWY_NOINLINE HWY_ATTR FloatVec apply(FloatVec a) { return far_inverse(a, 1.0f); }
};
HWY_INLINE HWY_ATTR FloatVec arcsinh(FloatVec x) {
  const FloatVec a = hn::Abs(x), one = constant(1.0f), above = hn::Add(a, one);
  const Piece piece = piece_of(above);
  const FloatVec quotient = in_piece(kArcsinh, piece, hn::Sub(above, piece.begin));
  FloatVec value = hn::Mul(hn::Min(one, a), quotient);
  const auto is_near = hn::Lt(above, constant(16.0f));
  if (HWY_UNLIKELY(!hn::AllTrue(FloatTag(), is_near))) {
    value = hn::IfThenElse(is_near, value, FarArcsinh::apply(a));
  }
  return hn::CopySign(value, x);
}

struct FarArccosh {
  static HWY_NOINLINE HWY_ATTR FloatVec apply(FloatVec x) { return far_inverse(x, -1.0f); }
};
/// NaN below 1, as the root is.
HWY_INLINE HWY_ATTR FloatVec arccosh(FloatVec x) {
  const FloatVec root = hn::Sqrt(hn::Sub(x, constant(1.0f)));
  const Piece piece = piece_of(x);
  FloatVec value = hn::Mul(root, in_piece(kArccosh, piece, hn::Sub(x, piece.begin)));
  const auto is_far = hn::Ge(x, constant(16.0f));
  if (HWY_UNLIKELY(!hn::AllFalse(FloatTag(), is_far))) {
    value = hn::IfThenElse(is_far, FarArccosh::apply(x), value);
  }
  return value;
}

/// log((1 + x) / (1 - x)) / 2.
HWY_INLINE HWY_ATTR FloatVec arctanh(FloatVec x) {
  const FloatVec a = hn::Abs(x), one = constant(1.0f);
  const FloatVec value = log1p(hn::Div(hn::Add(a, a), hn::Sub(one, a)));
  const FloatVec at_end = hn::IfThenElse(hn::Eq(a, one), constant(HUGE_VALF), constant(NAN));
  const FloatVec half = hn::Mul(constant(0.5f), value);
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, one), half, at_end), x);
}
#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
