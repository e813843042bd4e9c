#version 460
// Convolution as it is defined: a lane an element of the output. With DOUBLES defined, of f64.
#define OPERANDS 4
#define PARAMS_IN_BLOCK
#include "spatial.glsl"

layout(constant_id = 1) const uint kType = kF32;
layout(constant_id = 2) const bool kFlips = false;

const uint kX = 0, kWeights = 1, kOut = 2, kExtent = 3;

#ifdef DOUBLES
#include "doubles.glsl"
#define Real double
const uint kBytes = 8;
Real load(uint64_t base, uint i) {
  return F64s(base).at[i];
}
void store(uint64_t base, Real value) {
  F64s(base).at[0] = value;
}
#else
#define Real float
const uint kBytes = kType == kF32 ? 4 : 2;
Real load(uint64_t base, uint i) {
  return load_float(kType, base, i);
}
void store(uint64_t base, Real value) {
  store_float(kType, base, 0u, value);
}
#endif

// The channels that a group's outputs read of one element, times the weights of one tap.
Real product(Real sum, uint64_t x, uint64_t weights, uint channels) {
  for (uint c = 0u; c < channels; ++c) sum += load(x, c) * load(weights, c);
  return sum;
}

// `channel`: of x, the first that is read; `weights`: those of the output's first tap.
Real window_sum(Place place, uint channel, uint channels, uint64_t weights) {
  const uint taps = params.window[0] * params.window[1] * params.window[2];
  Real sum = Real(0.0);
  uint tap = 0u;
  for (uint i = 0u; i < params.window[0]; ++i) {
    const int x = tapped(0u, place.at[0], i);
    for (uint j = 0u; j < params.window[1]; ++j) {
      const int y = tapped(1u, place.at[1], j);
      for (uint k = 0u; k < params.window[2]; ++k, ++tap) {
        const int z = tapped(2u, place.at[2], k);
        if (x >= 0 && y >= 0 && z >= 0) {
          const uint64_t from = element_at(place.batch, uvec3(x, y, z)) + channel;
          const uint64_t weight = uint64_t(kFlips ? taps - 1u - tap : tap) * channels;
          sum = product(sum, operand(kX) + from * kBytes, weights + weight * kBytes, channels);
        }
      }
    }
  }
  return sum;
}

void convolve() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_rows(operand(kExtent), params.rows) * params.per_row) {
    const uint channels = params.channels / params.groups;
    const uint depth = params.window[0] * params.window[1] * params.window[2] * channels;
    const Place place = place_of(number, params.outputs);
    const uint group = place.channel / (params.outputs / params.groups);
    const uint64_t weights = operand(kWeights) + uint64_t(place.channel) * depth * kBytes;
    store(operand(kOut) + uint64_t(number) * kBytes,
          window_sum(place, group * channels, channels, weights));
  }
}

void main() {
  if (group_index() < group_count()) convolve();
}
