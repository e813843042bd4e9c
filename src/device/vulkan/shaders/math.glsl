// Functions of float that are as accurate on every device: Vulkan lets its own exp, log, sin and
// their kin be much worse than the few units in the last place that tests allow. They are built of
// what it promises: sums and products rounded once, quotients good to 2.5 units, integers.
//
// Whether a number is NaN, infinite or zero is asked of its bits, since drivers may take for
// granted that nothing is NaN, and may take subnormal numbers for zero. The polynomials are
// Chebyshev fits, whose errors are given beside them.

const uint kInfinityBits = 0x7f800000u;

uint magnitude_bits(float x) {
  return floatBitsToUint(x) & 0x7fffffffu;
}
bool is_nan(float x) {
  return magnitude_bits(x) > kInfinityBits;
}
bool is_infinite(float x) {
  return magnitude_bits(x) == kInfinityBits;
}
bool is_zero(float x) {
  return magnitude_bits(x) == 0u;
}
bool has_sign(float x) {  // of -0, too
  return (floatBitsToUint(x) >> 31) == 1u;
}
float magnitude(float x) {
  return uintBitsToFloat(magnitude_bits(x));
}
float copy_sign(float x, float sign) {
  return uintBitsToFloat(magnitude_bits(x) | (floatBitsToUint(sign) & 0x80000000u));
}
float infinity() {
  return uintBitsToFloat(kInfinityBits);
}
float not_a_number() {
  return uintBitsToFloat(0x7fc00000u);
}
/// Orders as floats do, and -0 as 0; of NaN it means nothing.
int order_of(float x) {
  return has_sign(x) ? -int(magnitude_bits(x)) : int(magnitude_bits(x));
}

float power_of_two(int n) {  // n in [-126, 127]
  return intBitsToFloat((n + 127) << 23);
}
/// x 2^n in two steps, so that the result may be subnormal or infinite; n in [-252, 254].
float scaled(float x, int n) {
  const int half_of_n = n >> 1;
  return x * power_of_two(half_of_n) * power_of_two(n - half_of_n);
}

// ---- Exponentials

/// e^x = 2^n (1 + result), |result| < 0.42, with the same bits in every shader. ln 2 is split so
/// that n times its high part is exact; the fit of (e^r - 1 - r) / r^2 is good to 1.4e-9.
float exp_rest(float x, out int n) {
  const float bounded = clamp(x, -105.0, 90.0);
  const float whole = roundEven(bounded * 1.44269504);
  precise float r = bounded - whole * 0.693359375;
  r = r - whole * -2.12194440e-4;
  precise float p = 0.000198910805;
  p = p * r + 0.00139337307;
  p = p * r + 0.00833331084;
  p = p * r + 0.0416664642;
  p = p * r + 0.166666667;
  p = p * r + 0.5;
  n = int(whole);
  precise const float rest = r + r * r * p;
  return rest;
}
/// e^x 2^shift, for a small shift: e^x may be too large for a float where the result is not.
float exp_shifted(float x, int shift) {
  int n;
  const float rest = exp_rest(x, n);
  return is_nan(x) ? x : scaled(1.0 + rest, n + shift);
}
float exp_of(float x) {
  return exp_shifted(x, 0);
}
float expm1_of(float x) {
  int n;
  const float rest = exp_rest(x, n);
  if (is_nan(x) || is_zero(x)) return x;
  if (n > 30) return exp_of(x);  // 1 is nothing to it
  const float scale = power_of_two(max(n, -126));
  return scale * rest + (scale - 1.0);
}

