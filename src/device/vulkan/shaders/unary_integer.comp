#version 460
// f(x) of integers and bools.
#define OPERANDS 3  // x, the result, the extent
#define WALKED 1
#define AXES 15
#include "walk.glsl"
#include "integers.glsl"
#include "kinds.glsl"

layout(constant_id = 2) const uint kKind = 0;
layout(constant_id = 3) const uint kDType = 7;

int64_t number_of(int64_t x) {
  const bool negative = x < 0l && kDType != kU64;
  switch (kKind) {
    case kAbs: return negative ? -x : x;
    case kNegative: return -x;
    case kSign: return int64_t(negative ? -1 : int(x != 0l));
    case kSquare: return x * x;
  }
  return x;
}

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const uint bytes = integer_bytes(kDType);
  const int64_t x = load_integer(kDType, at_item(bases[0], offsets.of[0], bytes));
  if (unary_gives_bool(kKind)) {
    store_bool(bases[1] + number, x == 0l);
  } else {
    store_integer(kDType, bases[1] + number * bytes, number_of(x));
  }
}
