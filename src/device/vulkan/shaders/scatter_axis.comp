#version 460
// Updates of elements along an axis, chosen by indices: a lane a line, since the updates of a line
// follow each other. Before that, in a dispatch of its own, a lane an element copies x.
#define OPERANDS 5
#include "lines.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kKind = 0;  // as accumulate.glsl has them, and kReplace
layout(constant_id = 2) const uint kType = kF32;
layout(constant_id = 3) const uint kIndexType = kI32;
layout(constant_id = 4) const bool kCopies = false;
const uint kReplace = 6;

#include "accumulate.glsl"

const uint kX = 0, kIndices = 1, kUpdates = 2, kOut = 3, kExtent = 4;

void copy_elements() {
  const uint number = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (number < live_count(kExtent)) {
    const uint64_t at = uint64_t(number) * bytes_of(kType);
    copy_item(bytes_of(kType), operand(kX) + at, operand(kOut) + at);
  }
}

void update_lines() {
  const uint line = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (line < live_count(kExtent)) {
    for (uint j = 0u; j < params.more; ++j) {
      const uint64_t number = element_of(line, uint64_t(j), params.more);
      const uint64_t index =
          load_index(kIndexType, operand(kIndices) + number * bytes_of(kIndexType), params.extent);
      report_index(index >= params.extent);
      if (index < params.extent) {
        const uint64_t from = operand(kUpdates) + number * bytes_of(kType);
        const uint64_t to =
            operand(kOut) + element_of(line, index, params.extent) * bytes_of(kType);
        if (kKind == kReplace) {
          copy_item(bytes_of(kType), from, to);
        } else {
          store_element(to, combine(load_element(to), load_element(from)));
        }
      }
    }
  }
}

void main() {
  if (group_index() < group_count()) {
    if (kCopies) copy_elements();
    else update_lines();
  }
}
