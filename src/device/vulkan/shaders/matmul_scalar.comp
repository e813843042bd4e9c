#version 460
// Matmul, a lane for each column. Neighbouring lanes read neighbouring columns of b, so this is
// also the form for a few rows. All lanes need the same terms of a: eight of them load one of an
// octet's each, and pass them on.
#include "matmul.glsl"
#include "share.glsl"

layout(constant_id = 2) const uint kRows = 1;  // that a lane computes at once

Octet load_a(uint64_t line, uint o) {
  if (kCanShare) {
    const uint k = 8u * o + sharing_lane();
    const float term = load_term(line, params.a_depth, min(k, params.depth - 1u));
    return share_octet(k < params.depth ? term : 0.0);
  }
  return load_terms(line, params.a_depth, o, kDenseA, false);
}

void multiply(Place place, uint first_row, uint column) {
  uint64_t a[kRows];
  float totals[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    a[r] = a_line(place, first_row + r);
    totals[r] = 0.0;
  }
  const uint64_t b = b_line(place, column);
  for (uint first = 0u; first < (params.depth + 7u) / 8u; first += kUnitOctets) {
    float unit[kRows];
    [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
      const Octet terms = load_terms(b, params.b_depth, first + j, kDenseB, false);
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        const float sum = octet_sum(terms, load_a(a[r], first + j));
        unit[r] = j == 0u ? sum : unit[r] + sum;
      }
    }
    [[unroll]] for (uint r = 0u; r < kRows; ++r) totals[r] += unit[r];
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) store(place, first_row + r, column, totals[r]);
}

void main() {
  const uint group = group_index();
  if (group < group_count()) {
    const Place place = find_place(group);
    multiply(place, place.row_group * kRows,
             place.column_group * kGroupSize + gl_LocalInvocationIndex);
  }
}
