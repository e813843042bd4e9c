#version 460
// Sum, mean, max, min and prod over any axes of an operand of any strides.
//
// The elements that an output reduces are cut into segments. Element i of a segment goes to the
// accumulator i % 8, and those are folded in halves; segments are combined in order. So neither the
// layout nor the form below shows in the bits.
//   rows      8 lanes have an accumulator each of one output; for what is adjacent in memory
//   columns   a lane has all 8 of its output; for outputs that are adjacent in memory
//   join      a lane combines the segments of its output, which lie in the workspace
#define OPERANDS 4
#define PARAMS_IN_BLOCK
struct Params {
  uint outputs, count;  // count: elements that each reduces
  uint segments;
  uint leading, outputs_per_leading;  // along axis 0, if an extent cuts that short
  uint kept_rank, reduced_rank;
  uint kept_extents[8];
  int kept_strides[8];  // in elements
  uint reduced_extents[8];
  int reduced_strides[8];
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kKind = 0;
layout(constant_id = 2) const uint kType = kF32;
layout(constant_id = 3) const uint kForm = 0;
layout(constant_id = 4) const bool kOneAxis = true;  // reduced_rank <= 1

#include "accumulate.glsl"

const uint kRows = 0, kColumns = 1, kJoin = 2;
const uint kLanes = 8;
const uint kSegment = 4096;
const uint kX = 0, kOut = 1, kPartial = 2, kExtent = 3;

shared Accumulator scratch[kGroupSize];

uint64_t item_bytes() {
  if (kType == kBool || kType == kU8 || kType == kI8) return 1ul;
  if (kType == kU16 || kType == kI16 || kType == kF16 || kType == kBf16) return 2ul;
  return kType == kU32 || kType == kI32 || kType == kF32 ? 4ul : 8ul;
}

uint live_outputs() {
  return live_rows(operand(kExtent), params.leading) * params.outputs_per_leading;
}

// Where what an output reduces begins.
uint64_t output_base(uint index) {
  int64_t at = 0l;
  for (uint axis = params.kept_rank; axis-- > 0u;) {
    const uint rest = index / params.kept_extents[axis];
    at += int64_t(index - rest * params.kept_extents[axis]) * int64_t(params.kept_strides[axis]);
    index = rest;
  }
  return operand(kX) + uint64_t(at) * item_bytes();
}

Accumulator element(uint64_t base, uint i) {
  int64_t at = 0l;
  if (kOneAxis) {
    at = int64_t(i) * int64_t(params.reduced_strides[0]);
  } else {
    for (uint axis = params.reduced_rank; axis-- > 0u;) {
      const uint rest = i / params.reduced_extents[axis];
      at += int64_t(i - rest * params.reduced_extents[axis]) *
            int64_t(params.reduced_strides[axis]);
      i = rest;
    }
  }
  return load_element(base + uint64_t(at) * item_bytes());
}

uint64_t partials_of(uint index) {
  return operand(kPartial) + uint64_t(index) * params.segments * kAccumulatorBytes;
}

void store(uint index, uint segment, Accumulator value) {
  if (params.segments == 1u) {
    store_result(operand(kOut), index, value, params.count);
  } else {
    Accumulators(partials_of(index)).at[segment] = value;
  }
}

void reduce_rows() {
  const uint lane = gl_LocalInvocationIndex % kLanes;
  const uint job = group_index() * (kGroupSize / kLanes) + gl_LocalInvocationIndex / kLanes;
  const uint index = job / params.segments, segment = job % params.segments;
  const bool works = index < live_outputs();
  const uint64_t base = output_base(works ? index : 0u);
  const uint begin = segment * kSegment;
  const uint end = works ? min(params.count, begin + kSegment) : begin;
  Accumulator total = identity();
  uint i = begin + lane;
  for (; i + 3u * kLanes < end; i += 4u * kLanes) {
    const Accumulator a = element(base, i), b = element(base, i + kLanes);
    const Accumulator c = element(base, i + 2u * kLanes), d = element(base, i + 3u * kLanes);
    total = combine(combine(combine(combine(total, a), b), c), d);
  }
  for (; i < end; i += kLanes) total = combine(total, element(base, i));
  scratch[gl_LocalInvocationIndex] = total;
  barrier();
  if (works && lane == 0u) {
    const uint at = gl_LocalInvocationIndex;
    const Accumulator a = combine(scratch[at], scratch[at + 4u]);
    const Accumulator b = combine(scratch[at + 1u], scratch[at + 5u]);
    const Accumulator c = combine(scratch[at + 2u], scratch[at + 6u]);
    const Accumulator d = combine(scratch[at + 3u], scratch[at + 7u]);
    store(index, segment, combine(combine(a, c), combine(b, d)));
  }
}

void reduce_columns() {
  const uint segment = group_index() % params.segments;
  const uint index =
      group_index() / params.segments * kGroupSize + gl_LocalInvocationIndex;
  if (index < live_outputs()) {
    const uint64_t base = output_base(index);
    const uint begin = segment * kSegment, end = min(params.count, begin + kSegment);
    Accumulator a = identity(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    uint i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      a = combine(a, element(base, i)), b = combine(b, element(base, i + 1u));
      c = combine(c, element(base, i + 2u)), d = combine(d, element(base, i + 3u));
      e = combine(e, element(base, i + 4u)), f = combine(f, element(base, i + 5u));
      g = combine(g, element(base, i + 6u)), h = combine(h, element(base, i + 7u));
    }
    if (i < end) a = combine(a, element(base, i));
    if (i + 1u < end) b = combine(b, element(base, i + 1u));
    if (i + 2u < end) c = combine(c, element(base, i + 2u));
    if (i + 3u < end) d = combine(d, element(base, i + 3u));
    if (i + 4u < end) e = combine(e, element(base, i + 4u));
    if (i + 5u < end) f = combine(f, element(base, i + 5u));
    if (i + 6u < end) g = combine(g, element(base, i + 6u));
    a = combine(a, e), b = combine(b, f), c = combine(c, g), d = combine(d, h);
    store(index, segment, combine(combine(a, c), combine(b, d)));
  }
}

void join_segments() {
  const uint index = group_index() * kGroupSize + gl_LocalInvocationIndex;
  if (index < live_outputs()) {
    const uint64_t from = partials_of(index);
    Accumulator total = Accumulators(from).at[0];
    for (uint i = 1u; i < params.segments; ++i) total = combine(total, Accumulators(from).at[i]);
    store_result(operand(kOut), index, total, params.count);
  }
}

void main() {
  if (group_index() < group_count()) {
    if (kForm == kRows) reduce_rows();
    if (kForm == kColumns) reduce_columns();
    if (kForm == kJoin) join_segments();
  }
}
