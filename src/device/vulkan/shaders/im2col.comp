#version 460
// The elements that windows read, side by side: zeros where they read none.
#define OPERANDS 3
#define PARAMS_IN_BLOCK
#include "spatial.glsl"

layout(constant_id = 1) const uint kBytes = 4;  // of an element

const uint kX = 0, kOut = 1, kExtent = 2;

void store_zero(uint64_t address) {
  if (kBytes == 4u) U32s(address).at[0] = 0u;
  else if (kBytes == 8u) U64s(address).at[0] = 0ul;
  else store_narrow(kBytes, address, 0u);
}

void copy_taps() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_rows(operand(kExtent), params.rows) * params.per_row) {
    const uint taps = params.window[0] * params.window[1] * params.window[2];
    const Place place = place_of(number, taps * params.channels);
    const uint channel = place.channel % params.channels;
    uint tap = place.channel / params.channels;
    ivec3 at;
    [[unroll]] for (uint axis = 3u; axis-- > 0u;) {
      at[axis] = tapped(axis, place.at[axis], tap % params.window[axis]);
      tap /= params.window[axis];
    }
    const uint64_t to = operand(kOut) + uint64_t(number) * kBytes;
    if (all(greaterThanEqual(at, ivec3(0)))) {
      const uint64_t from = element_at(place.batch, uvec3(at)) + channel;
      copy_item(kBytes, operand(kX) + from * kBytes, to);
    } else {
      store_zero(to);
    }
  }
}

void main() {
  if (group_index() < group_count()) copy_taps();
}
