#version 460
// Rows of x folded back into a state: the first `extent` of them, or with kRow number `extent`.
#define OPERANDS 3  // x, the state, the extent, which is an input
#define WALKED 1    // x
#define AXES 15
#define OWN_COUNT
#include "walk.glsl"

layout(constant_id = 2) const uint kBytes = 4;  // of an item
layout(constant_id = 3) const bool kRow = false;

/// Items to move: none where the extent is out of bounds.
uint64_t element_count() {
  const int given = I32s(bases[2]).at[0];
  const uint64_t row_bytes = uint64_t(params.per_row) * kBytes;
  const uint64_t room = row_bytes == 0ul ? params.rows : operand_bytes(1) / row_bytes;
  const uint64_t limit = kRow ? params.rows : min(uint64_t(params.rows), room) + 1ul;
  const bool bad = given < 0 || uint64_t(given) >= limit;
  report_index(bad);
  return bad ? 0ul : uint64_t(params.per_row) * (kRow ? 1u : uint(given));
}

void element(uint64_t number) {
  const uint64_t skipped = kRow ? uint64_t(I32s(bases[2]).at[0]) * params.per_row : 0ul;
  const uint64_t from = at_item(bases[0], offsets_of(skipped + number).of[0], kBytes);
  copy_item(kBytes, from, bases[1] + number * kBytes);
}
