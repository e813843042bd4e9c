#version 460
// Rows of a table, chosen by ids, as another dtype; with DOUBLES defined also to and from f64.
#define OPERANDS 4  // table, ids, the result, the extent
#define WALKED 1    // a row of the table
#define AXES 11
#define EXTRA_PARAMS          \
  uint row_elements, table_rows; \
  int row_stride;  /* items from a row of the table to the next */
#include "walk.glsl"
#include "convert.glsl"
#include "dequantise.glsl"

layout(constant_id = 2) const uint kFrom = 11;
layout(constant_id = 3) const uint kTo = 11;
layout(constant_id = 4) const uint kBlockElements = 1;
layout(constant_id = 5) const uint kBlockBytes = 4;
layout(constant_id = 6) const uint kIds = 7;  // their dtype
layout(constant_id = 7) const bool kWrap = false;  // negative ids count from the end

void element(uint64_t number) {
  const uint token = uint(number) / params.row_elements;
  const uint within = uint(number) - token * params.row_elements;
  const int64_t given = load_integer(kIds, bases[1] + uint64_t(token) * integer_bytes(kIds));
  const int64_t id = kWrap && given < 0l ? given + int64_t(params.table_rows) : given;
  const bool bad = id < 0l || id >= int64_t(params.table_rows);
  report_index(bad);
  if (!bad) {
    const int64_t item = id * params.row_stride + offsets_of(within / kBlockElements).of[0];
    const uint64_t from = at_item(bases[0], item, kBlockBytes);
    const uint64_t to = bases[2] + number * item_bytes(kTo);
    if (kBlockElements > 1u) {
      convert_float(kTo, to, dequantise(kFrom, from, within % kBlockElements));
    } else if (kFrom == kTo) {
      copy_item(kBlockBytes, from, to);
    } else {
      convert_item(kFrom, kTo, from, to);
    }
  }
}
