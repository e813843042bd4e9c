// Rotary embeddings: x [T, H, D] plus a bias, whose pairs of features are turned, into an output or
// into rows of a state that are chosen by data; of q8_0 with BLOCKS defined. With TABLE defined,
// sines and cosines come from tables.
#ifdef TABLE  // the position is the tables' row
#define OPERANDS 6
const uint kX = 0, kPosition = 1, kCos = 2, kSin = 3, kTarget = 4, kExtent = 5;
#else  // operands that the op lacks are at address 0
#define OPERANDS 7
const uint kX = 0, kBias = 1, kPosition = 2, kFactors = 3, kRow = 4, kTarget = 5, kExtent = 6;
#endif

struct Params {
  uint tokens, heads, features;
  uint head_groups;     // how many invocations share a pair's heads, in turn
  uint table_rows;      // with TABLE
  int x_strides[3];     // in elements
#ifndef TABLE
  uvec2 frequency[PAIRS];  // in 2^-64 turns a position; low word first
#endif
};
#include "kernel.glsl"
#include "types.glsl"
#include "math.glsl"
#ifdef BLOCKS
#include "q8_0.glsl"
#endif

layout(constant_id = 1) const uint kFrom = 11;   // dtypes of x, with the bias, and of the target
layout(constant_id = 2) const uint kTo = 11;
layout(constant_id = 3) const uint kPairs = 0;   // that turn; features beyond them pass
layout(constant_id = 4) const bool kInterleaved = false;  // pairs (2i, 2i+1), not (i, i + pairs)

// ---- Angles

#ifdef TABLE
bool has_turn(int position) {
  return position >= 0 && uint(position) < params.table_rows;
}
vec2 sin_cos_at(int position, uint pair) {
  const uint64_t at = (uint64_t(position) * kPairs + pair) * 4u;
  return vec2(F32s(operand(kSin) + at).at[0], F32s(operand(kCos) + at).at[0]);
}
#else
bool has_turn(int position) {
  return true;
}

/// (steps * frequency) / factor in 2^-64 turns, whole turns left out, by long division in base
/// 2^32. Factors below 2^-40 count as that.
uint64_t divided_turn(uint steps, uvec2 frequency, float factor) {
  const uint bits = magnitude_bits(factor);
  const uint64_t m = uint64_t((bits & 0x7fffffu) | 0x800000u);
  const int shift = min(150 - int(bits >> 23), 63);  // factor = m 2^-shift
  const uint64_t low = uint64_t(steps) * frequency.x;
  const uint64_t high = uint64_t(steps) * frequency.y + (low >> 32);
  const uint bit = uint(max(shift, 0)) & 31u;
  const uint64_t first = (high >> 32) << bit;
  const uint64_t second = (high & 0xfffffffful) << bit, third = (low & 0xfffffffful) << bit;
  uint64_t rest = (first >> 32) % m;
  rest = ((rest << 32) | (first & 0xfffffffful) | (second >> 32)) % m;
  const uint64_t upper = (rest << 32) | (second & 0xfffffffful) | (third >> 32);
  const uint64_t lower = ((upper % m) << 32) | (third & 0xfffffffful);
  if (shift >= 32) return ((lower / m) << 32) | (((lower % m) << 32) / m);
  const uint64_t turn = ((upper / m) << 32) | (lower / m);
  return shift >= 0 ? turn : shift > -64 ? turn >> -shift : 0ul;
}
vec2 sin_cos_at(int position, uint pair) {
  const uvec2 frequency = params.frequency[pair];
  if (operand(kFactors) == 0ul) {
    return sin_cos_of_turn(uint64_t(int64_t(position)) * packUint2x32(frequency));
  }
  const float factor = F32s(operand(kFactors)).at[pair];
  if (is_zero(factor) || is_nan(factor)) return vec2(not_a_number());
  if (is_infinite(factor)) return vec2(0.0, 1.0);
  const uint64_t turn = divided_turn(uint(abs(position)), frequency, factor);
  const bool backwards = (position < 0) != has_sign(factor);
  return sin_cos_of_turn(backwards ? 0ul - turn : turn);
}
#endif

// ---- Features

