#version 460
// Linear for many rows: weights are decoded once for a tile of rows.
#include "linear.glsl"
#include "tile.glsl"

void load_unit(uint unit, uint first_row, uint rows, uint first_column, bool x_aligned,
               bool w_aligned) {
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileRows; i += kTileLanes) {
    const uint row = i % kTileRows, j = i / kTileRows;
    put_x(row, j, load_x(x_row(first_row + row, rows), kUnitOctets * unit + j, x_aligned));
  }
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileColumns; i += kTileLanes) {
    const uint column = i % kTileColumns, j = i / kTileColumns;
    put_w(column, j, load_weights(weight_row(first_column + column), kUnitOctets * unit + j, w_aligned));
  }
}

void multiply(uint first_row, uint rows, uint first_column) {
  const bool x_aligned = is_aligned(0, 16u), w_aligned = is_aligned(1, 16u);
  const uint units = (params.depth + kUnitElements - 1u) / kUnitElements;
  float totals[kLaneSums];
  [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) totals[i] = 0.0;
  for (uint unit = 0u; unit < units; ++unit) {
    load_unit(unit, first_row, rows, first_column, x_aligned, w_aligned);
    barrier();
    add_unit(totals);
    barrier();  // before shared memory is written again
  }
  [[unroll]] for (uint r = 0u; r < kLaneRows; ++r) {
    [[unroll]] for (uint c = 0u; c < kLaneColumns; ++c) {
      store(first_row + lane_row() + r, rows, first_column + lane_column() + c,
            totals[r * kLaneColumns + c]);
    }
  }
}

void main() {
  const uint group = group_index(), rows = rows_that_count();
  const uint first_row = group / params.column_groups * kTileRows;
  const uint first_column = group % params.column_groups * kTileColumns;
  if (group < group_count() && first_row < rows) multiply(first_row, rows, first_column);
}
