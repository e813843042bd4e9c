// What the forms of Linear share: where operands lie, and octets of them. Include first.
#define OPERANDS 4
struct Params {
  uint rows, rows_per_extent;  // along axis 0 of x, and rows of each
  uint depth, columns;
  uint column_groups;  // workgroups that share rows
};
#include "kernel.glsl"
#include "types.glsl"
#include "blocks.glsl"
#include "product.glsl"

layout(constant_id = 1) const uint kType = 11;  // of the weights

uint rows_that_count() {
  return live_rows(operand(3), params.rows) * params.rows_per_extent;
}

// Rows and columns past the end are read as the last, and not written.
uint64_t x_row(uint row, uint rows) {
  return operand(0) + 4ul * (uint64_t(min(row, rows - 1u)) * params.depth);
}
uint64_t weight_row(uint column) {
  const uint blocks = params.depth / block_elements(kType);
  const uint64_t bytes = is_plain(kType) ? uint64_t(params.depth) * (kType == kF32 ? 4u : 2u)
                                         : uint64_t(blocks) * block_bytes(kType);
  return operand(1) + bytes * min(column, params.columns - 1u);
}
void store(uint row, uint rows, uint column, float value) {
  if (row < rows && column < params.columns) {
    F32s(operand(2) + 4ul * (uint64_t(row) * params.columns)).at[column] = value;
  }
}

// Whether all units are whole, and operand `i` lies at a multiple of `bytes`, which may be up to 16.
bool is_aligned(uint i, uint bytes) {
  return (operand(i) & uint64_t(bytes - 1u)) == 0ul && params.depth % kUnitElements == 0u;
}

// Octet `o` of a whole row, and what to multiply it by.
Octet load_weights(uint64_t row, uint o, bool aligned) {
  if (is_plain(kType)) {
    const uint64_t at = row + uint64_t(o) * (kType == kF32 ? 32u : 16u);
    return load_plain_octet(kType, at, int(params.depth) - int(8u * o), aligned);
  }
  const uint octets = block_elements(kType) / 8u;
  return load_octet(kType, row + uint64_t(o / octets) * block_bytes(kType), o % octets);
}
vec4 load_run(uint64_t row, uint element, bool aligned) {
  const uint64_t at = row + 4ul * element;
  if (aligned) return F32x4s(at).at[0];
  const int count = int(params.depth) - int(element);
  return vec4(count > 0 ? F32s(at).at[0] : 0.0, count > 1 ? F32s(at).at[1] : 0.0,
              count > 2 ? F32s(at).at[2] : 0.0, count > 3 ? F32s(at).at[3] : 0.0);
}
Octet load_x(uint64_t row, uint o, bool aligned) {
  const uint octets = block_elements(kType) / 8u;
  const uvec2 runs = o / octets * block_elements(kType) + octet_runs(kType, o % octets);
  return Octet(load_run(row, runs.x, aligned), load_run(row, runs.y, aligned));
}