float feature(uint token, uint head, uint i) {
  const int64_t at = int64_t(token) * params.x_strides[0] + int64_t(head) * params.x_strides[1] +
                     int64_t(i) * params.x_strides[2];
  const uint bytes = kFrom == kF32 ? 4u : 2u;
  precise float value = load_float(kFrom, operand(kX) + uint64_t(at) * bytes, 0u);
#ifndef TABLE
  if (operand(kBias) != 0ul) value += load_float(kFrom, operand(kBias), head * params.features + i);
#endif
  return value;
}
/// Both features of a pair, turned: alike in every kernel, fused or not.
vec2 turned(vec2 pair, vec2 sin_cos) {
  precise float first = pair.x * sin_cos.y - pair.y * sin_cos.x;
  precise float second = pair.x * sin_cos.x + pair.y * sin_cos.y;
  return vec2(first, second);
}
uvec2 features_of(uint pair) {
  return kInterleaved ? uvec2(2u * pair, 2u * pair + 1u) : uvec2(pair, pair + kPairs);
}

/// Where a token's row lies in the target; 0 where it is idle or out of bounds.
uint64_t target_row(uint token) {
#ifdef BLOCKS
  const uint64_t bytes = uint64_t(params.heads * params.features / 32u) * 34u;
#else
  const uint64_t bytes = uint64_t(params.heads * params.features) * (kTo == kF32 ? 4u : 2u);
#endif
#ifndef TABLE
  if (operand(kRow) != 0ul) {
    const int row = I32s(operand(kRow)).at[token];
    const bool bad = row >= 0 && uint64_t(row) >= operand_bytes(kTarget) / bytes;
    report_index(bad);
    return row < 0 || bad ? 0ul : operand(kTarget) + uint64_t(row) * bytes;
  }
#endif
  return operand(kTarget) + uint64_t(token) * bytes;
}
/// The token's position, where positions matter.
int position_of(uint token) {
  return operand(kPosition) != 0ul ? I32s(operand(kPosition)).at[token] : int(token);
}

#ifdef BLOCKS
uint units_per_token() {  // blocks
  return params.heads * params.features / 32u;
}
float turned_feature(uint token, uint head, uint i) {
  if (i >= 2u * kPairs) return feature(token, head, i);
  const uint pair = kInterleaved ? i / 2u : i % max(kPairs, 1u);
  const uvec2 at = features_of(pair);
  const vec2 both = vec2(feature(token, head, at.x), feature(token, head, at.y));
  const vec2 result = turned(both, sin_cos_at(position_of(token), pair));
  return i == at.x ? result.x : result.y;
}
void unit(uint token, uint block) {
  const uint64_t row = target_row(token);
  if (row != 0ul) {
    const uint head = block * 32u / params.features, first = block * 32u % params.features;
    [[dont_unroll]] for (uint k = 0u; k < 32u; ++k) {
      set_q8_0(k, turned_feature(token, head, first + k));
    }
    store_q8_0(row + uint64_t(block) * 34u);
  }
}
#else
uint units_of_head() {  // pairs, and features that pass
  return params.features - kPairs;
}
uint units_per_token() {
  return units_of_head() * params.head_groups;
}
void pass_heads(uint token, uint group, uint i, uint64_t row) {
  [[dont_unroll]] for (uint head = group; head < params.heads; head += params.head_groups) {
    store_float(kTo, row, head * params.features + i, feature(token, head, i));
  }
}
void turn_heads(uint token, uint group, uint pair, uint64_t row) {
  const int position = position_of(token);
  report_index(!has_turn(position));
  const vec2 sin_cos = has_turn(position) ? sin_cos_at(position, pair) : vec2(0.0);
  const uvec2 at = features_of(pair);
  [[dont_unroll]] for (uint head = group; head < params.heads; head += params.head_groups) {
    const vec2 both = vec2(feature(token, head, at.x), feature(token, head, at.y));
    const vec2 result = turned(both, sin_cos);
    store_float(kTo, row, head * params.features + at.x, result.x);
    store_float(kTo, row, head * params.features + at.y, result.y);
  }
}
void unit(uint token, uint number) {
  const uint group = number / units_of_head(), i = number % units_of_head();
  const uint64_t row = target_row(token);
  if (row == 0ul) return;
  if (i < kPairs) turn_heads(token, group, i, row);
  else pass_heads(token, group, i + kPairs, row);
}
#endif

void main() {
  const uint64_t number =
      uint64_t(group_index()) * kGroupSize + gl_LocalInvocationIndex;
  const uint tokens = live_rows(operand(kExtent), params.tokens);
  const uint units = units_per_token();
  if (group_index() < group_count() && number < uint64_t(tokens) * units) {
    unit(uint(number) / units, uint(number) % units);
  }
}
