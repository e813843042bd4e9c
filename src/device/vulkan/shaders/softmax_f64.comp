#version 460
// Softmax over the last axis of f64: a workgroup a row, as in softmax.comp.
#define OPERANDS 3
struct Params {
  uint rows, width;
  uint rows_per_leading;  // rows to one of axis 0
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"
#include "doubles.glsl"
#include "math_f64.glsl"

const uint kX = 0, kOut = 1, kExtent = 2;

shared double scratch[kGroupSize];

double larger(double a, double b) {
  return b > a ? b : a;
}
double plus(double a, double b) {
  return a + b;
}
#define GROUP_REDUCTION(name, combine)                                             \
  double name(double value) {                                                      \
    const uint lane = gl_LocalInvocationIndex;                                     \
    scratch[lane] = value;                                                         \
    barrier();                                                                     \
    for (uint width = kGroupSize; width > 1u;) {                                   \
      const uint half_width = (width + 1u) / 2u;                                   \
      const uint other = lane + half_width;                                        \
      if (other < width) scratch[lane] = combine(scratch[lane], scratch[other]);   \
      width = half_width;                                                          \
      barrier();                                                                   \
    }                                                                              \
    const double result = scratch[0];                                              \
    barrier(); /* before the scratch is used again */                              \
    return result;                                                                 \
  }
GROUP_REDUCTION(group_max, larger)
GROUP_REDUCTION(group_sum, plus)

void softmax_row(uint row) {
  const uint64_t begin = uint64_t(row) * params.width * 8ul;
  const uint64_t x = operand(kX) + begin, out_row = operand(kOut) + begin;
  double shift = -infinite_double();
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    shift = larger(shift, F64s(x).at[i]);
  }
  shift = group_max(shift);
  if (!(shift > -infinite_double())) shift = 0.0lf;
  double sum = 0.0lf;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    sum += exp_of(F64s(x).at[i] - shift);
  }
  sum = group_sum(sum);
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    F64s(out_row).at[i] = sum == 0.0lf ? 0.0lf : exp_of(F64s(x).at[i] - shift) / sum;
  }
}

void main() {
  const uint leading = params.rows / params.rows_per_leading;
  const uint live = live_rows(operand(kExtent), leading) * params.rows_per_leading;
  if (group_index() < min(group_count(), live)) softmax_row(group_index());
}
