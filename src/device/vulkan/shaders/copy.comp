#version 460
// Moves items as they are, from any strides: to a contiguous target, which may be where they lie,
// or with STRIDED_TARGET to any strides.
#define OPERANDS 3  // from, to, the extent
#ifdef STRIDED_TARGET
#define WALKED 2
#else
#define WALKED 1
#endif
#define AXES 17
#include "walk.glsl"

layout(constant_id = 2) const uint kBytes = 4;  // of an item

void element(uint64_t number) {
  const Offsets offsets = offsets_of(number);
#ifdef STRIDED_TARGET
  const int64_t to = offsets.of[1];
#else
  if (bases[0] == bases[1]) return;
  const int64_t to = int64_t(number);
#endif
  copy_item(kBytes, at_item(bases[0], offsets.of[0], kBytes), at_item(bases[1], to, kBytes));
}
