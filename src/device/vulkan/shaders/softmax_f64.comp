#version 460
// Softmax over the last axis of f64: a workgroup a row, as in softmax.comp.
#define OPERANDS 3
struct Params {
  uint rows, width;
  uint rows_per_leading;  // rows to one of axis 0
};
#include "kernel.glsl"
TYPED_REFERENCE(F64s, double, 8)

const uint kX = 0, kOut = 1, kExtent = 2;

shared double scratch[kGroupSize];

#define kInfinity packDouble2x32(uvec2(0u, 0x7ff00000u))  // no literal says it

// e^x for x <= 0 (or NaN), within 2 units in the last place; below 2^-1022 it is zero.
double exponential(double x) {
  const double kLog2E = 1.4426950408889634lf, kLn2High = 0.693147180369123816490lf,
               kLn2Low = 1.90821492927058770002e-10lf, kLowest = -708.39641853226408lf;
  const double inside = max(x, kLowest);
  const double halves = roundEven(inside * kLog2E);
  // Products and sums that compilers must leave as they are: some join the two constants of fma.
  precise const double high = halves * kLn2High, low = halves * kLn2Low;
  precise const double most = inside - high;
  precise const double r = most - low;
  // The Taylor series to r^13; |r| <= ln(2) / 2, where the next term is below 5e-18.
  double y = 1.0lf / 6227020800.0lf;
  y = fma(y, r, 1.0lf / 479001600.0lf);
  y = fma(y, r, 1.0lf / 39916800.0lf);
  y = fma(y, r, 1.0lf / 3628800.0lf);
  y = fma(y, r, 1.0lf / 362880.0lf);
  y = fma(y, r, 1.0lf / 40320.0lf);
  y = fma(y, r, 1.0lf / 5040.0lf);
  y = fma(y, r, 1.0lf / 720.0lf);
  y = fma(y, r, 1.0lf / 120.0lf);
  y = fma(y, r, 1.0lf / 24.0lf);
  y = fma(y, r, 1.0lf / 6.0lf);
  y = fma(y, r, 0.5lf);
  y = fma(y, r, 1.0lf);
  y = fma(y, r, 1.0lf);
  y *= packDouble2x32(uvec2(0u, uint(int(halves) + 1023) << 20));
  if (x < kLowest) y = 0.0lf;
  const uvec2 bits = unpackDouble2x32(x);
  const bool nan = (bits.y & 0x7fffffffu) > 0x7ff00000u ||
                   ((bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x != 0u);
  return nan ? x : y;
}

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
  double shift = -kInfinity;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    shift = larger(shift, F64s(x).at[i]);
  }
  shift = group_max(shift);
  if (!(shift > -kInfinity)) shift = 0.0lf;
  double sum = 0.0lf;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    sum += exponential(F64s(x).at[i] - shift);
  }
  sum = group_sum(sum);
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    F64s(out_row).at[i] = sum == 0.0lf ? 0.0lf : exponential(F64s(x).at[i] - shift) / sum;
  }
}

void main() {
  const uint leading = params.rows / params.rows_per_leading;
  const uint live = live_rows(operand(kExtent), leading) * params.rows_per_leading;
  if (group_index() < min(group_count(), live)) softmax_row(group_index());
}
