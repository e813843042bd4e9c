#version 460
// Conversion between dtypes, and from block types; of doubles with DOUBLES defined.
#define OPERANDS 3  // x, the result, the extent
#define WALKED 1
#define AXES 15
#include "walk.glsl"
#include "convert.glsl"
#include "dequantise.glsl"

layout(constant_id = 2) const uint kFrom = 11;
layout(constant_id = 3) const uint kTo = 11;
layout(constant_id = 4) const uint kBlockElements = 1;
layout(constant_id = 5) const uint kBlockBytes = 4;

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number / kBlockElements);
  const uint64_t from = at_item(bases[0], offsets.of[0], kBlockBytes);
  const uint64_t to = bases[1] + number * item_bytes(kTo);
  if (kBlockElements > 1u) {
    convert_float(kTo, to, dequantise(kFrom, from, uint(number % kBlockElements)));
  } else {
    convert_item(kFrom, kTo, from, to);
  }
}
