#version 460
// layer_norm over any axis. Some lanes share a line; only its length decides how many (rule 17).
#define OPERANDS 5
#include "lines.glsl"

layout(constant_id = 1) const uint kType = kF32;  // of x and the output
layout(constant_id = 2) const uint kWeight = 255;
layout(constant_id = 3) const uint kBias = 255;
layout(constant_id = 4) const uint kPieces = 1;
const uint kNone = 255;  // instead of a dtype: there is no such operand

const uint kX = 0, kWeights = 1, kBiases = 2, kOut = 3, kExtent = 4;
const uint kLines = kGroupSize / kPieces;

shared float sums[kGroupSize];

// Of the lanes that share a line. All invocations must come.
float line_sum(float value) {
  const uint lane = gl_LocalInvocationIndex;
  sums[lane] = value;
  barrier();
  float total = sums[lane % kLines];
  for (uint piece = 1u; piece < kPieces; ++piece) total += sums[piece * kLines + lane % kLines];
  barrier();  // before they are used again
  return total;
}

float element(uint line, uint i) {
  const uint64_t at = element_of(line, uint64_t(i), params.extent) * bytes_of(kType);
  return load_float(kType, operand(kX) + at, 0u);
}

void norm_lines() {
  const uint piece = gl_LocalInvocationIndex / kLines;
  const uint line = group_index() * kLines + gl_LocalInvocationIndex % kLines;
  const uint end = line < live_count(kExtent) ? params.extent : 0u;
  const float count = float(params.extent);
  float sum = 0.0, rest = 0.0, squares = 0.0;
  for (uint i = piece; i < end; i += kPieces) sum += element(line, i);
  float mean = line_sum(sum) / count;
  // What the mean is off by would count as deviation where elements are nearly equal.
  for (uint i = piece; i < end; i += kPieces) rest += element(line, i) - mean;
  mean += line_sum(rest) / count;
  for (uint i = piece; i < end; i += kPieces) {
    const float deviation = element(line, i) - mean;
    squares += deviation * deviation;
  }
  const float scale = 1.0 / sqrt(line_sum(squares) / count + uintBitsToFloat(params.more));
  for (uint i = piece; i < end; i += kPieces) {
    float y = (element(line, i) - mean) * scale;
    if (kWeight != kNone) y *= load_float(kWeight, operand(kWeights), i);
    if (kBias != kNone) y += load_float(kBias, operand(kBiases), i);
    const uint64_t at = element_of(line, uint64_t(i), params.extent) * bytes_of(kType);
    store_float(kType, operand(kOut) + at, 0u, y);
  }
}

void main() {
  if (group_index() < group_count()) norm_lines();
}
