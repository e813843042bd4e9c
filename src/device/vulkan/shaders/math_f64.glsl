// Functions of double, which GLSL has none of: math.glsl's, with longer fits. Include after
// doubles.glsl.

double infinite_double() {
  return packDouble2x32(uvec2(0u, kInfinityUpper));
}
double double_power_of_two(int n) {  // n in [-1022, 1023]
  return packDouble2x32(uvec2(0u, uint(n + 1023) << 20));
}
/// x 2^n in two steps, so that the result may be subnormal or infinite.
double scaled(double x, int n) {
  const int half_of_n = n >> 1;
  return x * double_power_of_two(half_of_n) * double_power_of_two(n - half_of_n);
}

// ---- Exponentials

/// e^x = 2^n (1 + result), |result| < 0.42 (error of the fit 1.4e-18).
double exp_rest(double x, out int n) {
  const double bounded = clamp(x, -750.0lf, 715.0lf);
  const double whole = roundEven(bounded * 1.4426950408889634lf);
  precise double r = bounded - whole * 0.6931471803691238lf;  // 32 bits: the product is exact
  r = r - whole * 1.9082149292705877e-10lf;
  double p = 2.09147553258932022e-9lf;
  p = p * r + 2.51053127296221018e-8lf;
  p = p * r + 2.75572734787185805e-7lf;
  p = p * r + 2.75572551700008874e-6lf;
  p = p * r + 0.0000248015873256774619lf;
  p = p * r + 0.000198412698750022788lf;
  p = p * r + 0.00138888888888837112lf;
  p = p * r + 0.00833333333332608312lf;
  p = p * r + 0.0416666666666666698lf;
  p = p * r + 0.16666666666666671lf;
  p = p * r + 0.5lf;
  n = int(whole);
  return r + r * r * p;
}
double exp_shifted(double x, int shift) {
  int n;
  const double rest = exp_rest(x, n);
  return is_nan(x) ? x : scaled(1.0lf + rest, n + shift);
}
double exp_of(double x) {
  return exp_shifted(x, 0);
}
double expm1_of(double x) {
  int n;
  const double rest = exp_rest(x, n);
  if (is_nan(x) || is_zero(x)) return x;
  if (n > 60) return exp_of(x);  // 1 is nothing to it
  const double scale = double_power_of_two(max(n, -1022));
  return scale * rest + (scale - 1.0lf);
}
double sinh_of(double x) {
  const double a = magnitude(x);
  if (a > 22.0lf) return copy_sign(exp_shifted(a, -1), x);
  const double t = expm1_of(a);
  return is_nan(x) ? x : copy_sign(0.5lf * (t + t / (t + 1.0lf)), x);
}
double cosh_of(double x) {
  const double e = exp_shifted(magnitude(x), -1);
  return e + 0.25lf / e;
}
double tanh_of(double x) {
  const double a = magnitude(x);
  if (is_nan(x)) return x;
  if (a > 22.0lf) return copy_sign(1.0lf, x);
  const double t = expm1_of(2.0lf * a);
  return copy_sign(t / (t + 2.0lf), x);
}

// ---- Logarithms

