#version 460
// a where the condition holds, else b: bits are moved.
#define OPERANDS 5  // condition, a, b, the result, the extent
#define WALKED 3
#define AXES 11
#include "walk.glsl"

layout(constant_id = 2) const uint kBytes = 4;  // of an item

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
  const bool first = load_u8(at_item(bases[0], offsets.of[0], 1u)) != 0u;
  const uint64_t from = first ? at_item(bases[1], offsets.of[1], kBytes)
                              : at_item(bases[2], offsets.of[2], kBytes);
  copy_item(kBytes, from, bases[3] + number * kBytes);
}
