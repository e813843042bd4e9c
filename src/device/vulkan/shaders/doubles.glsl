// Doubles, whose properties are asked of their bits, as math.glsl asks those of floats. Include
// after kernel.glsl.
TYPED_REFERENCE(F64s, double, 8)

const uint kInfinityUpper = 0x7ff00000u;  // bits of the upper word

uvec2 magnitude_words(double x) {  // low word first
  return unpackDouble2x32(x) & uvec2(0xffffffffu, 0x7fffffffu);
}
bool is_nan(double x) {
  const uvec2 words = magnitude_words(x);
  return words.y > kInfinityUpper || (words.y == kInfinityUpper && words.x != 0u);
}
bool is_infinite(double x) {
  return magnitude_words(x) == uvec2(0u, kInfinityUpper);
}
bool is_zero(double x) {
  return magnitude_words(x) == uvec2(0u);
}
bool has_sign(double x) {
  return (unpackDouble2x32(x).y >> 31) == 1u;
}
double magnitude(double x) {
  return packDouble2x32(magnitude_words(x));
}
double copy_sign(double x, double sign) {
  const uint bit = unpackDouble2x32(sign).y & 0x80000000u;
  return packDouble2x32(magnitude_words(x) | uvec2(0u, bit));
}
double not_a_double() {
  return packDouble2x32(uvec2(0u, 0x7ff80000u));
}
/// Orders as doubles do, and -0 as 0; of NaN it means nothing.
int64_t order_of(double x) {
  const int64_t size = int64_t(packUint2x32(magnitude_words(x)));
  return has_sign(x) ? -size : size;
}