/// x = 2^e (1 + result) with 1 + result in [sqrt(1/2), sqrt(2)), for finite x > 0.
double log_argument(double x, out int e) {
  uint64_t bits = packUint2x32(magnitude_words(x));
  const uint upper = uint(bits >> 32);
  const int top = upper != 0u ? 32 + findMSB(upper) : findMSB(uint(bits));
  const int shift = upper < 0x00100000u ? 52 - top : 0;  // subnormal
  bits <<= shift;
  const uvec2 words = unpackUint2x32(bits);
  const uint mantissa = words.y & 0xfffffu;
  const uint halved = mantissa > 0x6a09eu ? 1u : 0u;  // sqrt(2)
  e = int(words.y >> 20) - 1023 - shift + int(halved);
  return packDouble2x32(uvec2(words.x, mantissa | ((1023u - halved) << 20))) - 1.0lf;
}
/// (2 artanh(s) - 2s) / s^3 by s^2 (error 2.2e-18).
double artanh_rest(double square) {
  double p = 0.131007213835034914lf;
  p = p * square + 0.132674185964748834lf;
  p = p * square + 0.15386290534658992lf;
  p = p * square + 0.181817947008977996lf;
  p = p * square + 0.222222224005477573lf;
  p = p * square + 0.285714285707644501lf;
  p = p * square + 0.400000000000009413lf;
  return p * square + 0.666666666666666664lf;
}
/// log(1 + f) - f, as log(1 + f) = 2 artanh(s), s = f / (2 + f), and f - 2s = s f.
double log_rest(double f) {
  const double s = f / (2.0lf + f), square = s * s, half_square = 0.5lf * f * f;
  return s * (half_square + square * artanh_rest(square)) - half_square;
}
double log_of_any(double x, double value) {
  if (is_nan(x)) return x;
  if (is_zero(x)) return -infinite_double();
  if (has_sign(x)) return not_a_double();
  return is_infinite(x) ? x : value;
}
double log_of(double x) {
  int e;
  const double f = log_argument(x, e);
  const double low = log_rest(f) + double(e) * 1.9082149292705877e-10lf;
  return log_of_any(x, (f + low) + double(e) * 0.6931471803691238lf);
}
double log2_of(double x) {
  const double kMore = 0.44269504088896341lf;  // log2(e) - 1
  int e;
  const double f = log_argument(x, e), rest = log_rest(f);
  return log_of_any(x, (((rest * kMore + f * kMore) + rest) + f) + double(e));
}
double log10_of(double x) {  // of the constants, the high parts are short
  int e;
  const double f = log_argument(x, e), rest = log_rest(f), n = double(e);
  const double low = rest * 0.0007007319032518276lf + f * 0.0007007319032518276lf +
                     n * 0.0002487456639811952lf;
  return log_of_any(x, ((low + rest * 0.43359375lf) + f * 0.43359375lf) + n * 0.30078125lf);
}
double log1p_of(double x) {
  if (is_nan(x) || magnitude(x) < 1e-17lf) return x;
  precise double u = 1.0lf + x;
  precise double lost = u < 2.0lf ? x - (u - 1.0lf) : 1.0lf - (u - x);
  const double value = log_of(u);
  return is_infinite(value) || is_nan(value) ? value : value + lost / u;
}

// ---- Angles

/// Sine and cosine of r in [-pi/4, pi/4] (errors 6e-24 and 3e-25).
dvec2 sin_cos_near_zero(double r) {
  const double s = r * r;
  double p = 2.79104282461560104e-15lf;
  p = p * s + -7.64695729382045402e-13lf;
  p = p * s + 1.60590427491526149e-10lf;
  p = p * s + -2.50521083822662998e-8lf;
  p = p * s + 2.75573192239808558e-6lf;
  p = p * s + -0.000198412698412698373lf;
  p = p * s + 0.00833333333333333333lf;
  p = p * s + -0.166666666666666667lf;
  double q = -1.55171021495894944e-16lf;
  q = q * s + 4.77937406948748755e-14lf;
  q = q * s + -1.14707450536361775e-11lf;
  q = q * s + 2.08767569862795872e-9lf;
  q = q * s + -2.75573192239833719e-7lf;
  q = q * s + 0.0000248015873015872996lf;
  q = q * s + -0.00138888888888888889lf;
  q = q * s + 0.0416666666666666667lf;
  return dvec2(r + r * s * p, 1.0lf - (0.5lf * s - s * s * q));
}
uint64_t high_product(uint64_t a, uint64_t b) {
  const uint64_t al = a & 0xfffffffful, ah = a >> 32, bl = b & 0xfffffffful, bh = b >> 32;
  const uint64_t middle = ah * bl + ((al * bl) >> 32);
  return ah * bh + (middle >> 32) + ((al * bh + (middle & 0xfffffffful)) >> 32);
}

// 2 / pi in binary, after 64 zeros: as many bits as the largest double needs.
const uint kLongTwoOverPi[40] = uint[40](
    0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
    0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu,
    0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u,
    0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu,
    0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
    0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);
