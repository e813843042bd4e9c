#version 460
// Copies bytes as they lie: params.bytes, or as many as both operands have. One dispatch for any
// size: invocations take words in turn.
#define OPERANDS 2
struct Params {
  uint bytes_low, bytes_high;
};
#include "kernel.glsl"
#include "types.glsl"

void main() {
  const uint64_t from = operand(0), to = operand(1);
  const uint64_t asked = packUint2x32(uvec2(params.bytes_low, params.bytes_high));
  const uint64_t bytes = min(asked, min(operand_bytes(0), operand_bytes(1)));
  const uint64_t step = uint64_t(group_count()) * kGroupSize;
  const uint64_t first = uint64_t(group_index()) * kGroupSize + gl_LocalInvocationIndex;
  if (group_index() < group_count()) {
#ifdef MINIMAL
    // 4-byte aligned; a last word is written whole, its end is nobody's.
    for (uint64_t word = first; word * 4ul < bytes; word += step) {
      U32s(to + word * 4ul).at[0] = U32s(from + word * 4ul).at[0];
    }
#else
    uint64_t copied = 0ul;
    if (((from | to) & 15ul) == 0ul) {
      copied = bytes & ~15ul;
      for (uint64_t at = first * 16ul; at < copied; at += step * 16ul) {
        U32x4s(to + at).at[0] = U32x4s(from + at).at[0];
      }
    } else if (((from | to) & 3ul) == 0ul) {
      copied = bytes & ~3ul;
      for (uint64_t at = first * 4ul; at < copied; at += step * 4ul) {
        U32s(to + at).at[0] = U32s(from + at).at[0];
      }
    }
    for (uint64_t at = copied + first; at < bytes; at += step) {
      U8s(to + at).at[0] = U8s(from + at).at[0];
    }
#endif
  }
}
