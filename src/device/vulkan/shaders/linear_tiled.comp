#version 460
// Linear for many rows: weights are decoded once for a tile of rows.
#include "linear.glsl"
#include "tile.glsl"

void load_unit(Place place, uint unit, bool x_aligned, bool w_aligned) {
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileRows; i += kTileLanes) {
    const uint row = i % kTileRows, j = i / kTileRows;
    const uint64_t x = x_row(place, place.row_group * kTileRows + row);
    put_x(row, j, load_x(x, kUnitOctets * unit + j, x_aligned));
  }
  for (uint i = gl_LocalInvocationIndex; i < kUnitOctets * kTileColumns; i += kTileLanes) {
    const uint column = i % kTileColumns, j = i / kTileColumns;
    const uint64_t w = weight_row(place, place.column_group * kTileColumns + column);
    put_w(column, j, load_weights(w, kUnitOctets * unit + j, w_aligned));
  }
}

void multiply(Place place) {
  const bool x_aligned = is_aligned(operand(0)), w_aligned = is_aligned(place.weights);
  const uint units = (params.depth + kUnitElements - 1u) / kUnitElements;
  float totals[kLaneSums];
  [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) totals[i] = 0.0;
  for (uint unit = 0u; unit < units; ++unit) {
    load_unit(place, unit, x_aligned, w_aligned);
    barrier();
    add_unit(totals);
    barrier();  // before shared memory is written again
  }
  const uint row = place.row_group * kTileRows + lane_row();
  const uint column = place.column_group * kTileColumns + lane_column();
  [[unroll]] for (uint r = 0u; r < kLaneRows; ++r) {
    [[unroll]] for (uint c = 0u; c < kLaneColumns; ++c) {
      store(place, row + r, column + c, totals[r * kLaneColumns + c]);
    }
  }
}

void main() {
  const uint group = group_index();
  const Place place = find_place(group);
  if (group < group_count() && place.row_group * kTileRows < place.rows) multiply(place);
}
