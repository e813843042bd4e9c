#version 460
// rms_norm, add_rms_norm and layer_norm: a workgroup a row. Every lane reads again only what it
// wrote itself, and writes only where it has read, so that outputs may lie over inputs.
#define OPERANDS 7
struct Params {
  uint rows, width;
  uint rows_per_leading;  // rows to one of axis 0
  float eps;
};
#include "kernel.glsl"
#include "types.glsl"
#include "group.glsl"

const uint kRms = 0, kAddRms = 1, kLayer = 2;
const uint kNone = 255;  // instead of a dtype: there is no such operand
layout(constant_id = 1) const uint kKind = kRms;
layout(constant_id = 2) const uint kType = kF32;  // of x and the outputs
layout(constant_id = 3) const uint kWeight = kNone;
layout(constant_id = 4) const uint kBias = kNone;

const uint kX = 0, kAddend = 1, kWeights = 2, kBiases = 3, kOut = 4, kSums = 5, kExtent = 6;
const uint kUnrolled = 4;

uint64_t row_of(uint which, uint row) {
  const uint64_t item = kType == kF32 ? 4ul : 2ul;
  return operand(which) + uint64_t(row) * params.width * item;
}

// What is summed of element `i`; the sum of add_rms_norm is stored on the way.
float term(uint64_t x, uint64_t addend, uint64_t sums, float mean, uint i) {
  float value = load_float(kType, x, i);
  if (kKind == kAddRms) {
    value += load_float(kType, addend, i);
    store_float(kType, sums, i, value);
    value = load_float(kType, sums, i);
  }
  value -= mean;
  return value * value;
}

float sum_of_terms(uint64_t x, uint64_t addend, uint64_t sums, float mean) {
  const uint step = kGroupSize * kUnrolled;
  const uint whole = params.width / step * step;
  vec4 total = vec4(0.0);
  for (uint i = gl_LocalInvocationIndex; i < whole; i += step) {
    total.x += term(x, addend, sums, mean, i);
    total.y += term(x, addend, sums, mean, i + kGroupSize);
    total.z += term(x, addend, sums, mean, i + 2u * kGroupSize);
    total.w += term(x, addend, sums, mean, i + 3u * kGroupSize);
  }
  for (uint i = whole + gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    total.x += term(x, addend, sums, mean, i);
  }
  return (total.x + total.z) + (total.y + total.w);
}

float sum_of_elements(uint64_t x) {
  float total = 0.0;
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    total += load_float(kType, x, i);
  }
  return total;
}

void normalize(uint64_t x, uint64_t out_row, float mean, float scale) {
  for (uint i = gl_LocalInvocationIndex; i < params.width; i += kGroupSize) {
    float y = (load_float(kType, x, i) - mean) * scale;
    if (kWeight != kNone) y *= load_float(kWeight, operand(kWeights), i);
    if (kBias != kNone) y += load_float(kBias, operand(kBiases), i);
    store_float(kType, out_row, i, y);
  }
}

void norm_row(uint row) {
  const float width = float(params.width);
  const uint64_t x = row_of(kX, row);
  const uint64_t addend = kKind == kAddRms ? row_of(kAddend, row) : 0ul;
  const uint64_t sums = kKind == kAddRms ? row_of(kSums, row) : 0ul;
  float mean = 0.0;
  if (kKind == kLayer) mean = group_sum(sum_of_elements(x)) / width;
  const float squares = group_sum(sum_of_terms(x, addend, sums, mean));
  const float scale = 1.0 / sqrt(squares / width + params.eps);
  normalize(kKind == kAddRms ? sums : x, row_of(kOut, row), mean, scale);
}

void main() {
  const uint leading = params.rows / params.rows_per_leading;
  const uint live = live_rows(operand(kExtent), leading) * params.rows_per_leading;
  if (group_index() < min(group_count(), live)) norm_row(group_index());
}
