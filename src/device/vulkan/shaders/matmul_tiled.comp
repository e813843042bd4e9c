#version 460
// Matmul in tiles of rows and columns.
#include "matmul.glsl"
#include "tile.glsl"

void load_unit(Place place, uint unit, uint first_row, uint first_column) {
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileRows; i += kTileLanes) {
    const uint row = i % kTileRows, j = i / kTileRows;
    const uint64_t line = a_line(place, first_row + row);
    put_x(row, j, load_terms(line, params.a_depth, kUnitOctets * unit + j, kDenseA, true));
  }
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileColumns; i += kTileLanes) {
    const uint column = i % kTileColumns, j = i / kTileColumns;
    const uint64_t line = b_line(place, first_column + column);
    put_w(column, j, load_terms(line, params.b_depth, kUnitOctets * unit + j, kDenseB, true));
  }
}

void multiply(Place place) {
  const uint first_row = place.row_group * kTileRows;
  const uint first_column = place.column_group * kTileColumns;
  float totals[kLaneSums];
  [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) totals[i] = 0.0;
  for (uint unit = 0u; unit < (params.depth + kUnitElements - 1u) / kUnitElements; ++unit) {
    load_unit(place, unit, first_row, first_column);
    barrier();
    add_unit(totals);
    barrier();  // before shared memory is written again
  }
  [[unroll]] for (uint r = 0u; r < kLaneRows; ++r) {
    [[unroll]] for (uint c = 0u; c < kLaneColumns; ++c) {
      store(place, first_row + lane_row() + r, first_column + lane_column() + c,
            totals[r * kLaneColumns + c]);
    }
  }
}

void main() {
  const uint group = group_index();
  if (group < group_count()) multiply(find_place(group));
}