uint long_two_over_pi_bits(uint from) {
  const uint word = from / 32u, bit = from % 32u;
  const uint64_t both = packUint2x32(uvec2(kLongTwoOverPi[word + 1u], kLongTwoOverPi[word]));
  return uint(both >> (32u - bit));
}
/// |x| of 1/2 at least in turns, of which whole ones are left out, times 2^128. With x = m 2^e, of
/// 2 / pi 192 bits count.
void turn_of(double x, out uint64_t high, out uint64_t low) {
  const uvec2 words = magnitude_words(x);
  const uint from = uint(int(words.y >> 20) - 1075 + 62);
  const uint64_t m0 = uint64_t(words.x), m1 = uint64_t((words.y & 0xfffffu) | 0x100000u);
  uint64_t carry = 0ul, before = 0ul;
  high = 0ul;
  low = 0ul;
  for (uint i = 0u; i < 6u; ++i) {  // words of 2 / pi, from the lowest
    const uint64_t word = uint64_t(long_two_over_pi_bits(from + 32u * (5u - i)));
    const uint64_t p0 = m0 * word, p1 = m1 * before;
    const uint64_t sum = (p0 & 0xfffffffful) + (p1 & 0xfffffffful) + carry;
    carry = (sum >> 32) + (p0 >> 32) + (p1 >> 32);
    low = (low >> 32) | (high << 32);
    high = (high >> 32) | (sum << 32);
    before = word;
  }
}
dvec2 sin_cos_of_turn(uint64_t high, uint64_t low) {
  const uint quarter = uint((high + (1ul << 61)) >> 62) & 3u;
  high -= uint64_t(quarter) << 62;
  const bool negative = int64_t(high) < 0l;
  if (negative) {
    high = ~high + (low == 0ul ? 1ul : 0ul);
    low = 0ul - low;
  }
  int top = 125;  // of the highest bit
  for (; top > 64 && (high >> (top - 64)) == 0ul; --top) {}
  const int shift = 127 - top;
  const uint64_t size = shift >= 64 ? low : (high << shift) | (low >> (64 - shift));
  const double radians =
      double(high_product(size, 0xc90fdaa22168c234ul)) * double_power_of_two(top - 188);  // pi / 4
  const dvec2 near = sin_cos_near_zero(negative ? -radians : radians);
  const dvec2 turned = (quarter & 1u) == 1u ? dvec2(near.y, -near.x) : near;
  return quarter >= 2u ? -turned : turned;
}
dvec2 sin_cos_of(double x) {
  if (is_nan(x) || is_infinite(x)) return dvec2(not_a_double());
  if (magnitude(x) < 0.78lf) return sin_cos_near_zero(x);
  uint64_t high, low;
  turn_of(x, high, low);
  const dvec2 result = sin_cos_of_turn(high, low);
  return has_sign(x) ? dvec2(-result.x, result.y) : result;
}
double tan_of(double x) {
  const dvec2 both = sin_cos_of(x);
  return both.x / both.y;
}

const double kHalfPiDouble = 1.5707963267948966lf, kHalfPiDoubleRest = 6.123233995736766e-17lf;

