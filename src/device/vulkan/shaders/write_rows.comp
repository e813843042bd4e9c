#version 460
// Rows of x into rows of a state, which are chosen by data: as another dtype, or a block of q8_0 at
// a time with BLOCKS defined; with DOUBLES defined also to and from f64.
#define OPERANDS 4  // x, row, the state, the extent
#define WALKED 1    // x
#define AXES 14
#include "walk.glsl"
#include "convert.glsl"
#ifdef BLOCKS
#include "q8_0.glsl"
#endif

layout(constant_id = 2) const uint kFrom = 11;
layout(constant_id = 3) const uint kTo = 11;
layout(constant_id = 4) const uint kFromBytes = 4;  // of an item
layout(constant_id = 5) const uint kToBytes = 4;    // of an item, or a block

void element(uint64_t number) {
  const uint token = uint(number) / params.per_row;
  const uint within = uint(number) - token * params.per_row;
  const int row = I32s(bases[1]).at[token];
  const uint64_t row_bytes = uint64_t(params.per_row) * kToBytes;
  const bool bad = row >= 0 && uint64_t(row) >= operand_bytes(2) / row_bytes;
  report_index(bad);
  if (row >= 0 && !bad) {
    const uint64_t to = bases[2] + uint64_t(row) * row_bytes + uint64_t(within) * kToBytes;
#ifdef BLOCKS
    [[dont_unroll]] for (uint k = 0u; k < 32u; ++k) {
      const uint64_t from = at_item(bases[0], offsets_of(number * 32ul + k).of[0], kFromBytes);
      set_q8_0(k, load_float(kFrom, from, 0u));
    }
    store_q8_0(to);
#else
    const uint64_t from = at_item(bases[0], offsets_of(number).of[0], kFromBytes);
    if (kFrom == kTo) copy_item(kToBytes, from, to);
    else convert_item(kFrom, kTo, from, to);
#endif
  }
}
