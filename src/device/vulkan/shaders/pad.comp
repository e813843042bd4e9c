#version 460
// What lies around x: one value, or the nearest element of x. A lane an element of the output.
#define OPERANDS 3
#define PARAMS_IN_BLOCK
struct Params {
  uint count, rank;
  uint extents[8], low[8];  // of the output; before x on each axis
  uint x_extents[8];
};
#include "kernel.glsl"
#include "types.glsl"

layout(constant_id = 1) const uint kBytes = 4;  // of an element
layout(constant_id = 2) const bool kNearest = false;

const uint kX = 0, kValue = 1, kOut = 2;

void pad_elements() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < params.count) {
    uint rest = number;
    uint64_t from = 0ul, step_size = 1ul;
    bool inside = true;
    for (uint axis = params.rank; axis-- > 0u;) {
      const uint outer = rest / params.extents[axis];
      const uint index = rest - outer * params.extents[axis];
      const uint low = params.low[axis], extent = params.x_extents[axis];
      inside = inside && index >= low && index - low < extent;
      const uint nearest = index < low ? 0u : min(index - low, extent - 1u);
      from += nearest * step_size;
      step_size *= extent;
      rest = outer;
    }
    const uint64_t to = operand(kOut) + uint64_t(number) * kBytes;
    if (inside || kNearest) {
      copy_item(kBytes, operand(kX) + from * kBytes, to);
    } else {
      copy_item(kBytes, operand(kValue), to);
    }
  }
}

void main() {
  if (group_index() < group_count()) pad_elements();
}
