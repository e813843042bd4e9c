#version 460
// layer_norm of groups of neighbouring channels over all positions: a workgroup a group. A lane
// writes only what it alone reads, so that the output may lie over x.
#define OPERANDS 5
struct Params {
  uint batch, positions, channels, groups;
  float eps;
};
#include "kernel.glsl"
#include "types.glsl"
#include "group.glsl"

const uint kNone = 255;  // instead of a dtype: there is no such operand
layout(constant_id = 1) const uint kType = kF32;  // of x and the output
layout(constant_id = 2) const uint kWeight = kNone;
layout(constant_id = 3) const uint kBias = kNone;

const uint kX = 0, kWeights = 1, kBiases = 2, kOut = 3, kExtent = 4;

uint width() {
  return params.channels / params.groups;
}
// Where a group's element `i` lies, from its first.
uint place_of(uint i) {
  return i / width() * params.channels + i % width();
}

float sum_of_powers(uint64_t x, float mean, bool squared) {
  float total = 0.0;
  for (uint i = gl_LocalInvocationIndex; i < params.positions * width(); i += kGroupSize) {
    const float value = load_float(kType, x, place_of(i)) - mean;
    total += squared ? value * value : value;
  }
  return total;
}

void norm_group(uint image, uint group) {
  const uint64_t first = uint64_t(image) * params.positions * params.channels + group * width();
  const uint64_t start = first * (kType == kF32 ? 4ul : 2ul);
  const uint64_t x = operand(kX) + start, target = operand(kOut) + start;
  const uint elements = params.positions * width();
  const float count = float(elements);
  // The mean's rounding is itself averaged away by a second pass.
  float mean = group_sum(sum_of_powers(x, 0.0, false)) / count;
  mean += group_sum(sum_of_powers(x, mean, false)) / count;
  const float squares = group_sum(sum_of_powers(x, mean, true));
  const float scale = 1.0 / sqrt(squares / count + params.eps);
  for (uint i = gl_LocalInvocationIndex; i < elements; i += kGroupSize) {
    const uint channel = group * width() + i % width();
    float y = (load_float(kType, x, place_of(i)) - mean) * scale;
    if (kWeight != kNone) y *= load_float(kWeight, operand(kWeights), channel);
    if (kBias != kNone) y += load_float(kBias, operand(kBiases), channel);
    store_float(kType, target, place_of(i), y);
  }
}

void main() {
  const uint live = live_rows(operand(kExtent), params.batch) * params.groups;
  if (group_index() < min(group_count(), live)) {
    norm_group(group_index() / params.groups, group_index() % params.groups);
  }
}