/// arctan(z) for z in [0, 1]; above tan(pi/8) through (z-1)/(z+1) (error of the fit 1.3e-18).
double arctan_below_one(double whole) {
  const bool upper = whole > 0.41421356lf;
  const double z = upper ? (whole - 1.0lf) / (whole + 1.0lf) : whole, s = z * z;
  double p = 0.0161482285467718696lf;
  p = p * s + -0.0344458444235773849lf;
  p = p * s + 0.0454671950955516654lf;
  p = p * s + -0.0522938047378184059lf;
  p = p * s + 0.0587878246944398118lf;
  p = p * s + -0.0666641207772527434lf;
  p = p * s + 0.0769229565832787351lf;
  p = p * s + -0.0909090872858745904lf;
  p = p * s + 0.111111111046522548lf;
  p = p * s + -0.142857142856546389lf;
  p = p * s + 0.199999999999997838lf;
  p = p * s + -0.333333333333333332lf;
  const double angle = z + z * s * p;
  return upper ? 0.5lf * kHalfPiDouble + (angle + 0.5lf * kHalfPiDoubleRest) : angle;
}
double arctan_of(double x) {
  if (is_nan(x)) return x;
  const double a = magnitude(x);
  const double inner = arctan_below_one(a > 1.0lf ? 1.0lf / a : a);
  return copy_sign(a > 1.0lf ? kHalfPiDouble - (inner - kHalfPiDoubleRest) : inner, x);
}
double arctan2_of(double y, double x) {
  if (is_nan(x) || is_nan(y)) return not_a_double();
  // A quarter of each, the quotient of two huge numbers is still right; infinities count as equal.
  const bool both_infinite = is_infinite(x) && is_infinite(y);
  const double a = both_infinite ? 1.0lf : magnitude(y), b = both_infinite ? 1.0lf : magnitude(x);
  const bool steep = a > b;
  const double larger = steep ? a : b, smaller = steep ? b : a;
  const bool none = is_zero(smaller) || is_infinite(larger);
  const double factor = larger > 1e307lf ? 0.25lf : 1.0lf;
  double angle = arctan_below_one(none ? 0.0lf : (smaller * factor) / (larger * factor));
  if (steep) angle = kHalfPiDouble - (angle - kHalfPiDoubleRest);
  if (has_sign(x)) angle = 2.0lf * kHalfPiDouble - (angle - 2.0lf * kHalfPiDoubleRest);
  return copy_sign(angle, y);
}
/// arcsin(z) for z in [0, 1/2] (error 6e-20).
double arcsin_below_half(double z) {
  const double s = z * z;
  double p = 0.0307187689951910972lf;
  p = p * s + -0.0240205449185546053lf;
  p = p * s + 0.0225535636382029807lf;
  p = p * s + 0.000380853033290726004lf;
  p = p * s + 0.00879500607648843027lf;
  p = p * s + 0.00813582992550165602lf;
  p = p * s + 0.00979275132020199495lf;
  p = p * s + 0.0115490866129874244lf;
  p = p * s + 0.0139650099320536062lf;
  p = p * s + 0.0173527574778197887lf;
  p = p * s + 0.0223721592796799784lf;
  p = p * s + 0.0303819444413638067lf;
  p = p * s + 0.0446428571428834039lf;
  p = p * s + 0.0749999999999999118lf;
  p = p * s + 0.166666666666666667lf;
  return z + z * s * p;
}
double arcsin_of(double x) {
  if (is_nan(x)) return x;
  const double a = magnitude(x);
  if (a > 1.0lf) return not_a_double();
  if (a <= 0.5lf) return copy_sign(arcsin_below_half(a), x);
  const double rest = arcsin_below_half(sqrt((1.0lf - a) * 0.5lf));
  return copy_sign(kHalfPiDouble - ((rest + rest) - kHalfPiDoubleRest), x);
}
double arccos_of(double x) {
  if (is_nan(x)) return x;
  const double a = magnitude(x);
  if (a > 1.0lf) return not_a_double();
  if (a <= 0.5lf) {
    return kHalfPiDouble - (copy_sign(arcsin_below_half(a), x) - kHalfPiDoubleRest);
  }
  const double rest = 2.0lf * arcsin_below_half(sqrt((1.0lf - a) * 0.5lf));
  return has_sign(x) ? 2.0lf * kHalfPiDouble - (rest - 2.0lf * kHalfPiDoubleRest) : rest;
}

// ---- Activations