float sinh_of(float x) {
  const float a = magnitude(x), s = x * x;
  if (a < 1.0) {  // error 2e-10
    float p = 2.80628026e-6;
    p = p * s + 0.00019838102;
    p = p * s + 0.00833333968;
    p = p * s + 0.166666666;
    return x + x * s * p;
  }
  const float e = exp_shifted(a, -1);
  return copy_sign(e - 0.25 / e, x);
}
float cosh_of(float x) {
  const float e = exp_shifted(magnitude(x), -1);
  return e + 0.25 / e;
}
/// Below 0.625 a fit of (tanh(x)/x - 1) / x^2 (error 1.8e-9), above it 1 - 2 / (e^2x + 1).
float tanh_of(float x) {
  const float a = magnitude(x), s = x * x;
  if (is_nan(x)) return x;
  if (a < 0.625) {
    float p = 0.00226950168;
    p = p * s + -0.00832318706;
    p = p * s + 0.0217625029;
    p = p * s + -0.0539584616;
    p = p * s + 0.133333001;
    p = p * s + -0.333333331;
    return x + x * s * p;
  }
  return copy_sign(1.0 - 2.0 / (exp_of(a + a) + 1.0), x);
}

// ---- Logarithms

/// x = 2^e (1 + result) with 1 + result in [sqrt(1/2), sqrt(2)), for finite x > 0.
float log_argument(float x, out int e) {
  uint bits = floatBitsToUint(x);
  const int shift = bits < 0x00800000u ? 23 - findMSB(bits) : 0;  // subnormal
  bits <<= shift;
  const uint mantissa = bits & 0x7fffffu;
  const uint halved = mantissa > 0x3504f3u ? 1u : 0u;  // sqrt(2)
  e = int(bits >> 23) - 127 - shift + int(halved);
  return uintBitsToFloat(mantissa | ((127u - halved) << 23)) - 1.0;
}
/// log(1 + f) - f, of a fit of the series behind f - f^2 / 2 (error 2.9e-8 f^3).
float log_rest(float f) {
  float p = 0.0697161147;
  p = p * f + -0.114797338;
  p = p * f + 0.116854199;
  p = p * f + -0.124256873;
  p = p * f + 0.142490576;
  p = p * f + -0.166678023;
  p = p * f + 0.200007157;
  p = p * f + -0.24999997;
  p = p * f + 0.333333312;
  const float square = f * f;
  return f * square * p - 0.5 * square;
}
/// `value` unless x has no finite logarithm.
float log_of_any(float x, float value) {
  if (is_nan(x)) return x;
  if (is_zero(x)) return -infinity();
  if (has_sign(x)) return not_a_number();
  return is_infinite(x) ? x : value;
}
float log_of(float x) {
  int e;
  const float f = log_argument(x, e);
  const float low = log_rest(f) + float(e) * -2.12194440e-4;
  return log_of_any(x, (f + low) + float(e) * 0.693359375);
}
/// log2(e) is 1 + 0.4427, so that most of f needs no product.
float log2_of(float x) {
  const float kMore = 0.44269504;
  int e;
  const float f = log_argument(x, e), rest = log_rest(f);
  return log_of_any(x, (((rest * kMore + f * kMore) + rest) + f) + float(e));
}
/// log10(2) and log10(e) are each split so that products with their high part are nearly exact.
float log10_of(float x) {
  int e;
  const float f = log_argument(x, e), rest = log_rest(f), n = float(e);
  const float low = rest * 7.00731903e-4 + f * 7.00731903e-4 + n * 2.48745664e-4;
  return log_of_any(x, ((low + rest * 0.43359375) + f * 0.43359375) + n * 0.30078125);
}
float log1p_of(float x) {
  if (is_nan(x) || magnitude_bits(x) < 0x33000000u) return x;  // below 2^-25
  precise float u = 1.0 + x;
  precise float lost = u < 2.0 ? x - (u - 1.0) : 1.0 - (u - x);
  const float value = log_of(u);
  return is_infinite(value) || is_nan(value) ? value : value + lost / u;
}

// ---- Angles

