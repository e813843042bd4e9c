#version 460
// The largest element or the mean of each window.
#define OPERANDS 3
#define PARAMS_IN_BLOCK
#include "spatial.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kKind = 0;  // kSum for means, or kMax
layout(constant_id = 2) const uint kType = kF32;
layout(constant_id = 3) const uint kBytes = 4;  // of an element
layout(constant_id = 4) const bool kCountsPadding = true;

#include "accumulate.glsl"

const uint kX = 0, kOut = 1, kExtent = 2;

Accumulator mean_of(Accumulator sum, uint count) {
#if defined(ACCUMULATOR_F32)
  return sum / float(count);
#elif defined(ACCUMULATOR_F64)
  return sum / double(count);
#else
  return sum;  // means are of floats
#endif
}

void pool_windows() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_rows(operand(kExtent), params.rows) * params.per_row) {
    const Place place = place_of(number, params.channels);
    Accumulator result = identity();
    uint count = 0u;
    for (uint i = 0u; i < params.window[0]; ++i) {
      const int x = tapped(0u, place.at[0], i);
      for (uint j = 0u; x >= 0 && j < params.window[1]; ++j) {
        const int y = tapped(1u, place.at[1], j);
        for (uint k = 0u; y >= 0 && k < params.window[2]; ++k) {
          const int z = tapped(2u, place.at[2], k);
          if (z >= 0) {
            const uint64_t from = element_at(place.batch, uvec3(x, y, z)) + place.channel;
            result = combine(result, load_element(operand(kX) + from * kBytes));
            ++count;
          }
        }
      }
    }
    if (kCountsPadding) count = params.window[0] * params.window[1] * params.window[2];
    if (kKind == kSum) result = mean_of(result, count);
    store_element(operand(kOut) + uint64_t(number) * kBytes, result);
  }
}

void main() {
  if (group_index() < group_count()) pool_windows();
}