double sigmoid_of(double x) {
  const double e = exp_of(-magnitude(x));
  return is_nan(x) ? x : (has_sign(x) ? e : 1.0lf) / (e + 1.0lf);
}
double silu_of(double x) {
  return x * sigmoid_of(x);
}
double high_part(double x) {  // 26 bits, so that products of parts are exact
  return packDouble2x32(unpackDouble2x32(x) & uvec2(0xf8000000u, 0xffffffffu));
}
double gauss(double x, double factor) {
  precise double high = high_part(x);
  precise double rest = (x - high) * (x + high);
  return exp_of(-factor * (high * high)) * exp_of(-factor * rest);
}
/// erfc(z) / e^(-z^2) for z in [0, 27] as R(z) / (1 + 2z), R a fit in (z-3)/(z+3) (error 7e-22).
double scaled_erfc(double z) {
  const double t = (z - 3.0lf) / (z + 3.0lf);
  double r = 1.05074349940850917e-11lf;
  r = r * t + 9.68035452626876918e-12lf;
  r = r * t + -1.56350228461249574e-10lf;
  r = r * t + -3.18148833329299603e-10lf;
  r = r * t + 6.76917452183833123e-10lf;
  r = r * t + 2.59248239366861385e-9lf;
  r = r * t + -5.02698083303578908e-10lf;
  r = r * t + -1.28537096065826332e-8lf;
  r = r * t + -1.13488618378557122e-8lf;
  r = r * t + 4.84068820443464506e-8lf;
  r = r * t + 1.00188771230031469e-7lf;
  r = r * t + -1.48090807547237912e-7lf;
  r = r * t + -6.15725419593381331e-7lf;
  r = r * t + 3.61140820390293743e-7lf;
  r = r * t + 3.47210289298727024e-6lf;
  r = r * t + -7.33454179640717711e-7lf;
  r = r * t + -0.0000201005172389149153lf;
  r = r * t + 4.95007788500793202e-6lf;
  r = r * t + 0.000125099355835004071lf;
  r = r * t + -0.000105159918389123995lf;
  r = r * t + -0.000779832275463236979lf;
  r = r * t + 0.00188869037385829595lf;
  r = r * t + 0.00252939181671277312lf;
  r = r * t + -0.0237705149196692265lf;
  r = r * t + 0.0683080273439226565lf;
  r = r * t + -0.119273663415273884lf;
  r = r * t + 0.129645158702762637lf;
  r = r * t + -0.0475622943534511899lf;
  r = r * t + -0.135621106124581193lf;
  r = r * t + 1.25300805826972965lf;
  return r / (2.0lf * z + 1.0lf);
}
/// Below 1 a fit of erf(x)/x in x^2 (error 2.2e-21).
double erf_of(double x) {
  if (is_nan(x)) return x;
  const double a = magnitude(x), s = x * x;
  if (a < 1.0lf) {
    double p = -4.23094582429533782e-12lf;
    p = p * s + 8.70904512905310669e-11lf;
    p = p * s + -1.21645600572834501e-9lf;
    p = p * s + 1.4792401209404813e-8lf;
    p = p * s + -1.63646421581676153e-7lf;
    p = p * s + 1.64620454414684189e-6lf;
    p = p * s + -0.0000149256475675193321lf;
    p = p * s + 0.000120553329028887354lf;
    p = p * s + -0.00085483270219348296lf;
    p = p * s + 0.00522397762542329831lf;
    p = p * s + -0.0268661706451298408lf;
    p = p * s + 0.112837916709551202lf;
    p = p * s + -0.376126389031837524lf;
    p = p * s + 1.12837916709551257lf;
    return x * p;
  }
  const double bounded = min(a, 10.0lf);
  return copy_sign(1.0lf - gauss(bounded, 1.0lf) * scaled_erfc(bounded), x);
}
double gelu_of(double x) {
  if (is_nan(x)) return x;
  const double bounded = min(magnitude(x), 40.0lf);
  const double scaled_tail = scaled_erfc(bounded * 0.70710678118654752lf);
  const double tail = 0.5lf * (gauss(bounded, 0.5lf) * scaled_tail);
  return x * (has_sign(x) ? tail : 1.0lf - tail);
}
double gelu_tanh_of(double x) {
  const double cubic = (x * x) * x * 0.044715lf + x;
  return x * sigmoid_of(cubic * 1.5957691216057307117lf);
}

// ---- Quotients and powers

uint64_t significand_of(double x) {
  const uvec2 words = magnitude_words(x);
  const uint hidden = words.y < 0x100000u ? 0u : 0x100000u;
  return packUint2x32(uvec2(words.x, (words.y & 0xfffffu) | hidden));
}
int exponent_of(double x) {
  return int(max(magnitude_words(x).y >> 20, 1u));
}
/// The exact remainder of a / b, with a's sign.
double fmod_of(double a, double b) {
  if (is_nan(a) || is_infinite(a) || is_nan(b) || is_zero(b)) return not_a_double();
  if (order_of(magnitude(a)) < order_of(magnitude(b))) return a;
  const int exponent = exponent_of(b);
  const uint64_t divisor = significand_of(b);
  uint64_t rest = significand_of(a) % divisor;
  for (int left = exponent_of(a) - exponent; left > 0;) {
    const int step = min(left, 11);
    rest = (rest << step) % divisor;
    left -= step;
  }
  const uint upper = uint(rest >> 32);
  const int top = upper != 0u ? 32 + findMSB(upper) : findMSB(uint(rest));
  const int shift = rest == 0ul ? 0 : min(52 - top, exponent - 1);
  const uint64_t significand = rest << shift, kOne = 1ul << 52;
  const uint64_t bits = significand < kOne
                            ? significand
                            : (uint64_t(uint(exponent - shift)) << 52) + significand - kOne;
  return copy_sign(packDouble2x32(unpackUint2x32(bits)), a);
}
double floor_divide_of(double a, double b) {
  if (is_zero(b)) return a / b;
  const double rest = fmod_of(a, b);
  double quotient = (a - rest) / b;
  if (!is_zero(rest) && has_sign(rest) != has_sign(b)) quotient -= 1.0lf;
  if (is_nan(rest) || is_nan(quotient)) return not_a_double();
  if (is_zero(quotient)) return copy_sign(0.0lf, a / b);
  const double whole = floor(quotient);  // without the error of the division
  return quotient - whole > 0.5lf ? whole + 1.0lf : whole;
}
double remainder_of(double a, double b) {
  const double rest = fmod_of(a, b);
  if (is_zero(rest)) return copy_sign(0.0lf, b);
  return !is_nan(rest) && has_sign(rest) != has_sign(b) ? rest + b : rest;
}
double logaddexp_of(double a, double b) {
  if (is_nan(a) || is_nan(b)) return not_a_double();
  if (order_of(a) == order_of(b)) return a + 0.69314718055994531lf;  // infinities included
  const double larger = order_of(a) > order_of(b) ? a : b;
  return larger + log1p_of(exp_of(-magnitude(a - b)));
}