/// Sine and cosine of r in [-pi/4, pi/4] (errors 3e-11 and 3e-12).
vec2 sin_cos_near_zero(float r) {
  const float s = r * r;
  float p = 2.72499258e-6;
  p = p * s + -0.000198400867;
  p = p * s + 0.00833333187;
  p = p * s + -0.166666667;
  float q = -2.73009592e-7;
  q = q * s + 2.48006004e-5;
  q = q * s + -0.00138888877;
  q = q * s + 0.0416666667;
  return vec2(r + r * s * p, 1.0 - (0.5 * s - s * s * q));
}

/// Sine and cosine of an angle of `turn` / 2^64 turns. What is left of the nearest quarter is
/// turned into radians in integers, so that only the last step rounds.
vec2 sin_cos_of_turn(uint64_t turn) {
  const uint quarter = uint((turn + (1ul << 61)) >> 62) & 3u;
  const int64_t rest = int64_t(turn - (uint64_t(quarter) << 62));
  const uint64_t size = uint64_t(rest < 0l ? -rest : rest);
  const uint upper = uint(size >> 32);
  const int top = size == 0ul ? 0 : upper != 0u ? 32 + findMSB(upper) : findMSB(uint(size));
  uint high, low;
  umulExtended(uint((size << (63 - top)) >> 32), 0xc90fdaa2u, high, low);  // pi / 4
  const float radians = float(high) * power_of_two(top - 92);
  const vec2 near = sin_cos_near_zero(rest < 0l ? -radians : radians);
  const vec2 turned = (quarter & 1u) == 1u ? vec2(near.y, -near.x) : near;
  return quarter >= 2u ? -turned : turned;
}

// 2 / pi in binary, after 32 zeros: as many bits as the largest float needs.
const uint kTwoOverPi[8] = uint[8](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                   0xdb629599u, 0x3c439041u, 0xfe5163abu);
uint two_over_pi_bits(uint from) {
  const uint word = from / 32u, bit = from % 32u;
  const uint64_t both = packUint2x32(uvec2(kTwoOverPi[word + 1u], kTwoOverPi[word]));
  return uint(both >> (32u - bit));
}
/// |x| in turns, of which whole ones are left out, times 2^64; finite |x| of 1/2 at least. With
/// x = m 2^e, of 2 / pi only the 96 bits count whose products with x are below 4 and not too small.
uint64_t turn_of(float x) {
  const uint bits = magnitude_bits(x);
  const int e = int(bits >> 23) - 150;
  const uint64_t m = uint64_t((bits & 0x7fffffu) | 0x800000u);
  const uint from = uint(e + 30);
  return ((m * two_over_pi_bits(from)) << 32) + m * two_over_pi_bits(from + 32u) +
         ((m * two_over_pi_bits(from + 64u)) >> 32);
}
vec2 sin_cos_of(float x) {
  if (magnitude_bits(x) >= kInfinityBits) return vec2(not_a_number());
  if (magnitude(x) < 0.78) return sin_cos_near_zero(x);
  const vec2 result = sin_cos_of_turn(turn_of(x));
  return has_sign(x) ? vec2(-result.x, result.y) : result;
}
float tan_of(float x) {
  const vec2 both = sin_cos_of(x);
  return both.x / both.y;
}

/// arctan(z) for z in [0, 1], from a fit of (arctan(z)/z - 1) / z^2 (error 1.6e-8).
float arctan_below_one(float z) {
  const float s = z * z;
  float p = -0.00238699732;
  p = p * s + 0.0135077714;
  p = p * s + -0.035871539;
  p = p * s + 0.0625016944;
  p = p * s + -0.0865688043;
  p = p * s + 0.110337641;
  p = p * s + -0.142785687;
  p = p * s + 0.199997393;
  p = p * s + -0.333333317;
  return z + z * s * p;
}
const float kHalfPi = 1.57079637, kHalfPiRest = -4.37113883e-8;  // their sum is pi / 2
const float kPi = 3.14159274, kPiRest = -8.74227766e-8;

