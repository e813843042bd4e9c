// What the forms of Linear share: where operands lie, and octets of them. Include first.
// With EXPERTS defined, of GroupedLinear: rows choose their weights, by numbers that are in place of
// the second weight.
#define OPERANDS 6  // x, two weights, their results, the extent
struct Params {
  uint rows, rows_per_extent;  // along axis 0 of x, and rows of each
  uint depth;
  uint columns[2];  // of each weight; 0 for the second if there is only one
  uint first_column_groups, column_groups;  // workgroups that share rows: the first weight's, all
#ifdef EXPERTS
  uint experts;
#endif
};
#include "kernel.glsl"
#include "types.glsl"
#include "blocks.glsl"
#include "product.glsl"

layout(constant_id = 1) const uint kType = 11;  // of the weights

// What a workgroup computes, in rows and columns of its form's choice.
struct Place {
  uint64_t weights, results;
  uint columns;                  // of the weight
  uint rows;                     // that count
  uint row_group, column_group;  // of the weight's
};
Place find_place(uint group) {
  Place place;
  place.rows = live_rows(operand(5), params.rows) * params.rows_per_extent;
  place.row_group = group / params.column_groups;
  place.column_group = group - place.row_group * params.column_groups;
  const bool second = place.column_group >= params.first_column_groups;
  place.weights = second ? operand(2) : operand(1);
  place.results = second ? operand(4) : operand(3);
  place.columns = second ? params.columns[1] : params.columns[0];
  place.column_group -= second ? params.first_column_groups : 0u;
  return place;
}

// Rows and columns past the end are read as the last, and not written.
uint64_t x_row(Place place, uint row) {
  return operand(0) + 4ul * (uint64_t(min(row, place.rows - 1u)) * params.depth);
}
uint64_t weight_row_bytes() {
  const uint blocks = params.depth / block_elements(kType);
  return is_plain(kType) ? uint64_t(params.depth) * (kType == kF32 ? 4u : 2u)
                         : uint64_t(blocks) * block_bytes(kType);
}
uint64_t weight_row(Place place, uint column) {
  return place.weights + weight_row_bytes() * min(column, place.columns - 1u);
}
void store(Place place, uint row, uint column, float value) {
  if (row < place.rows && column < place.columns) {
    F32s(place.results + 4ul * (uint64_t(row) * place.columns)).at[column] = value;
  }
}

// Whether rows that begin at `address` can be read 16 bytes at a time: all units are whole, too.
bool is_aligned(uint64_t address) {
  return (address & 15ul) == 0ul && params.depth % kUnitElements == 0u;
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
