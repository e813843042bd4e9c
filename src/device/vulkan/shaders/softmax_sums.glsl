// Softmax sums over a part of what a row sees, and how parts are joined: a maximum, the sum of the
// weights 2^(score - maximum), and the sums of weighted values. The products and sums here are ones
// that compilers must leave as they are, so that a part has the same bits in whichever kernel joins
// it (rule 17). Nothing is a maximum of -inf, and sums of zero. Include after math.glsl.
const float kLogOfE = 1.44269504;      // to base 2
const float kLowest = -3.4028235e38;  // finite, so that nothing minus nothing is no NaN

float larger(float a, float b) {  // b where a is NaN
  return a > b ? a : b;
}
vec4 larger(vec4 a, vec4 b) {
  return mix(b, a, greaterThan(a, b));
}

// 2^(score - maximum), for a score of at most the maximum; below 2^-125 it is zero. The fit of
// (2^r - 1) / r, |r| <= 1/2, is good to 9e-9.
float weight_of(float score, float maximum) {
  precise const float x = score - max(maximum, kLowest);
  const float whole = roundEven(x);
  precise const float r = x - whole;
  precise float y = 0.000154614478;
  y = y * r + 0.00133908668;
  y = y * r + 0.00961805694;
  y = y * r + 0.0555035695;
  y = y * r + 0.240226507;
  y = y * r + 0.693147182;
  y = y * r + 1.0;
  y = intBitsToFloat(floatBitsToInt(y) + (int(whole) << 23));
  if (x < -125.0) y = 0.0;
  return is_nan(x) ? x : y;
}
vec4 weight_of(vec4 score, vec4 maximum) {
  return vec4(weight_of(score.x, maximum.x), weight_of(score.y, maximum.y),
              weight_of(score.z, maximum.z), weight_of(score.w, maximum.w));
}

// The maximum of two parts, and what their sums are multiplied by.
#define JOINING(Type, Bools)                                                   \
  struct Joining_##Type {                                                      \
    Type maximum, of_a, of_b;                                                  \
  };                                                                           \
  Joining_##Type joining(Type a, Type b) {                                     \
    Joining_##Type parts;                                                      \
    parts.maximum = larger(b, a);                                              \
    const Bools a_is_less = Bools(LESS_##Type(a, parts.maximum));              \
    const Type weight = weight_of(mix(b, a, a_is_less), parts.maximum);        \
    parts.of_a = mix(Type(1.0), weight, a_is_less);                            \
    parts.of_b = mix(weight, Type(1.0), a_is_less);                            \
    return parts;                                                              \
  }                                                                            \
  Type joined(Type a, Type of_a, Type b, Type of_b) {                          \
    precise const Type from_a = a * of_a, from_b = b * of_b;                   \
    precise const Type result = from_a + from_b;                               \
    return result;                                                             \
  }
#define LESS_float(a, b) (a < b)
#define LESS_vec4(a, b) lessThan(a, b)
JOINING(float, bool)
JOINING(vec4, bvec4)

// Adding zero makes -0, which only rows in company can lose on the way, +0 for all.
float finished(float value, float sum_of_weights) {
  precise const float quotient = value / sum_of_weights;
  precise const float result = quotient + 0.0;
  return sum_of_weights == 0.0 ? 0.0 : result;
}
