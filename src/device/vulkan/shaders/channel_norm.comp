#version 460
// layer_norm over an axis that is not the last: a lane a line, whose neighbours take the lines beside
// it. A lane reads and writes its own line only, so that the output may lie over x.
#define OPERANDS 5
struct Params {
  uint outer, channels, inner;  // lines: outer * inner of them; elements of a line lie `inner` apart
  uint outer_per_leading;     // outer indices to one of axis 0
  float eps;
};
#include "kernel.glsl"
#include "types.glsl"

const uint kNone = 255;  // instead of a dtype: there is no such operand
layout(constant_id = 1) const uint kType = kF32;  // of x and the output
layout(constant_id = 2) const uint kWeight = kNone;
layout(constant_id = 3) const uint kBias = kNone;

const uint kX = 0, kWeights = 1, kBiases = 2, kOut = 3, kExtent = 4;
const uint kApart = 4;  // sums that are taken apart, for they are more exact

float load_x(uint64_t line, uint i) {
  return load_float(kType, line, i * params.inner);
}

float sum_of_powers(uint64_t line, float mean, bool squared) {
  vec4 total = vec4(0.0);
  const uint whole = params.channels / kApart * kApart;
  for (uint i = 0u; i < whole; i += kApart) {
    vec4 x = vec4(load_x(line, i), load_x(line, i + 1u), load_x(line, i + 2u),
                  load_x(line, i + 3u)) - mean;
    total += squared ? x * x : x;
  }
  for (uint i = whole; i < params.channels; ++i) {
    const float x = load_x(line, i) - mean;
    total.x += squared ? x * x : x;
  }
  return (total.x + total.z) + (total.y + total.w);
}

void norm_line(uint64_t start) {
  const uint64_t x = operand(kX) + start, target = operand(kOut) + start;
  const float length = float(params.channels);
  // The mean's rounding is itself averaged away by a second pass.
  float mean = sum_of_powers(x, 0.0, false) / length;
  mean += sum_of_powers(x, mean, false) / length;
  const float scale = 1.0 / sqrt(sum_of_powers(x, mean, true) / length + params.eps);
  for (uint i = 0u; i < params.channels; ++i) {
    float y = (load_x(x, i) - mean) * scale;
    if (kWeight != kNone) y *= load_float(kWeight, operand(kWeights), i);
    if (kBias != kNone) y += load_float(kBias, operand(kBiases), i);
    store_float(kType, target, i * params.inner, y);
  }
}

void norm_lines() {
  uint outer = params.outer;
  if (params.outer_per_leading > 0u) {
    const uint leading = outer / params.outer_per_leading;
    outer = live_rows(operand(kExtent), leading) * params.outer_per_leading;
  }
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < outer * params.inner) {
    const uint64_t block = uint64_t(number / params.inner) * params.channels * params.inner;
    norm_line((block + number % params.inner) * (kType == kF32 ? 4ul : 2ul));
  }
}

void main() {
  if (group_index() < group_count()) norm_lines();
}
