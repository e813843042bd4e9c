#version 460
// The index along an axis of the largest or smallest element. Some lanes share a line.
#define OPERANDS 3
#include "lines.glsl"
#include "order.glsl"

layout(constant_id = 1) const bool kSmallest = false;
layout(constant_id = 2) const uint kType = kF32;
layout(constant_id = 3) const uint kPieces = 1;

const uint kX = 0, kOut = 1, kExtent = 2;
const uint kLines = kGroupSize / kPieces;

shared uint64_t orders[kGroupSize];
shared uint indices[kGroupSize];

// Of integers there is no NaN, so that every order may turn round.
bool has_nan() {
  return kType == kF16 || kType == kBf16 || kType == kF32 || kType == kF64;
}

void search_lines() {
  const uint lane = gl_LocalInvocationIndex, piece = lane / kLines;
  const uint line = group_index() * kLines + lane % kLines;
  const bool works = line < live_count(kExtent);
  Ranked best = Ranked(0ul, kNoIndex);
  for (uint i = piece; works && i < params.extent; i += kPieces) {
    const uint64_t at = element_of(line, uint64_t(i), params.extent) * bytes_of(kType);
    uint64_t order = order_of(kType, operand(kX) + at);
    if (kSmallest && !(has_nan() && order == kNanOrder)) order = ~order;
    const Ranked next = Ranked(order, i);
    if (comes_first(next, best)) best = next;
  }
  orders[lane] = best.order;
  indices[lane] = best.index;
  barrier();
  if (works && piece == 0u) {
    for (uint other = lane + kLines; other < kGroupSize; other += kLines) {
      const Ranked next = Ranked(orders[other], indices[other]);
      if (comes_first(next, best)) best = next;
    }
    U32s(operand(kOut) + 4ul * line).at[0] = best.index;
  }
}

void main() {
  if (group_index() < group_count()) search_lines();
}
