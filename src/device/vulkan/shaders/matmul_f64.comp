#version 460
// Matmul of doubles, a lane for each element of the result, term by term as on the CPU.
#include "matmul.glsl"
TYPED_REFERENCE(F64s, double, 8)

void multiply(Place place, uint row, uint column) {
  const uint64_t a = a_line(place, row), b = b_line(place, column);
  double sum = 0.0lf;
  for (uint k = 0u; k < params.depth; ++k) {
    sum = fma(F64s(a + uint64_t(int64_t(k) * params.a_depth * 8)).at[0],
              F64s(b + uint64_t(int64_t(k) * params.b_depth * 8)).at[0], sum);
  }
  if (row < params.rows && column < params.columns) {
    F64s(place.c + uint64_t(row) * params.columns * 8ul).at[column] = sum;
  }
}

void main() {
  const uint group = group_index();
  if (group < group_count()) {
    const Place place = find_place(group);
    multiply(place, place.row_group, place.column_group * kGroupSize + gl_LocalInvocationIndex);
  }
}