dvec2 two_sum(double a, double b) {  // exact, the larger first
  precise double sum = a + b;
  precise double rounded = sum - a;
  precise double error = (a - (sum - rounded)) + (b - rounded);
  return dvec2(sum, error);
}
dvec2 two_product(double a, double b) {  // exact
  precise double product = a * b;
  precise double ah = high_part(a), bh = high_part(b);
  precise double al = a - ah, bl = b - bh;
  precise double error = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
  return dvec2(product, error);
}
/// log2 of a finite x > 0, to 60 bits or more.
dvec2 log2_in_two(double x) {
  int e;
  const double f = log_argument(x, e);
  const dvec2 below = two_sum(2.0lf, f);
  precise double s = f / below.x;
  const dvec2 back = two_product(s, below.x);
  precise double s_rest = (((f - back.x) - back.y) - s * below.y) / below.x;
  const double square = s * s;
  const dvec2 natural =
      two_sum(2.0lf * s, 2.0lf * s_rest + s * square * artanh_rest(square));
  const dvec2 product = two_product(natural.x, 1.4426950408889634lf);
  const dvec2 sum = two_sum(double(e), product.x);
  precise double small = natural.x * 2.0355273740931033e-17lf + natural.y * 1.4426950408889634lf;
  precise double rest = sum.y + (product.y + small);
  return two_sum(sum.x, rest);
}
/// |x|^y of finite numbers but zero.
double power_of_magnitude(double x, double y) {
  const dvec2 logarithm = log2_in_two(magnitude(x));
  const double rough = y * logarithm.x;
  if (rough > 1100.0lf) return infinite_double();
  if (rough < -1200.0lf) return 0.0lf;
  const dvec2 exponent = two_product(y, logarithm.x);
  const double whole = roundEven(exponent.x);
  precise double r = (exponent.x - whole) + (exponent.y + y * logarithm.y);
  double p = 1.37169623927375872e-12lf;  // of (2^r - 1) / r, error 2.1e-21
  p = p * r + 2.57335683087568912e-11lf;
  p = p * r + 4.44553030910510659e-10lf;
  p = p * r + 7.05489438634834804e-9lf;
  p = p * r + 1.01780860211854743e-7lf;
  p = p * r + 1.3215486815999977e-6lf;
  p = p * r + 0.0000152527338040511292lf;
  p = p * r + 0.000154035303933627553lf;
  p = p * r + 0.00133335581464284461lf;
  p = p * r + 0.00961812910762848305lf;
  p = p * r + 0.05550410866482158lf;
  p = p * r + 0.240226506959100712lf;
  p = p * r + 0.693147180559945309lf;
  return scaled(1.0lf + r * p, int(whole));
}
double power_of(double x, double y) {  // as C's pow
  const double a = magnitude(x);
  if (is_zero(y) || x == 1.0lf) return 1.0lf;
  if (is_nan(x) || is_nan(y)) return not_a_double();
  const bool grows = (a > 1.0lf) != has_sign(y);
  if (is_infinite(y)) return a == 1.0lf ? 1.0lf : grows ? infinite_double() : 0.0lf;
  const bool whole = magnitude(y) >= 4503599627370496.0lf || floor(y) == y;
  const bool odd = whole && magnitude(y) < 9007199254740992.0lf && (int64_t(y) & 1l) == 1l;
  if (has_sign(x) && !whole && !is_zero(x) && !is_infinite(x)) return not_a_double();
  const bool limit = is_zero(x) || is_infinite(x);
  const double size = limit ? (grows ? infinite_double() : 0.0lf) : power_of_magnitude(x, y);
  return odd && has_sign(x) ? -size : size;
}
