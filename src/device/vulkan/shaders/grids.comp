#version 460
// How many workgroups later dispatches need for the rows that count in this run: reads each one's
// extent and writes the arguments of its indirect dispatch.
#define OPERANDS 2  // entries, arguments
struct Params {
  uint entries, max_groups;
};
#include "kernel.glsl"

struct Entry {  // GridEntry of recording.cpp; see Grid in kernel.h
  OperandAt extent;
  uint rows_per_step, groups_per_step, most_steps;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Entries {
  Entry at[];
};

uint divided_up(uint a, uint b) {
  return a / b + uint(a % b != 0u);
}

void main() {
  const uint i = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (i < params.entries) {
    const Entry entry = Entries(operand(0)).at[i];
    const uint64_t extent =
        push.table.slots[entry.extent.slot].base + packUint2x32(entry.extent.offset);
    const uint rows = uint(max(0, I32s(extent).at[0]));
    const uint steps = min(divided_up(rows, entry.rows_per_step), entry.most_steps);
    const uint groups = steps * entry.groups_per_step;
    const uint x = min(groups, params.max_groups);
    const uint beyond_x = divided_up(groups, max(x, 1u));
    const uint y = clamp(beyond_x, 1u, params.max_groups);
    const uint z = max(1u, divided_up(beyond_x, y));
    U32s arguments = U32s(operand(1));
    arguments.at[3u * i] = x;
    arguments.at[3u * i + 1u] = y;
    arguments.at[3u * i + 2u] = z;
  }
}
