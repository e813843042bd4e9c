// Conversion of one item to another dtype, as cast does it: to integers, truncates and saturates,
// NaN becomes 0; between integers modulo 2^bits; to bool, whether it is not zero; from complex, the
// real part. Include after types.glsl. Doubles are known only with DOUBLES defined.
#include "integers.glsl"
#include "math.glsl"
#ifdef DOUBLES
#include "doubles.glsl"
#endif

bool is_whole(uint dtype) {  // integers and bool
  return dtype <= kI64;
}
bool is_half(uint dtype) {
  return dtype == kF16 || dtype == kBf16;
}
uint item_bytes(uint dtype) {
  if (is_whole(dtype)) return integer_bytes(dtype);
  return dtype == kF64 || dtype == kComplex64 ? 8u : dtype == kF32 ? 4u : 2u;
}

// ---- Floats on their way to a half are rounded to odd, so that rounding again is as good as once.

float whole_to_odd(uint64_t size) {
  const uint upper = uint(size >> 32);
  const int top = upper != 0u ? 32 + findMSB(upper) : findMSB(uint(size));
  const int shift = max(top - 23, 0);
  const uint64_t kept = size >> shift;
  return float(uint(kept) | uint((kept << shift) != size)) * power_of_two(shift);
}
float whole_to_float(uint from, uint to, int64_t value) {
  if (is_half(to)) {
    const bool negative = from != kU64 && value < 0l;
    const float size = whole_to_odd(uint64_t(negative ? -value : value));
    return negative ? -size : size;
  }
  return from == kU64 ? float(uint64_t(value)) : float(value);
}

// ---- To integers

bool is_signed(uint dtype) {
  return dtype >= kI8;
}
int64_t largest(uint dtype) {  // as 64 bits
  const uint digits = 8u * integer_bytes(dtype) - uint(is_signed(dtype));
  return digits == 64u ? -1l : (1l << digits) - 1l;
}
int64_t saturated(uint dtype, float x) {
  const float limit = power_of_two(int(8u * integer_bytes(dtype) - uint(is_signed(dtype))));
  if (is_nan(x)) return 0l;
  if (x >= limit) return largest(dtype);
  if (is_signed(dtype)) return x <= -limit ? -largest(dtype) - 1l : int64_t(x);
  return has_sign(x) ? 0l : int64_t(uint64_t(x));
}

void store_complex(uint64_t target, float real) {
  F32s(target).at[0] = real;
  F32s(target + 4ul).at[0] = 0.0;
}

#ifdef DOUBLES
float double_to_float(uint to, double value) {
  const float nearest = float(value);
  if (!is_half(to) || magnitude_bits(nearest) >= kInfinityBits) return nearest;
  const uint bits = floatBitsToUint(nearest);
  const double back = double(nearest);
  if (back == value || (bits & 1u) == 1u) return nearest;
  return uintBitsToFloat(abs(back) > abs(value) ? bits - 1u : bits + 1u);
}
int64_t saturated(uint dtype, double x) {
  const double limit =
      double(power_of_two(int(8u * integer_bytes(dtype) - uint(is_signed(dtype)))));
  if (is_nan(x)) return 0l;
  if (x >= limit) return largest(dtype);
  if (is_signed(dtype)) return x <= -limit ? -largest(dtype) - 1l : int64_t(x);
  return x <= 0.0lf ? 0l : int64_t(uint64_t(x));
}
void store_double(uint to, uint64_t target, double value) {
  if (to == kF64) F64s(target).at[0] = value;
  else store_float(to, target, 0u, double_to_float(to, value));
}
void convert_double(uint to, uint64_t target, double x) {
  if (to == kBool) store_bool(target, !is_zero(x));
  else if (is_whole(to)) store_integer(to, target, saturated(to, x));
  else if (to == kComplex64) store_complex(target, float(x));
  else store_double(to, target, x);
}
#endif

void convert_float(uint to, uint64_t target, float x) {
  if (to == kBool) store_bool(target, !is_zero(x));
  else if (is_whole(to)) store_integer(to, target, saturated(to, x));
  else if (to == kComplex64) store_complex(target, x);
#ifdef DOUBLES
  else if (to == kF64) F64s(target).at[0] = double(x);
#endif
  else store_float(to, target, 0u, x);
}
void convert_whole(uint from, uint to, uint64_t target, int64_t value) {
  if (to == kBool) store_bool(target, value != 0l);
  else if (is_whole(to)) store_integer(to, target, value);
  else if (to == kComplex64) store_complex(target, whole_to_float(from, to, value));
#ifdef DOUBLES
  else if (to == kF64) F64s(target).at[0] = from == kU64 ? double(uint64_t(value)) : double(value);
#endif
  else store_float(to, target, 0u, whole_to_float(from, to, value));
}
void convert_complex(uint to, uint64_t source, uint64_t target) {
  const float real = F32s(source).at[0], imaginary = F32s(source + 4ul).at[0];
  if (to == kComplex64) copy_item(8u, source, target);
  else if (to == kBool) store_bool(target, !is_zero(real) || !is_zero(imaginary));
  else convert_float(to, target, real);
}

/// Of plain dtypes.
void convert_item(uint from, uint to, uint64_t source, uint64_t target) {
  if (is_whole(from)) convert_whole(from, to, target, load_integer(from, source));
  else if (from == kComplex64) convert_complex(to, source, target);
#ifdef DOUBLES
  else if (from == kF64) convert_double(to, target, F64s(source).at[0]);
#endif
  else convert_float(to, target, load_float(from, source, 0u));
}
