// Where the elements lie of operands that are walked together. In place of kernel.glsl's Params a
// shader says
//
//   #define OPERANDS 4   its operands, of which the last is the extent
//   #define WALKED 2     how many of them have strides
//   #define AXES 14      numbers that these take
//   #include "walk.glsl"
//
// and gives a function `element(number)` that computes one element of those in the rows that count
// (or, with OWN_COUNT defined, of as many as its `element_count()` says). offsets_of(number) says
// how many items from its start, at bases[i], each walked operand has that element. Numbers are
// row-major.
//
// `axes` holds the extents of all merged axes but the outermost, then the strides of each operand.
// Only a walk of one axis may be of 2^32 items or more. EXTRA_PARAMS may name more members of
// Params.
#ifndef EXTRA_PARAMS
#define EXTRA_PARAMS
#endif
struct Params {
  uint rows, per_row;  // of axis 0, which an extent may cut; elements in each
  EXTRA_PARAMS
  int axes[AXES];
};
#include "kernel.glsl"
#include "types.glsl"

layout(constant_id = 1) const uint kRank = 1;  // 0: all lie one after the other

uint64_t bases[OPERANDS];  // the operands' addresses, read once

struct Offsets {
  int64_t of[WALKED];
};

Offsets offsets_of(uint64_t number) {
  Offsets offsets;
  if (kRank == 0u) {
    [[unroll]] for (uint n = 0u; n < WALKED; ++n) offsets.of[n] = int64_t(number);
  } else if (kRank == 1u) {
    [[unroll]] for (uint n = 0u; n < WALKED; ++n) offsets.of[n] = int64_t(number) * params.axes[n];
  } else {
    uint rest = uint(number);
    [[unroll]] for (uint n = 0u; n < WALKED; ++n) offsets.of[n] = 0l;
    [[unroll]] for (uint axis = max(kRank, 1u) - 1u; axis > 0u; --axis) {
      const uint extent = uint(params.axes[axis - 1u]);
      const uint index = rest % extent;
      rest /= extent;
      [[unroll]] for (uint n = 0u; n < WALKED; ++n) {
        offsets.of[n] += int64_t(index) * params.axes[kRank - 1u + n * kRank + axis];
      }
    }
    [[unroll]] for (uint n = 0u; n < WALKED; ++n) {
      offsets.of[n] += int64_t(rest) * params.axes[kRank - 1u + n * kRank];
    }
  }
  return offsets;
}

uint64_t at_item(uint64_t base, int64_t offset, uint bytes) {
  return base + uint64_t(offset) * bytes;
}

const uint kPerLane = 4;
void element(uint64_t number);
#ifdef OWN_COUNT
uint64_t element_count();
#else
uint64_t element_count() {
  return uint64_t(live_rows(bases[OPERANDS - 1], params.rows)) * params.per_row;
}
#endif

void walk_elements() {
  [[unroll]] for (uint i = 0u; i < OPERANDS; ++i) bases[i] = operand(i);
  const uint64_t count = element_count();
  const uint64_t first =
      uint64_t(group_index()) * (kGroupSize * kPerLane) + gl_LocalInvocationIndex;
  [[dont_unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint64_t number = first + k * kGroupSize;
    if (number < count) element(number);
  }
}
void main() {
  if (group_index() < group_count()) walk_elements();
}
