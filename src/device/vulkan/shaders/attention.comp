#version 460
// Attention over dense operands. The rows of a head of keys and values (its heads of every query,
// query by query) are cut into tiles of kRows: a workgroup each.
#define OPERANDS 5
#define PARAMS_IN_BLOCK
struct Params {
  uint heads, kv_heads, queries, positions;
  uint tiles;   // of a head of keys and values
  uint window;  // 0: all
  float scale;  // of scores as powers of 2
  // In elements: of a batch entry, a head, a query or position; the mask's last is of positions.
  uint q_strides[3], k_strides[3], v_strides[3], out_strides[3], mask_strides[4];
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"
#include "softmax_sums.glsl"
#include "group.glsl"

layout(constant_id = 1) const uint kFeatures = 4;
layout(constant_id = 2) const uint kValueFeatures = 4;
layout(constant_id = 3) const uint kType = kF32;
layout(constant_id = 4) const uint kRowVectors = 1;
layout(constant_id = 5) const uint kLanePositions = 1;
layout(constant_id = 6) const bool kKeysInFours = false;
layout(constant_id = 7) const bool kValuesInFours = false;
layout(constant_id = 8) const uint kMask = 0;
layout(constant_id = 9) const uint kMaskType = kF32;
const uint kKeyType = kType, kValueType = kType;
const uint kSplit = 256;  // positions

const uint kNoMask = 0, kCausal = 1, kBoolean = 2, kAdditive = 3;  // Attention::Mask
const uint kQuery = 0, kKeys = 1, kValues = 2, kMasks = 3, kOut = 4;

uint batch, kv_head;  // of the workgroup
uint first_row;       // of its tile, among the rows of the head of keys and values
uint last_row;        // one past

#include "attention.glsl"

uint row_bytes(uint type) {
  return type == kF32 ? 4u : type == kBool ? 1u : 2u;
}

uint64_t offset_of(uint strides[3], uint head, uint row) {
  return uint64_t(batch) * strides[0] + uint64_t(head) * strides[1] + uint64_t(row) * strides[2];
}

uint row_of(uint position) {
  return position;
}
uint64_t key_at(uint row) {
  return operand(kKeys) + offset_of(params.k_strides, kv_head, row) * row_bytes(kType);
}
uint64_t value_at(uint row) {
  return operand(kValues) + offset_of(params.v_strides, kv_head, row) * row_bytes(kType);
}

// ---- The tile's rows, which count those of a head of keys and values query by query

uint head_group() {
  return params.heads / params.kv_heads;
}
uint head_of(uint row) {
  return kv_head * head_group() + row % head_group();
}
uint query_of(uint row) {
  return row / head_group();
}

void mask_scores(uint position, uint row_vector, inout vec4 scores) {
  if (kMask == kBoolean || kMask == kAdditive) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uint row = min(first_row + row_vector * 4u + i, last_row - 1u);
      const uint64_t at = uint64_t(batch) * params.mask_strides[0] +
                          uint64_t(head_of(row)) * params.mask_strides[1] +
                          uint64_t(query_of(row)) * params.mask_strides[2] +
                          uint64_t(position) * params.mask_strides[3];
      const uint64_t address = operand(kMasks) + at * row_bytes(kMaskType);
      if (kMask == kBoolean) {
        if (load_u8(address) == 0u) scores[i] = -infinity();
      } else {
        scores[i] += load_float(kMaskType, address, 0u) * kLogOfE;
      }
    }
  }
}

void load_queries() {
  const uint padded = 4u * kKeyChunks;
  for (uint i = gl_LocalInvocationIndex; i < padded * kRows; i += kGroupSize) {
    const uint at = i / padded, row = first_row + at, feature = i % padded;
    float q = 0.0;
    if (row < last_row && feature < kFeatures) {
      const uint64_t head = offset_of(params.q_strides, head_of(row), query_of(row));
      q = load_float(kType, operand(kQuery) + head * row_bytes(kType), feature) * params.scale;
    }
    queries[feature * kRowVectors + at / 4u][at % 4u] = q;
  }
}

// Query i stands at position positions - queries + i.
void find_seen() {
  all_begin = params.positions, all_end = 0u;
  full_begin = 0u, full_end = params.positions;
  [[unroll]] for (uint at = 0u; at < kRows; ++at) {
    const uint row = min(first_row + at, last_row - 1u);
    uint begin = 0u, end = params.positions;
    if (kMask == kCausal) {
      const uint after = params.positions + query_of(row) + 1u;  // one past it, plus queries
      end = after > params.queries ? after - params.queries : 0u;
      begin = params.window > 0u && end > params.window ? end - params.window : 0u;
    }
    seen_begin[at / 4u][at % 4u] = begin;
    seen_end[at / 4u][at % 4u] = end;
    all_begin = min(all_begin, begin), all_end = max(all_end, end);
    full_begin = max(full_begin, begin), full_end = min(full_end, end);
  }
}

void store_rows() {
  share(true);
  for (uint i = gl_LocalInvocationIndex; i < kValueFeatures * kRows; i += kGroupSize) {
    const uint at = i / kValueFeatures, row = first_row + at, feature = i % kValueFeatures;
    if (row < last_row) {
      const uint64_t head = offset_of(params.out_strides, head_of(row), query_of(row));
      store_float(kType, operand(kOut) + head * row_bytes(kType), feature,
                  finished(shared_value(at, feature), shared_sum(at)));
    }
  }
}

void attend_tile(uint tile) {
  first_row = tile % params.tiles * kRows;
  last_row = min(first_row + kRows, params.queries * head_group());
  kv_head = tile / params.tiles % params.kv_heads;
  batch = tile / params.tiles / params.kv_heads;
  report_index((kKeysInFours && (operand(kKeys) & 7ul) != 0ul) ||
               (kValuesInFours && (operand(kValues) & 7ul) != 0ul));
  load_queries();
  find_seen();
  clear_total();
  barrier();
  sum_all();
  store_rows();
}

void main() {
  if (group_index() < group_count()) attend_tile(group_index());
}
