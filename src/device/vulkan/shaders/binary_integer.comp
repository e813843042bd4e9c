#version 460
// f(a, b) and comparisons of integers and bools.
#define OPERANDS 4  // a, b, the result, the extent
#define WALKED 2
#define AXES 14
#include "walk.glsl"
#include "integers.glsl"
#include "kinds.glsl"

layout(constant_id = 2) const uint kKind = 0;
layout(constant_id = 3) const uint kDType = 7;

bool is_signed() {
  return kDType == kI8 || kDType == kI16 || kDType == kI32 || kDType == kI64;
}
bool is_less(int64_t a, int64_t b) {
  return kDType == kU64 ? uint64_t(a) < uint64_t(b) : a < b;
}
uint64_t size_of(int64_t x) {
  return uint64_t(is_signed() && x < 0l ? -x : x);
}
bool differ_in_sign(int64_t a, int64_t b) {
  return is_signed() && (a < 0l) != (b < 0l);
}

// Through magnitudes, so that nothing overflows. By zero both give 0, as in NumPy.
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0l) return 0l;
  const uint64_t quotient = size_of(a) / size_of(b);
  const bool whole = quotient * size_of(b) == size_of(a);
  if (!differ_in_sign(a, b)) return int64_t(quotient);
  return -int64_t(quotient) - int64_t(whole ? 0 : 1);
}
int64_t remainder(int64_t a, int64_t b) {
  return b == 0l ? 0l : a - floor_divide(a, b) * b;
}

int64_t power(int64_t a, int64_t b) {
  if (is_signed() && b < 0l) {  // 1 / a^-b, truncated
    if (a == 1l) return 1l;
    return a == -1l ? ((b & 1l) == 0l ? 1l : -1l) : 0l;
  }
  int64_t result = 1l, square = a;
  for (uint64_t left = uint64_t(b); left != 0ul; left >>= 1) {
    if ((left & 1ul) == 1ul) result *= square;
    square *= square;
  }
  return result;
}

// Counts below zero or beyond the width shift every bit out, as in NumPy.
int64_t left_shift(int64_t a, int64_t b) {
  return uint64_t(b) < uint64_t(8u * integer_bytes(kDType)) ? a << uint(b) : 0l;
}
int64_t right_shift(int64_t a, int64_t b) {
  const bool within = uint64_t(b) < uint64_t(8u * integer_bytes(kDType));
  if (!is_signed()) return within ? int64_t(uint64_t(a) >> uint(b)) : 0l;
  return within ? a >> uint(b) : int64_t(a < 0l ? -1 : 0);
}

int64_t number_of(int64_t a, int64_t b) {
  switch (kKind) {
    case kAdd: return kDType == kBool ? a | b : a + b;
    case kSubtract: return a - b;
    case kMultiply: return a * b;
    case kFloorDivide: return floor_divide(a, b);
    case kRemainder: return remainder(a, b);
    case kPower: return power(a, b);
    case kMaximum: return is_less(b, a) ? a : b;
    case kMinimum: return is_less(a, b) ? a : b;
    case kBitwiseAnd: return a & b;
    case kBitwiseOr: return a | b;
    case kBitwiseXor: return a ^ b;
    case kLeftShift: return left_shift(a, b);
    case kRightShift: return right_shift(a, b);
  }
  return a;
}
bool answer_of(int64_t a, int64_t b) {
  switch (kKind) {
    case kLogicalAnd: return a != 0l && b != 0l;
    case kLogicalOr: return a != 0l || b != 0l;
    case kEqual: return a == b;
    case kNotEqual: return a != b;
    case kLess: return is_less(a, b);
    case kLessEqual: return !is_less(b, a);
    case kGreater: return is_less(b, a);
  }
  return !is_less(a, b);
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const uint bytes = integer_bytes(kDType);
  const int64_t a = load_integer(kDType, at_item(bases[0], offsets.of[0], bytes));
  const int64_t b = load_integer(kDType, at_item(bases[1], offsets.of[1], bytes));
  if (binary_gives_bool(kKind)) {
    store_bool(bases[2] + number, answer_of(a, b));
  } else {
    store_integer(kDType, bases[2] + number * bytes, number_of(a, b));
  }
}
