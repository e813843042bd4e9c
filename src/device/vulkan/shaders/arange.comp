#version 460
// start, start + step, ... By default both are whole numbers, exact as 64-bit integers; IN_DOUBLE
// they are doubles; with kFill all items are alike.
#define OPERANDS 1  // the result
struct Params {
  uint size;
  uvec2 start, step;  // bits: of an int64_t, of a double, of the item
};
#include "kernel.glsl"
#include "types.glsl"
#include "convert.glsl"

layout(constant_id = 1) const uint kDType = 11;
layout(constant_id = 2) const bool kFill = false;

void element(uint i) {
  const uint64_t to = operand(0) + uint64_t(i) * item_bytes(kDType);
#ifdef IN_DOUBLE
  precise double value = packDouble2x32(params.start) + packDouble2x32(params.step) * double(i);
  if (is_whole(kDType)) store_integer(kDType, to, int64_t(value));
  else store_double(kDType, to, value);
#else
  const int64_t start = int64_t(packUint2x32(params.start));
  const int64_t value = start + int64_t(packUint2x32(params.step)) * int64_t(i);
  const uint bytes = item_bytes(kDType);
  if (kFill && bytes == 8u) U32x2s(to).at[0] = params.start;
  else if (kFill && bytes == 4u) U32s(to).at[0] = params.start.x;
  else if (kFill) store_narrow(bytes, to, params.start.x);
  else convert_whole(kI64, kDType, to, value);
#endif
}

void main() {
  const uint i = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (group_index() < group_count() && i < params.size) element(i);
}
