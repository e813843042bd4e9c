#version 460
// Elements along an axis, chosen by indices: a lane an element.
#define OPERANDS 4
#include "lines.glsl"

layout(constant_id = 1) const uint kBytes = 4;  // of an element
layout(constant_id = 2) const uint kIndexType = kI32;

const uint kX = 0, kIndices = 1, kOut = 2, kExtent = 3;

void gather_elements() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_count(kExtent)) {
    const uint64_t at = operand(kIndices) + uint64_t(number) * bytes_of(kIndexType);
    const uint64_t index = load_index(kIndexType, at, params.extent);
    report_index(index >= params.extent);
    if (index < params.extent) {
      const uint outer = number / params.inner / params.more;
      const uint line = outer * params.inner + number % params.inner;
      copy_item(kBytes, operand(kX) + element_of(line, index, params.extent) * kBytes,
                operand(kOut) + uint64_t(number) * kBytes);
    }
  }
}

void main() {
  if (group_index() < group_count()) gather_elements();
}
