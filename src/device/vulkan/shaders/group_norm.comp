#version 460
// Normalisation over all positions and some channels of each batch entry: a workgroup for each of
// its groups of channels.
#define OPERANDS 5
struct Params {
  uint rows, groups, positions, channels;
  float eps;
};
#include "kernel.glsl"
#include "types.glsl"
#include "group.glsl"

layout(constant_id = 1) const uint kType = kF32;  // of x and the output
layout(constant_id = 2) const uint kWeight = 255;
layout(constant_id = 3) const uint kBias = 255;
const uint kNone = 255;  // instead of a dtype: there is no such operand

const uint kX = 0, kWeights = 1, kBiases = 2, kOut = 3, kExtent = 4;

struct Element {
  uint64_t offset;  // bytes
  uint channel;
};

Element element_of(uint row, uint group, uint i) {
  const uint each = params.channels / params.groups, position = i / each;
  const uint channel = group * each + (i - position * each);
  const uint64_t at = (uint64_t(row) * params.positions + position) * params.channels + channel;
  return Element(at * (kType == kF32 ? 4u : 2u), channel);
}

float load(uint row, uint group, uint i) {
  return load_float(kType, operand(kX) + element_of(row, group, i).offset, 0u);
}

void norm_group(uint row, uint group) {
  const uint count = params.positions * (params.channels / params.groups);
  const uint lane = gl_LocalInvocationIndex;
  float sum = 0.0, rest = 0.0, squares = 0.0;
  for (uint i = lane; i < count; i += kGroupSize) sum += load(row, group, i);
  float mean = group_sum(sum) / float(count);
  // What the mean is off by would count as deviation where elements are nearly equal.
  for (uint i = lane; i < count; i += kGroupSize) rest += load(row, group, i) - mean;
  mean += group_sum(rest) / float(count);
  for (uint i = lane; i < count; i += kGroupSize) {
    const float deviation = load(row, group, i) - mean;
    squares += deviation * deviation;
  }
  const float scale = 1.0 / sqrt(group_sum(squares) / float(count) + params.eps);
  for (uint i = lane; i < count; i += kGroupSize) {
    const Element element = element_of(row, group, i);
    float y = (load(row, group, i) - mean) * scale;
    if (kWeight != kNone) y *= load_float(kWeight, operand(kWeights), element.channel);
    if (kBias != kNone) y += load_float(kBias, operand(kBiases), element.channel);
    store_float(kType, operand(kOut) + element.offset, 0u, y);
  }
}

void main() {
  const uint live = live_rows(operand(kExtent), params.rows) * params.groups;
  if (group_index() < min(group_count(), live)) {
    norm_group(group_index() / params.groups, group_index() % params.groups);
  }
}
