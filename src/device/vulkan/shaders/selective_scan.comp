#version 460
// A selective state space: a lane a feature of a batch entry, step by step.
#define OPERANDS 9
#define PARAMS_IN_BLOCK
struct Params {
  uint batch, steps, features, groups;
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kStates = 16;
layout(constant_id = 2) const bool kHasD = true;

const uint kX = 0, kDt = 1, kA = 2, kB = 3, kC = 4, kD = 5, kState = 6, kY = 7, kLast = 8;

void scan_feature(uint batch, uint feature) {
  const uint group = feature / (params.features / params.groups);
  const uint64_t states = 4ul * kStates, lane = uint64_t(batch) * params.features + feature;
  float a[kStates], h[kStates];
  [[unroll]] for (uint n = 0u; n < kStates; ++n) {
    a[n] = F32s(operand(kA) + feature * states).at[n];
    h[n] = F32s(operand(kState) + lane * states).at[n];
  }
  float d = 0.0;
  if (kHasD) d = F32s(operand(kD)).at[feature];
  for (uint t = 0u; t < params.steps; ++t) {
    const uint64_t step_index = uint64_t(batch) * params.steps + t;
    const uint64_t at = 4ul * (step_index * params.features + feature);
    const uint64_t of_group = (step_index * params.groups + group) * states;
    const float x = F32s(operand(kX) + at).at[0], dt = F32s(operand(kDt) + at).at[0];
    const float dt_x = dt * x;
    float y = 0.0;
    [[unroll]] for (uint n = 0u; n < kStates; ++n) {
      h[n] = fma(exp_of(dt * a[n]), h[n], dt_x * F32s(operand(kB) + of_group).at[n]);
      y = fma(h[n], F32s(operand(kC) + of_group).at[n], y);
    }
    if (kHasD) y = fma(d, x, y);
    F32s(operand(kY) + at).at[0] = y;
  }
  [[unroll]] for (uint n = 0u; n < kStates; ++n) {
    F32s(operand(kLast) + lane * states).at[n] = h[n];
  }
}

void main() {
  if (group_index() < group_count()) {
    const uint lane = group_index() * kGroupSize + gl_LocalInvocationIndex;
    if (lane < params.batch * params.features) {
      scan_feature(lane / params.features, lane % params.features);
    }
  }
}
