#version 460
// Attention of a batch of tokens over KV states that are addressed through block tables.
//
// The rows of a head of keys and values (its heads of every token, token by token) are cut into
// runs (a token each where a batch is of few tokens, else one run), and runs into tiles of kRows: a
// workgroup each. Where a batch is of few tokens, several workgroups share a tile's splits and leave
// their sums in the workspace, which attend_join joins.
#define OPERANDS 10
#define PARAMS_IN_BLOCK
#include "attend.glsl"
#include "group.glsl"

layout(constant_id = 3) const uint kKeyType = kF32;
layout(constant_id = 4) const uint kValueType = kF32;
layout(constant_id = 5) const uint kRowVectors = 1;
layout(constant_id = 6) const uint kLanePositions = 1;
const uint kValueFeatures = kFeatures;
const bool kKeysInFours = kFeatures % 4 == 0, kValuesInFours = kKeysInFours;

uint kv_head;    // of the workgroup
uint first_row;  // of its tile, among the rows of the head of keys and values
uint last_row;   // one past
int sequence;    // whose positions are looked at

#include "attention.glsl"

// ---- Where positions lie

uint head_bytes(uint type) {
  if (type == kQ8_0) return kFeatures / 32u * 34u;
  return kFeatures * (type == kF32 ? 4u : 2u);
}

uint64_t state_row_bytes(uint type) {
  return uint64_t(head_bytes(type)) * params.kv_heads;
}

uint row_of(uint position) {
  const uint64_t at = uint64_t(sequence) * params.table_width + position / kBlockSize;
  const int block = I32s(operand(kTable) + 4ul * at).at[0];
  const uint64_t row = uint64_t(max(block, 0)) * kBlockSize + position % kBlockSize;
  const bool there = block >= 0 && row < kNowhere &&
                     (row + 1ul) * state_row_bytes(kKeyType) <= operand_bytes(kKeys) &&
                     (row + 1ul) * state_row_bytes(kValueType) <= operand_bytes(kValues);
  report_index(!there);
  return there ? uint(row) : kNowhere;
}

uint64_t key_at(uint row) {
  return operand(kKeys) + row * state_row_bytes(kKeyType) + kv_head * head_bytes(kKeyType);
}

uint64_t value_at(uint row) {
  return operand(kValues) + row * state_row_bytes(kValueType) + kv_head * head_bytes(kValueType);
}

void mask_scores(uint position, uint row_vector, inout vec4 scores) {}

// ---- The tile's rows

shared Seen seen_by_row[kRows];

// Where a row's head begins in q and in the output. Row numbers count the rows of a head of keys
// and values token by token.
uint64_t element_of(uint row) {
  const uint group = head_group();
  const uint64_t head = uint64_t(row / group) * params.heads + kv_head * group + row % group;
  return head * kFeatures;
}

void load_seen() {
  for (uint at = gl_LocalInvocationIndex; at < kRows; at += kGroupSize) {
    const uint row = first_row + at;
    seen_by_row[at] = Seen(-1, 0u, 0u);
    if (row < last_row) seen_by_row[at] = seen_by(row / head_group());
  }
}

void load_queries() {
  const uint padded = 4u * kKeyChunks;
  for (uint i = gl_LocalInvocationIndex; i < padded * kRows; i += kGroupSize) {
    const uint at = i / padded, row = first_row + at, feature = i % padded;
    float q = 0.0;
    if (row < last_row && feature < kFeatures) {
      q = F32s(operand(kQuery) + 4ul * (element_of(row) + feature)).at[0] * params.scale;
    }
    queries[feature * kRowVectors + at / 4u][at % 4u] = q;
  }
}

// Has the rows of sequence `sequence` see what they see, and the others nothing.
void look_at_sequence() {
  all_begin = 0xffffffffu, all_end = 0u;
  full_begin = 0u, full_end = 0xffffffffu;
  [[unroll]] for (uint at = 0u; at < kRows; ++at) {
    const Seen seen = seen_by_row[at];
    const bool looks = seen.sequence == sequence;
    seen_begin[at / 4u][at % 4u] = looks ? seen.begin : 0u;
    seen_end[at / 4u][at % 4u] = looks ? seen.end : 0u;
    if (looks) {
      all_begin = min(all_begin, seen.begin), all_end = max(all_end, seen.end);
      full_begin = max(full_begin, seen.begin), full_end = min(full_end, seen.end);
    } else if (seen.sequence >= 0) {
      full_end = 0u;
    }
  }
}

// The least sequence after `after` that a row looks at; -1: none.
int next_sequence(int after) {
  int next = -1;
  for (uint at = 0u; at < kRows; ++at) {
    const int other = seen_by_row[at].sequence;
    if (other > after && (next < 0 || other < next)) next = other;
  }
  return next;
}

// ---- Results

void store_rows() {
  share(true);
  for (uint i = gl_LocalInvocationIndex; i < kFeatures * kRows; i += kGroupSize) {
    const uint at = i / kFeatures, row = first_row + at, feature = i % kFeatures;
    if (row < last_row) {
      F32s(operand(kOut) + 4ul * (element_of(row) + feature)).at[0] =
          finished(shared_value(at, feature), shared_sum(at));
    }
  }
}

void store_split(uint split) {
  share(false);
  for (uint i = gl_LocalInvocationIndex; i < kPartialFloats * kRows; i += kGroupSize) {
    const uint at = i / kPartialFloats, row = first_row + at, number = i % kPartialFloats;
    if (row < last_row) {
      float value = number == 0u ? shared_maximum(at) : shared_sum(at);
      if (number >= 2u) value = shared_value(at, number - 2u);
      F32s(partial_at(element_of(row) / kFeatures, split)).at[number] = value;
    }
  }
  barrier();  // before the queries come again
}

void attend_tile(uint tile, uint split_group) {
  const uint tiles = params.tiles_per_run * params.kv_heads;
  const uint run = tile / tiles, tile_of_run = tile / params.kv_heads % params.tiles_per_run;
  kv_head = tile % params.kv_heads;
  first_row = run * params.rows_per_run + tile_of_run * kRows;
  last_row = min((run + 1u) * params.rows_per_run,
                 live_rows(operand(kExtent), params.tokens) * head_group());
  last_row = min(last_row, first_row + kRows);
  report_index(kKeysInFours && ((operand(kKeys) | operand(kValues)) & 7ul) != 0ul &&
               (kKeyType != kQ8_0 || kValueType != kQ8_0));
  load_seen();
  load_queries();
  barrier();
  if (params.split_groups == 0u) {
    clear_total();
    for (sequence = next_sequence(-1); sequence >= 0; sequence = next_sequence(sequence)) {
      look_at_sequence();
      sum_all();
    }
    store_rows();
  } else {  // the rows are a token's
    sequence = next_sequence(-1);
    look_at_sequence();
    for (uint split = all_begin / kSplit + split_group; split * kSplit < all_end;
         split += params.split_groups) {
      sum_split(split * kSplit);
      store_split(split);
      load_queries();
      barrier();
    }
  }
}

void main() {
  const uint groups = max(params.split_groups, 1u);
  if (group_index() < group_count()) attend_tile(group_index() / groups, group_index() % groups);
}
