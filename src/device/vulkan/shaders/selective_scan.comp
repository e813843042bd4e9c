#version 460
// A selective state space: a lane a feature of a batch entry, step after step. Its state lies where
// the last one is wanted. A lane reads a step's x and dt before it writes that step's y, and only it
// uses them, so that y may lie over either, and the last state over the first.
#define OPERANDS 10
#define PARAMS_IN_BLOCK
struct Params {
  uint batch, steps, features, groups, width;
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"

layout(constant_id = 1) const bool kHasD = true;

const uint kX = 0, kDt = 1, kA = 2, kB = 3, kC = 4, kD = 5, kState = 6, kY = 7, kLast = 8,
           kExtent = 9;

uint64_t floats(uint which, uint64_t index) {
  return operand(which) + 4ul * index;
}

float step_of(uint64_t a, uint64_t b, uint64_t c, uint64_t state, float x, float dt) {
  float y = 0.0;
  for (uint n = 0u; n < params.width; ++n) {
    const float h = exp_of(dt * F32s(a).at[n]) * F32s(state).at[n] + dt * x * F32s(b).at[n];
    F32s(state).at[n] = h;
    y += h * F32s(c).at[n];
  }
  return y;
}

void scan_feature(uint entry, uint feature) {
  const uint group = feature / (params.features / params.groups);
  const uint64_t a = floats(kA, uint64_t(feature) * params.width);
  const uint64_t states = (uint64_t(entry) * params.features + feature) * params.width;
  const uint64_t first = floats(kState, states), state = floats(kLast, states);
  for (uint n = 0u; n < params.width; ++n) F32s(state).at[n] = F32s(first).at[n];
  for (uint t = 0u; t < params.steps; ++t) {
    const uint64_t row = uint64_t(entry) * params.steps + t;
    const uint64_t at = row * params.features + feature;
    const uint64_t of_group = (row * params.groups + group) * params.width;
    const float x = F32s(floats(kX, at)).at[0], dt = F32s(floats(kDt, at)).at[0];
    float y = step_of(a, floats(kB, of_group), floats(kC, of_group), state, x, dt);
    if (kHasD) y += F32s(floats(kD, feature)).at[0] * x;
    F32s(floats(kY, at)).at[0] = y;
  }
}

void scan_features() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  const uint entry = number / params.features;
  if (entry < live_rows(operand(kExtent), params.batch)) {
    scan_feature(entry, number % params.features);
  }
}

void main() {
  if (group_index() < group_count()) scan_features();
}
