#version 460
// Linear for a few rows: lanes take the octets of a weight's row side by side, so that memory is
// read in order, and leave their sums in shared memory, where they are added up as product.glsl
// says. A workgroup computes kRows rows of kColumns columns; a lane holds the total of one of them.
#include "linear.glsl"

layout(constant_id = 2) const uint kRows = 1;
layout(constant_id = 3) const uint kColumns = 4;

const uint kSums = kRows * kColumns;                // at most kGroupSize
const uint kStepUnits = kGroupSize / kUnitOctets;   // units that a step covers
shared float octet_sums[kSums * kGroupSize];
shared float unit_sums[kSums * (kStepUnits + 1u)];  // with a gap, for lanes that walk side by side

// Each lane's octet, `o`, for all rows and columns.
void multiply_octets(uint64_t x[kRows], uint64_t w[kColumns], uint o, bool x_aligned,
                     bool w_aligned) {
  const bool inside = o < (params.depth + kUnitElements - 1u) / kUnitElements * kUnitOctets;
  const uint lane = gl_LocalInvocationIndex;
  if (inside) {
    Octet weights[kColumns];
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) weights[c] = load_weights(w[c], o, w_aligned);
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      const Octet activations = load_x(x[r], o, x_aligned);
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        octet_sums[(c * kRows + r) * kGroupSize + lane] = octet_sum(weights[c], activations);
      }
    }
  } else {
    for (uint i = 0u; i < kSums; ++i) octet_sums[i * kGroupSize + lane] = 0.0;
  }
}

void add_octets() {
  for (uint i = gl_LocalInvocationIndex; i < kSums * kStepUnits; i += kGroupSize) {
    const uint first = kUnitOctets * i;
    const float sum = ((octet_sums[first] + octet_sums[first + 1u]) + octet_sums[first + 2u]) +
                      octet_sums[first + 3u];
    unit_sums[i / kStepUnits * (kStepUnits + 1u) + i % kStepUnits] = sum;
  }
}

void multiply(Place place) {
  const uint first_row = place.row_group * kRows, first_column = place.column_group * kColumns;
  uint64_t x[kRows], w[kColumns];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) x[r] = x_row(place, first_row + r);
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) w[c] = weight_row(place, first_column + c);
  const bool x_aligned = is_aligned(operand(0)), w_aligned = is_aligned(place.weights);
  const uint lane = gl_LocalInvocationIndex, octets = (params.depth + 7u) / 8u;
  float total = 0.0;
  for (uint first = 0u; first < octets; first += kGroupSize) {
    multiply_octets(x, w, first + lane, x_aligned, w_aligned);
    barrier();
    add_octets();
    barrier();  // also between reading octet_sums and writing them in the next step
    if (lane < kSums) {
      for (uint u = 0u; u < kStepUnits; ++u) total += unit_sums[lane * (kStepUnits + 1u) + u];
    }
  }
  if (lane < kSums) store(place, first_row + lane % kRows, first_column + lane / kRows, total);
}

#ifdef EXPERTS
// A workgroup has one row, so that all of it goes one way.
void multiply_chosen(Place place) {
  const int expert = I32s(operand(2)).at[place.row_group];
  const bool beyond = expert >= int(params.experts);
  report_index(beyond || expert < -1);
  if (beyond || expert < 0) {
    const uint column = place.column_group * kColumns + gl_LocalInvocationIndex;
    if (gl_LocalInvocationIndex < kColumns) store(place, place.row_group, column, 0.0);
  } else {
    place.weights += weight_row_bytes() * place.columns * uint(expert);
    multiply(place);
  }
}
#endif

void main() {
  const uint group = group_index();
  const Place place = find_place(group);
  if (group < group_count() && place.row_group * kRows < place.rows) {
#ifdef EXPERTS
    multiply_chosen(place);
#else
    multiply(place);
#endif
  }
}
