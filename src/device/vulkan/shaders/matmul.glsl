// What the forms of Matmul share: where operands lie, and octets of them. Include first.
#define OPERANDS 3
const uint kMostBatchAxes = 3u;
struct Params {
  uint rows, depth, columns;
  uint row_groups, column_groups;          // workgroups of one batch element
  int a_row, a_depth, b_depth, b_column;   // strides, in elements
  uint batch_axes;                         // innermost first
  uint batch_sizes[kMostBatchAxes];
  int a_batch[kMostBatchAxes], b_batch[kMostBatchAxes];  // strides; 0 where an operand is repeated
};
#include "kernel.glsl"
#include "types.glsl"
#include "blocks.glsl"
#include "product.glsl"

layout(constant_id = 1) const uint kType = 11;  // of a, b and the result
// The terms of a row of a, and of a column of b, lie side by side.
layout(constant_id = 3) const bool kDenseA = true;
layout(constant_id = 4) const bool kDenseB = false;

const uint kItem = kType == kF64 ? 8u : kType == kF32 ? 4u : 2u;  // bytes

// What a workgroup computes.
struct Place {
  uint64_t a, b, c;  // addresses of a batch element's matrices
  uint row_group, column_group;
};
Place find_place(uint group) {
  uint batch = group / (params.row_groups * params.column_groups);
  const uint within = group % (params.row_groups * params.column_groups);
  const uint64_t out_elements = uint64_t(params.rows) * params.columns;
  Place place = Place(operand(0), operand(1), operand(2) + batch * out_elements * kItem,
                      within / params.column_groups, within % params.column_groups);
  for (uint i = 0u; i < params.batch_axes; ++i) {
    const int index = int(batch % params.batch_sizes[i]);
    batch /= params.batch_sizes[i];
    place.a += uint64_t(int64_t(index) * params.a_batch[i] * int(kItem));
    place.b += uint64_t(int64_t(index) * params.b_batch[i] * int(kItem));
  }
  return place;
}

// Rows and columns past the end are read as the last, and not written.
uint64_t a_line(Place place, uint row) {
  const int64_t index = int64_t(min(row, params.rows - 1u));
  return place.a + uint64_t(index * params.a_row * int(kItem));
}
uint64_t b_line(Place place, uint column) {
  const int64_t index = int64_t(min(column, params.columns - 1u));
  return place.b + uint64_t(index * params.b_column * int(kItem));
}
void store(Place place, uint row, uint column, float value) {
  if (row < params.rows && column < params.columns) {
    store_float(kType, place.c + uint64_t(row) * params.columns * kItem, column, value);
  }
}

float load_term(uint64_t line, int stride, uint k) {
  return load_float(kType, line + uint64_t(int64_t(k) * stride * int(kItem)), 0u);
}

// Terms 8 o to 8 o + 7 of a line, zeros beyond its end. `dense`: they lie side by side; `wide`:
// then try to read them 16 bytes at a time.
Octet load_terms(uint64_t line, int stride, uint o, bool dense, bool wide) {
  const int count = int(params.depth) - int(8u * o);
  if (dense) {
    const uint64_t at = line + uint64_t(o) * (8u * kItem);
    return load_plain_octet(kType, at, count, wide && count >= 8 && (at & 15ul) == 0ul);
  }
  float values[8];
  [[unroll]] for (int i = 0; i < 8; ++i) {
    values[i] = 0.0;
    if (i < count) values[i] = load_term(line, stride, 8u * o + uint(i));
  }
  return Octet(vec4(values[0], values[1], values[2], values[3]),
               vec4(values[4], values[5], values[6], values[7]));
}