float arctan_of(float x) {
  if (is_nan(x)) return x;
  const float a = magnitude(x);
  const float inner = arctan_below_one(a > 1.0 ? 1.0 / a : a);
  return copy_sign(a > 1.0 ? kHalfPi - (inner - kHalfPiRest) : inner, x);
}
float arctan2_of(float y, float x) {
  if (is_nan(x) || is_nan(y)) return not_a_number();
  // Halved, the quotient of two huge numbers is still right; infinities count as equal.
  const bool both_infinite = is_infinite(x) && is_infinite(y);
  const float a = both_infinite ? 1.0 : magnitude(y), b = both_infinite ? 1.0 : magnitude(x);
  const bool steep = a > b;
  const float larger = steep ? a : b, smaller = steep ? b : a;
  const bool none = is_zero(smaller) || is_infinite(larger);
  float angle = arctan_below_one(none ? 0.0 : larger > 1e37 ? (smaller * 0.25) / (larger * 0.25)
                                                            : smaller / larger);
  if (steep) angle = kHalfPi - (angle - kHalfPiRest);
  if (has_sign(x)) angle = kPi - (angle - kPiRest);
  return copy_sign(angle, y);
}
/// arcsin(z) for z in [0, 1/2] (error 4e-9).
float arcsin_below_half(float z) {
  const float s = z * z;
  float p = 0.0336908472;
  p = p * s + 0.0171492384;
  p = p * s + 0.0311006627;
  p = p * s + 0.0445994015;
  p = p * s + 0.0750009454;
  p = p * s + 0.166666663;
  return z + z * s * p;
}
float arcsin_of(float x) {
  if (is_nan(x)) return x;
  const float a = magnitude(x);
  if (a > 1.0) return not_a_number();
  if (a <= 0.5) return copy_sign(arcsin_below_half(a), x);
  const float rest = arcsin_below_half(sqrt((1.0 - a) * 0.5));
  return copy_sign(kHalfPi - ((rest + rest) - kHalfPiRest), x);
}
float arccos_of(float x) {
  if (is_nan(x)) return x;
  const float a = magnitude(x);
  if (a > 1.0) return not_a_number();
  if (a <= 0.5) {
    return kHalfPi - (copy_sign(arcsin_below_half(a), x) - kHalfPiRest);
  }
  const float rest = 2.0 * arcsin_below_half(sqrt((1.0 - a) * 0.5));
  return has_sign(x) ? kPi - (rest - kPiRest) : rest;
}

// ---- Roots, of subnormal numbers too

float sqrt_of(float x) {
  const bool tiny = magnitude_bits(x) < 0x00800000u && !has_sign(x);
  if (is_zero(x) || is_infinite(x)) return has_sign(x) && !is_zero(x) ? not_a_number() : x;
  // As a whole number of 2^-149, times 2: 2^-150 has a root.
  return tiny ? sqrt(float(floatBitsToUint(x)) * 2.0) * power_of_two(-75) : sqrt(x);
}
float rsqrt_of(float x) {
  const bool tiny = magnitude_bits(x) < 0x00800000u && !has_sign(x);
  if (is_zero(x)) return copy_sign(infinity(), x);
  return tiny ? inversesqrt(float(floatBitsToUint(x)) * 2.0) * power_of_two(75) : inversesqrt(x);
}

// ---- Activations

