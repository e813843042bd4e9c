#version 460
// f(a, b) and comparisons of f32, f16 and bf16, computed in float.
#define OPERANDS 4  // a, b, the result, the extent
#define WALKED 2
#define AXES 14
#include "walk.glsl"
#include "kinds.glsl"
#include "math.glsl"

layout(constant_id = 2) const uint kKind = 0;
layout(constant_id = 3) const uint kDType = 11;

float number_of(float a, float b) {
  switch (kKind) {
    case kAdd: return a + b;
    case kSubtract: return a - b;
    case kMultiply: return a * b;
    case kDivide: return a / b;
    case kFloorDivide: return floor_divide_of(a, b);
    case kRemainder: return remainder_of(a, b);
    case kPower: return power_of(a, b);
    case kMaximum: return is_nan(a) || (order_of(a) > order_of(b) && !is_nan(b)) ? a : b;
    case kMinimum: return is_nan(a) || (order_of(a) < order_of(b) && !is_nan(b)) ? a : b;
    case kLogaddexp: return logaddexp_of(a, b);
    case kArctan2: return arctan2_of(a, b);
  }
  return a;
}
bool answer_of(float a, float b) {
  const bool ordered = !is_nan(a) && !is_nan(b);
  const int x = order_of(a), y = order_of(b);
  switch (kKind) {
    case kLogicalAnd: return !is_zero(a) && !is_zero(b);
    case kLogicalOr: return !is_zero(a) || !is_zero(b);
    case kEqual: return ordered && x == y;
    case kNotEqual: return !ordered || x != y;
    case kLess: return ordered && x < y;
    case kLessEqual: return ordered && x <= y;
    case kGreater: return ordered && x > y;
  }
  return ordered && x >= y;
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const uint bytes = kDType == kF32 ? 4u : 2u;
  const float a = load_float(kDType, at_item(bases[0], offsets.of[0], bytes), 0u);
  const float b = load_float(kDType, at_item(bases[1], offsets.of[1], bytes), 0u);
  if (binary_gives_bool(kKind)) {
    store_bool(bases[2] + number, answer_of(a, b));
  } else {
    store_float(kDType, bases[2] + number * bytes, 0u, number_of(a, b));
  }
}
