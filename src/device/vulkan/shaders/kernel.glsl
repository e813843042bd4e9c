// What every shader begins with: how it finds its operands and parameters. A shader says
//
//   #define OPERANDS 3                       how many addresses its dispatches have
//   struct Params { uint rows, width; float eps; };      32-bit members only
//   #include "kernel.glsl"
//
// and, where 16 + 12 * OPERANDS + sizeof(Params) is more than 128 bytes, also
// `#define PARAMS_IN_BLOCK` before the include (kernel.h has the rule, and checks it). Then
//
//   operand(i)         the address of operand i; 0 for one that a launch lacks
//   operand_bytes(i)   bytes from there to the end of what is bound: states may have more rows
//                      than the kernel was prepared for
//   params.rows        a parameter
//   group_index()      which of the dispatch's workgroups this is, below group_count(); dispatches
//                      are rounded up, so a surplus workgroup must do nothing, as a whole
//   report_index(bad)  says that an index was out of bounds: the submission then fails
//
// Barriers (rule 14): only where all invocations of a workgroup come, never after a `return` or
// `continue`.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kGroupSize = 1;
layout(constant_id = 31) const uint kSubgroupSize = 32;  // as Limits has it; set for every shader

struct OperandAt {
  uvec2 offset;  // bytes; low word first
  uint slot;     // of the binding table
};

struct Slot {
  uint64_t base, bytes;
};
// The binding table: where slots lie. Slot 0 is the launch report, slot 1 is address 0.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer BindingTable {
  Slot slots[];
};

#ifdef PARAMS_IN_BLOCK
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Block {
  OperandAt operands[OPERANDS];
  Params params;
};
layout(push_constant, scalar) uniform Push {
  BindingTable table;
  uint launch;  // what report_index says
  uint groups;
  Block block;
} push;
#define params push.block.params
#define OPERAND_AT(i) push.block.operands[i]
#else
layout(push_constant, scalar) uniform Push {
  BindingTable table;
  uint launch;
  uint groups;
  OperandAt operands[OPERANDS];
  Params params;
} push;
#define params push.params
#define OPERAND_AT(i) push.operands[i]
#endif

#define operand(i) \
  (push.table.slots[OPERAND_AT(i).slot].base + packUint2x32(OPERAND_AT(i).offset))
#define operand_bytes(i) \
  (push.table.slots[OPERAND_AT(i).slot].bytes - packUint2x32(OPERAND_AT(i).offset))

uint group_index() {
  return (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x +
         gl_WorkGroupID.x;
}
uint group_count() {
  return push.groups;
}

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer LaunchReport {
  uint bad_launch;  // the first launch that found an index out of bounds; 0: none
};
void report_index(bool bad) {
  if (bad) atomicCompSwap(LaunchReport(push.table.slots[0].base).bad_launch, 0u, push.launch);
}

// ---- Typed looks at an address. Index `at` with less than 2^31; add to the address what is more.
#define TYPED_REFERENCE(Name, type, alignment)                                          \
  layout(buffer_reference, scalar, buffer_reference_align = alignment) buffer Name {    \
    type at[];                                                                          \
  };
TYPED_REFERENCE(U32s, uint, 4)
TYPED_REFERENCE(I32s, int, 4)
TYPED_REFERENCE(F32s, float, 4)
TYPED_REFERENCE(F32x2s, vec2, 8)
TYPED_REFERENCE(F32x4s, vec4, 16)
TYPED_REFERENCE(U32x2s, uvec2, 8)
TYPED_REFERENCE(U32x4s, uvec4, 16)
TYPED_REFERENCE(U64s, uint64_t, 8)

// The leading rows that count, of `rows`: what the extent operand at `address` says, or all.
uint live_rows(uint64_t address, uint rows) {
  return address == 0 ? rows : min(rows, uint(max(0, I32s(address).at[0])));
}
