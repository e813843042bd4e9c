#version 460
// Joins what workgroups of attend have summed, split by split: a workgroup for each row (a token's
// head). An idle token, or one that sees nothing, has no splits and gets zeros.
#define OPERANDS 10
#define PARAMS_IN_BLOCK
#include "attend.glsl"

const uint kLaneFeatures = (kFeatures + kGroupSize - 1) / kGroupSize;

void join_row(uint row) {
  const Seen seen = seen_by(row / params.heads);
  float maximum = -infinity(), sum = 0.0, values[kLaneFeatures];
  [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) values[i] = 0.0;
  for (uint split = seen.begin / kSplit; split * kSplit < seen.end; ++split) {
    F32s part = F32s(partial_at(row, split));
    const Joining_float parts = joining(maximum, part.at[0]);
    maximum = parts.maximum;
    sum = joined(sum, parts.of_a, part.at[1], parts.of_b);
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) {
      const uint feature = gl_LocalInvocationIndex + i * kGroupSize;
      if (feature < kFeatures) {
        values[i] = joined(values[i], parts.of_a, part.at[2u + feature], parts.of_b);
      }
    }
  }
  const uint64_t to = operand(kOut) + uint64_t(row) * kFeatures * 4ul;
  [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) {
    const uint feature = gl_LocalInvocationIndex + i * kGroupSize;
    if (feature < kFeatures) F32s(to).at[feature] = finished(values[i], sum);
  }
}

void main() {
  const uint rows = live_rows(operand(kExtent), params.tokens) * params.heads;
  if (group_index() < min(group_count(), rows)) join_row(group_index());
}