/// Works from e^-|x|, which never overflows.
float sigmoid_of(float x) {
  const float e = exp_of(-magnitude(x));
  return is_nan(x) ? x : (has_sign(x) ? e : 1.0) / (e + 1.0);
}
float silu_of(float x) {
  return x * sigmoid_of(x);
}
/// e^(-factor x^2), factor 1 or 1/2, with its full relative accuracy: the square of x's high bits
/// is exact.
float gauss(float x, float factor) {
  precise float high = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
  precise float rest = (x - high) * (x + high);
  return exp_of(-factor * (high * high)) * exp_of(-factor * rest);
}
/// erfc(z) / e^(-z^2) for z >= 0 as R(z) / (1 + 2z), R a fit in (z-3)/(z+3) (error 4e-9).
float scaled_erfc(float z) {
  const float t = (z - 3.0) / (z + 3.0);
  float r = -0.000272670748;
  r = r * t + -0.000785626298;
  r = r * t + 0.00200346947;
  r = r * t + 0.00257612559;
  r = r * t + -0.0237957587;
  r = r * t + 0.0682929452;
  r = r * t + -0.119271729;
  r = r * t + 0.129646746;
  r = r * t + -0.0475623285;
  r = r * t + -0.13562115;
  r = r * t + 1.25300806;
  return r / (2.0 * z + 1.0);
}
/// Below 1 a fit of erf(x)/x in x^2 (error 3.4e-11).
float erf_of(float x) {
  if (is_nan(x)) return x;
  const float a = magnitude(x), s = x * x;
  if (a < 1.0) {
    float p = -9.66704457e-6;
    p = p * s + 0.00011265959;
    p = p * s + -0.000848408041;
    p = p * s + 0.00522103181;
    p = p * s + -0.0268654307;
    p = p * s + 0.112837825;
    p = p * s + -0.376126385;
    p = p * s + 1.12837917;
    return x * p;
  }
  const float bounded = min(a, 10.0);
  return copy_sign(1.0 - gauss(bounded, 1.0) * scaled_erfc(bounded), x);
}
/// x Phi(x), with Phi from erfc so that its small values keep their relative accuracy.
float gelu_of(float x) {
  if (is_nan(x)) return x;
  const float bounded = min(magnitude(x), 15.0);
  const float tail = 0.5 * (gauss(bounded, 0.5) * scaled_erfc(bounded * 0.707106781));
  return x * (has_sign(x) ? tail : 1.0 - tail);
}
/// x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
float gelu_tanh_of(float x) {
  const float cubic = (x * x) * x * 0.044715 + x;
  return x * sigmoid_of(cubic * 1.59576912);
}
float relu_of(float x) {  // NaN passes
  return has_sign(x) && !is_nan(x) ? 0.0 : x;
}

// ---- Quotients and powers

/// The exact remainder of a / b, with a's sign, by long division of the significands.
float fmod_of(float a, float b) {
  const uint above = magnitude_bits(a), below = magnitude_bits(b);
  if (above >= kInfinityBits || below > kInfinityBits || below == 0u) return not_a_number();
  if (above < below) return a;
  const int exponent = int(max(below >> 23, 1u));
  const uint64_t divisor = uint64_t((below & 0x7fffffu) | (below < 0x800000u ? 0u : 0x800000u));
  uint64_t rest = uint64_t((above & 0x7fffffu) | (above < 0x800000u ? 0u : 0x800000u)) % divisor;
  for (int left = int(max(above >> 23, 1u)) - exponent; left > 0;) {
    const int step = min(left, 40);
    rest = (rest << step) % divisor;
    left -= step;
  }
  const uint small = uint(rest);
  const int shift = small == 0u ? 0 : min(23 - findMSB(small), exponent - 1);
  const uint significand = small << shift;
  const uint normal = (uint(exponent - shift) << 23) + significand - 0x800000u;
  const uint bits = significand < 0x800000u ? significand : normal;
  return copy_sign(uintBitsToFloat(bits), a);
}
/// Rounds towards minus infinity, as in Python and NumPy.
float floor_divide_of(float a, float b) {
  if (is_zero(b)) return a / b;
  const float rest = fmod_of(a, b);
  float quotient = (a - rest) / b;
  if (!is_zero(rest) && has_sign(rest) != has_sign(b)) quotient -= 1.0;
  if (is_nan(rest) || is_nan(quotient)) return not_a_number();
  if (is_zero(quotient)) return copy_sign(0.0, a / b);
  const float whole = floor(quotient);  // without the error of the division
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}
float remainder_of(float a, float b) {  // of floor_divide: it has b's sign
  const float rest = fmod_of(a, b);
  if (is_zero(rest)) return copy_sign(0.0, b);
  return !is_nan(rest) && has_sign(rest) != has_sign(b) ? rest + b : rest;
}
float logaddexp_of(float a, float b) {
  if (is_nan(a) || is_nan(b)) return not_a_number();
  if (order_of(a) == order_of(b)) return a + 0.693147181;  // infinities included
  const float larger = order_of(a) > order_of(b) ? a : b;
  return larger + log1p_of(exp_of(-magnitude(a - b)));
}

