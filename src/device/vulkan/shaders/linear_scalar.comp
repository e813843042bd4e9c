#version 460
// Linear, a lane for each column: for devices where tiles in shared memory do not pay.
//
// A lane reads its weight's row from end to end. All lanes need the same activations: eight of them
// load sixteen, two each, and pass them on.
#include "linear.glsl"

#ifndef MINIMAL
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif

layout(constant_id = 2) const uint kRows = 1;   // that a lane computes at once

// Two activations of a row, from `element` on; zeros beyond its end.
vec2 load_pair(uint64_t row, uint element, bool aligned) {
  const uint64_t at = row + 4ul * element;
  if (aligned) {
    const uvec2 words = unpackUint2x32(U64s(at).at[0]);
    return uintBitsToFloat(words);
  }
  vec2 pair = vec2(0.0);
  if (element < params.depth) pair.x = F32s(at).at[0];
  if (element + 1u < params.depth) pair.y = F32s(at).at[1];
  return pair;
}

// Pair `i` of a unit's sixteen, in the order of octets, as an element of the block.
uint pair_element(uint unit, uint i) {
  const uvec2 runs = octet_runs(kType, kUnitOctets * unit + i / 4u);
  return ((i & 2u) == 0u ? runs.x : runs.y) + 2u * (i & 1u);
}

struct Pairs {
  vec2 first, second;  // octets 0 and 1, octets 2 and 3: a pair for each of eight lanes
};
Pairs load_pairs(uint64_t row, uint block_first, uint unit, bool aligned) {
#ifdef MINIMAL
  return Pairs(vec2(0.0), vec2(0.0));
#else
  const uint lane = gl_SubgroupInvocationID & 7u;
  return Pairs(load_pair(row, block_first + pair_element(unit, lane), aligned),
               load_pair(row, block_first + pair_element(unit, lane + 8u), aligned));
#endif
}

Octet x_octet(Pairs pairs, uint64_t row, uint block_first, uint unit, uint j, bool aligned) {
#ifdef MINIMAL
  const uvec2 runs = block_first + octet_runs(kType, kUnitOctets * unit + j);
  return Octet(vec4(load_pair(row, runs.x, aligned), load_pair(row, runs.x + 2u, aligned)),
               vec4(load_pair(row, runs.y, aligned), load_pair(row, runs.y + 2u, aligned)));
#else
  const vec2 pair = j < 2u ? pairs.first : pairs.second;
  const uint lane = 4u * (j % 2u);
  Octet x;
  x.a = vec4(subgroupShuffle(pair.x, lane), subgroupShuffle(pair.y, lane),
             subgroupShuffle(pair.x, lane + 1u), subgroupShuffle(pair.y, lane + 1u));
  x.b = vec4(subgroupShuffle(pair.x, lane + 2u), subgroupShuffle(pair.y, lane + 2u),
             subgroupShuffle(pair.x, lane + 3u), subgroupShuffle(pair.y, lane + 3u));
  return x;
#endif
}

void add_unit(inout float totals[kRows], uint64_t x[kRows], uint64_t block, BlockHead head,
              uint block_first, uint unit, bool aligned) {
  Octet w[kUnitOctets];
  [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
    const uint o = kUnitOctets * unit + j;
    w[j] = is_plain(kType)
               ? load_plain_octet(kType, block + (kType == kF32 ? 32u : 16u) * o,
                                  int(params.depth) - int(block_first + 8u * o), aligned)
               : decode_octet(kType, head, load_codes(kType, block, o), o);
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    const Pairs pairs = load_pairs(x[r], block_first, unit, aligned);
    float sum = 0.0;
    [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
      const float c = octet_sum(w[j], x_octet(pairs, x[r], block_first, unit, j, aligned));
      sum = j == 0u ? c : sum + c;
    }
    totals[r] += sum;
  }
}

void multiply(uint first_row, uint rows, uint column) {
  const uint blocks = (params.depth + block_elements(kType) - 1u) / block_elements(kType);
  const uint64_t weights = weight_row(column);
  uint64_t x[kRows];
  float totals[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    x[r] = x_row(first_row + r, rows);
    totals[r] = 0.0;
  }
  const bool aligned = is_aligned(0, 8u) && (!is_plain(kType) || is_aligned(1, 16u));
  for (uint b = 0u; b < blocks; ++b) {
    const uint64_t block = weights + uint64_t(b) * block_bytes(kType);
    BlockHead head;
    if (!is_plain(kType)) head = load_head(kType, block);
    for (uint unit = 0u; unit < block_elements(kType) / kUnitElements; ++unit) {
      add_unit(totals, x, block, head, b * block_elements(kType), unit, aligned);
    }
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) store(first_row + r, rows, column, totals[r]);
}

void main() {
  const uint group = group_index(), rows = rows_that_count();
  const uint first_row = group / params.column_groups * kRows;
  const uint column = group % params.column_groups * kGroupSize + gl_LocalInvocationIndex;
  if (group < group_count() && first_row < rows) multiply(first_row, rows, column);
}
