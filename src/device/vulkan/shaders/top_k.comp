#version 460
// The k largest of each row, the largest first: a workgroup a row, which looks for the largest that
// comes after what it found before, k times.
#define OPERANDS 4
#include "lines.glsl"
#include "order.glsl"

layout(constant_id = 1) const uint kType = kF32;

const uint kX = 0, kValues = 1, kIndices = 2, kExtent = 3;

shared uint64_t orders[kGroupSize];
shared uint indices[kGroupSize];

// The first of all invocations' elements. All must come.
Ranked first_of_group(Ranked mine) {
  const uint lane = gl_LocalInvocationIndex;
  orders[lane] = mine.order;
  indices[lane] = mine.index;
  barrier();
  for (uint width = kGroupSize; width > 1u;) {
    const uint half_width = (width + 1u) / 2u, other = lane + half_width;
    if (other < width) {
      const Ranked next = Ranked(orders[other], indices[other]);
      if (comes_first(next, mine)) mine = next;
      orders[lane] = mine.order;
      indices[lane] = mine.index;
    }
    width = half_width;
    barrier();
  }
  const Ranked result = Ranked(orders[0], indices[0]);
  barrier();  // before they are used again
  return result;
}

void rank_row(uint row) {
  const uint bytes = bytes_of(kType);
  const uint64_t x = operand(kX) + uint64_t(row) * params.extent * bytes;
  Ranked last = Ranked(~0ul, 0u);
  for (uint k = 0u; k < params.more; ++k) {
    Ranked best = Ranked(0ul, kNoIndex);
    for (uint i = gl_LocalInvocationIndex; i < params.extent; i += kGroupSize) {
      const Ranked next = Ranked(order_of(kType, x + uint64_t(i) * bytes), i);
      const bool left = k == 0u || comes_first(last, next);
      if (left && comes_first(next, best)) best = next;
    }
    last = first_of_group(best);
    if (gl_LocalInvocationIndex == 0u) {
      const uint64_t to = uint64_t(row) * params.more + k;
      copy_item(bytes, x + uint64_t(last.index) * bytes, operand(kValues) + to * bytes);
      U32s(operand(kIndices) + 4ul * to).at[0] = last.index;
    }
  }
}

void main() {
  if (group_index() < min(group_count(), live_count(kExtent))) rank_row(group_index());
}