// Sums of two floats, the larger first, hold numbers with 48 bits.
vec2 two_sum(float a, float b) {  // exact
  precise float sum = a + b;
  precise float rounded = sum - a;
  precise float error = (a - (sum - rounded)) + (b - rounded);
  return vec2(sum, error);
}
float high_part(float x) {  // 12 bits, so that products of parts are exact
  return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
}
vec2 two_product(float a, float b) {  // exact
  precise float product = a * b;
  precise float ah = high_part(a), bh = high_part(b);
  precise float al = a - ah, bl = b - bh;
  precise float error = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
  return vec2(product, error);
}
/// log2 of a finite x > 0, to 31 bits or more. log(m) = 2 artanh(s), s = (m-1)/(m+1), whose first
/// term is kept in two floats (error of the others' fit 1.3e-9).
vec2 log2_in_two(float x) {
  int e;
  const float f = log_argument(x, e);
  const vec2 below = two_sum(2.0, f);
  precise float s = f / below.x;
  const vec2 back = two_product(s, below.x);
  precise float s_rest = (((f - back.x) - back.y) - s * below.y) / below.x;
  const float square = s * s;
  float p = 0.233534276;
  p = p * square + 0.285499686;
  p = p * square + 0.400001294;
  p = p * square + 0.666666665;
  const vec2 natural = two_sum(2.0 * s, 2.0 * s_rest + s * square * p);
  const vec2 product = two_product(natural.x, 1.44269502);
  const vec2 sum = two_sum(float(e), product.x);
  precise float rest = sum.y + (product.y + (natural.x * 1.92596303e-8 + natural.y * 1.44269502));
  return two_sum(sum.x, rest);
}
/// |x|^y of finite numbers but zero.
float power_of_magnitude(float x, float y) {
  const vec2 logarithm = log2_in_two(magnitude(x));
  const float rough = y * logarithm.x;
  if (rough > 140.0) return infinity();
  if (rough < -160.0) return 0.0;
  const vec2 exponent = two_product(y, logarithm.x);
  const float whole = roundEven(exponent.x);
  precise float r = (exponent.x - whole) + (exponent.y + y * logarithm.y);
  float p = 1.52973236e-5;  // of (2^r - 1) / r, error 1.7e-10
  p = p * r + 0.000154614447;
  p = p * r + 0.00133335024;
  p = p * r + 0.00961805668;
  p = p * r + 0.0555041088;
  p = p * r + 0.240226509;
  p = p * r + 0.693147181;
  return scaled(1.0 + r * p, int(whole));
}
float power_of(float x, float y) {  // as C's pow
  if (is_zero(y) || floatBitsToUint(x) == 0x3f800000u) return 1.0;
  if (is_nan(x) || is_nan(y)) return not_a_number();
  const bool grows = (magnitude_bits(x) > 0x3f800000u) != has_sign(y);
  if (is_infinite(y)) return magnitude_bits(x) == 0x3f800000u ? 1.0 : grows ? infinity() : 0.0;
  const bool whole = magnitude(y) >= 8388608.0 || floor(y) == y;
  const bool odd = whole && magnitude(y) < 16777216.0 && (int(y) & 1) == 1;
  if (has_sign(x) && !whole && !is_zero(x) && !is_infinite(x)) return not_a_number();
  const bool limit = is_zero(x) || is_infinite(x);
  const float size = limit ? (grows ? infinity() : 0.0) : power_of_magnitude(x, y);
  return odd && has_sign(x) ? -size : size;
}
