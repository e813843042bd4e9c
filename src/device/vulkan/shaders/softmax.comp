#version 460
// Softmax over the last axis: a workgroup a row. Every lane writes only where it alone has read, so
// that the output may lie over the input.
#define OPERANDS 3
struct Params {
  uint rows, width;
  uint rows_per_leading;  // rows to one of axis 0
};
#include "kernel.glsl"
#include "types.glsl"
#include "group.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kType = kF32;

const uint kX = 0, kOut = 1, kExtent = 2;

uint64_t row_of(uint which, uint row) {
  const uint64_t item = kType == kF32 ? 4ul : 2ul;
  return operand(which) + uint64_t(row) * params.width * item;
}

// The largest element, or 0 where all are -inf or NaN.
float largest(uint64_t x) {
  float result = -infinity();
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    const float value = load_float(kType, x, i);
    if (value > result) result = value;
  }
  result = group_max(result);
  return result > -infinity() ? result : 0.0;
}

float sum_of_exponentials(uint64_t x, float shift) {
  float sum = 0.0;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    sum += exp_of(load_float(kType, x, i) - shift);
  }
  return group_sum(sum);
}

void softmax_row(uint row) {
  const uint64_t x = row_of(kX, row), out_row = row_of(kOut, row);
  const float shift = largest(x);
  const float sum = sum_of_exponentials(x, shift);
  // A row of -inf sums to 0 and gives zeros; NaN anywhere makes the sum NaN.
  const float factor = sum == 0.0 ? 0.0 : 1.0 / sum;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    store_float(kType, out_row, i, exp_of(load_float(kType, x, i) - shift) * factor);
  }
}

void main() {
  const uint leading = params.rows / params.rows_per_leading;
  const uint live = live_rows(operand(kExtent), leading) * params.rows_per_leading;
  if (group_index() < min(group_count(), live)) softmax_row(group_index());
}
