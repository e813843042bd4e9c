// A tile of a product: a workgroup of kTileLanes computes kTileRows rows of kTileColumns columns,
// unit by unit. It brings a unit of each row and column to shared memory, decoded; then every lane
// multiplies kLaneRows rows by four columns, in product.glsl's order. Include after product.glsl.
layout(constant_id = 2) const uint kLaneRows = 8;

const uint kTileLanes = 128, kLaneColumns = 4;
const uint kTileColumns = 64;             // of 16 lanes
const uint kTileRows = 8u * kLaneRows;    // of 8 lanes
const uint kLaneSums = kLaneRows * kLaneColumns;

// Element i of a unit (in the order of its octets) of row r: tile_x[i * kTileRows + r].
shared float tile_x[kUnitElements * kTileRows];
shared float tile_w[kUnitElements * kTileColumns];

void put_x(uint row, uint j, Octet x) {
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    tile_x[(8u * j + i) * kTileRows + row] = x.a[i];
    tile_x[(8u * j + 4u + i) * kTileRows + row] = x.b[i];
  }
}
void put_w(uint column, uint j, Octet w) {
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    tile_w[(8u * j + i) * kTileColumns + column] = w.a[i];
    tile_w[(8u * j + 4u + i) * kTileColumns + column] = w.b[i];
  }
}

uint lane_row() {  // the first of a lane's rows and columns in the tile
  return gl_LocalInvocationIndex / 16u * kLaneRows;
}
uint lane_column() {
  return gl_LocalInvocationIndex % 16u * kLaneColumns;
}

// Adds the unit in shared memory to the lane's totals.
void add_unit(inout float totals[kLaneSums]) {
  float unit[kLaneSums];
  [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
    float sums[kLaneSums];
    [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) sums[i] = 0.0;
    [[unroll]] for (uint k = 8u * j; k < 8u * j + 8u; ++k) {
      float x[kLaneRows], w[kLaneColumns];
      [[unroll]] for (uint r = 0u; r < kLaneRows; ++r) {
        x[r] = tile_x[k * kTileRows + lane_row() + r];
      }
      [[unroll]] for (uint c = 0u; c < kLaneColumns; ++c) {
        w[c] = tile_w[k * kTileColumns + lane_column() + c];
      }
      [[unroll]] for (uint r = 0u; r < kLaneRows; ++r) {
        [[unroll]] for (uint c = 0u; c < kLaneColumns; ++c) {
          sums[r * kLaneColumns + c] = fma(w[c], x[r], sums[r * kLaneColumns + c]);
        }
      }
    }
    [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) {
      unit[i] = j == 0u ? sums[i] : unit[i] + sums[i];
    }
  }
  [[unroll]] for (uint i = 0u; i < kLaneSums; ++i) totals[i] += unit[i];
}
