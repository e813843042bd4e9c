#version 460
// Cumulative sums, products, extremes and log-sums along an axis. Some lanes share a line, a piece
// of it each: first they find their pieces' totals, then each begins with what is before it. Only
// the line's length decides how many they are. Floats are added up in f64 where the device has it. The
// output may lie over the input.
#define OPERANDS 3
#include "lines.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint kKind = 0;  // as accumulate.glsl has them, and kLogAddExp
layout(constant_id = 2) const uint kType = kF32;
layout(constant_id = 3) const uint kPieces = 1;
layout(constant_id = 4) const bool kReverse = false;
layout(constant_id = 5) const bool kExclusive = false;
const uint kLogAddExp = 5;

#include "accumulate.glsl"

const uint kX = 0, kOut = 1, kExtent = 2;
const uint kLines = kGroupSize / kPieces;

shared Accumulator totals[kGroupSize];

Accumulator nothing() {
#if defined(ACCUMULATOR_F32)
  if (kKind == kLogAddExp) return -infinity();
#elif defined(ACCUMULATOR_F64)
  if (kKind == kLogAddExp) return -infinite_double();
#endif
  return identity();
}
Accumulator with_next(Accumulator a, Accumulator b) {
#if defined(ACCUMULATOR_F32) || defined(ACCUMULATOR_F64)
  if (kKind == kLogAddExp) return logaddexp_of(a, b);
#endif
  return combine(a, b);
}

uint64_t place_of(uint line, uint i) {
  return element_of(line, uint64_t(kReverse ? params.extent - 1u - i : i), params.extent);
}
Accumulator element(uint line, uint i) {
  return load_element(operand(kX) + place_of(line, i) * bytes_of(kType));
}
void store(uint line, uint i, Accumulator value) {
  const bool counts_bools = kType == kBool && kKind == kSum;
  const uint64_t at = operand(kOut) + place_of(line, i) * (counts_bools ? 4u : bytes_of(kType));
  if (counts_bools) {
    store_result(at, 0u, value, 1u);
  } else {
    store_element(at, value);
  }
}

void scan_lines() {
  const uint lane = gl_LocalInvocationIndex, piece = lane / kLines;
  const uint line = group_index() * kLines + lane % kLines;
  const bool works = line < live_count(kExtent);
  const uint each = (params.extent + kPieces - 1u) / kPieces;
  const uint begin = min(piece * each, params.extent);
  const uint end = works ? min(begin + each, params.extent) : begin;
  Accumulator sum = nothing();
  if (kPieces > 1u) {
    for (uint i = begin; i < end; ++i) sum = with_next(sum, element(line, i));
    totals[lane] = sum;
    barrier();
    sum = nothing();
    for (uint before = 0u; before < piece; ++before) {
      sum = with_next(sum, totals[before * kLines + lane % kLines]);
    }
  }
  for (uint i = begin; i < end; ++i) {
    const Accumulator next = with_next(sum, element(line, i));
    store(line, i, kExclusive ? sum : next);
    sum = next;
  }
}

void main() {
  if (group_index() < group_count()) scan_lines();
}
