// What attend and attend_join have in common: their parameters, and what each token sees. They define
// OPERANDS as 10, and PARAMS_IN_BLOCK.
struct Params {
  uint tokens, heads, kv_heads;
  uint sequences, table_width;
  uint rows_per_run, tiles_per_run;
  uint split_groups;  // workgroups that share a tile's splits; 0: one has all
  uint splits;        // that there can be
  uint window;        // 0: all
  float scale;        // of scores as powers of 2
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"
#include "softmax_sums.glsl"

layout(constant_id = 1) const uint kFeatures = 4;
layout(constant_id = 2) const uint kBlockSize = 32;  // of the block table

const uint kQuery = 0, kKeys = 1, kValues = 2, kTable = 3, kSequence = 4, kPosition = 5,
           kLength = 6, kOut = 7, kPartial = 8, kExtent = 9;

const uint kSplit = 256;  // positions; borders are multiples of it

struct Seen {
  int sequence;  // -1: none
  uint begin, end;
};

uint head_group() {
  return params.heads / params.kv_heads;
}

// What token `token` sees, checked; nothing for an idle one.
Seen seen_by(uint token) {
  const int most = int(params.table_width * kBlockSize);
  const int its_sequence = I32s(operand(kSequence)).at[token];
  const int position = I32s(operand(kPosition)).at[token];
  const bool idle = its_sequence == -1;
  const bool has_sequence = its_sequence >= 0 && its_sequence < int(params.sequences);
  int length = 0;
  if (has_sequence) length = I32s(operand(kLength)).at[its_sequence];
  const bool inside = position >= 0 && position < most && length >= 0 && length <= most;
  report_index(!idle && !(has_sequence && inside));
  Seen seen = Seen(-1, 0u, 0u);
  if (has_sequence && inside) {
    seen.sequence = its_sequence;
    seen.end = uint(min(length, position + 1));
    if (params.window > 0u && uint(position) + 1u > params.window) {
      seen.begin = uint(position) + 1u - params.window;
    }
    if (seen.begin >= seen.end) seen = Seen(-1, 0u, 0u);
  }
  return seen;
}

const uint kPartialFloats = kFeatures + 2;
// In the workspace: the maximum, the sum and the weighted values of an output row over a split.
uint64_t partial_at(uint64_t row, uint split) {
  return operand(kPartial) + (row * params.splits + split) * kPartialFloats * 4ul;
}
