#version 460
// Linear, a lane for each column: for devices where tiles in shared memory do not pay, above all
// processors.
//
// A lane reads its columns' weights from end to end. All lanes need the same activations: eight of
// them load an octet's, one each, and pass them on. What counts on a processor is the number of
// loads, which are made lane by lane, and that there are no branches, of which both sides are
// carried out: so weights come in words of 64 bits that are shifted into place.
//
// There are three variants, to keep each small, as drivers take their time over it: for weights of
// plain types (PLAIN), in blocks of 32 (SMALL) and in blocks of 256 (SUPER).
#include "linear.glsl"
#include "share.glsl"

layout(constant_id = 2) const uint kRows = 1;     // that a lane computes at once
layout(constant_id = 3) const uint kColumns = 1;  // kGroupSize apart
layout(constant_id = 4) const bool kWhole = true;  // the depth is a multiple of kUnitElements

// ---- Weights

#if defined(PLAIN)
const uint kMostWords = 16u;
#elif defined(SMALL)
const uint kMostWords = 5u;
#else
const uint kMostWords = 3u;
#endif
struct Words {  // of 64 bits
  uint64_t at[kMostWords];
};

// The `bytes` bytes from `address` on, which is even, of which `count` may be read; no word is read
// that holds none of those.
Words load_bytes(uint64_t address, uint bytes, uint count) {
  const uint64_t first = address & ~7ul, last = (address + uint64_t(min(count, bytes) - 1u)) & ~7ul;
  const uint shift = uint(address & 7ul) * 8u;
  Words words;
  uint64_t word = U64s(first).at[0];
  [[unroll]] for (uint i = 0u; i < kMostWords; ++i) {
    if (8u * i < bytes) {
      uint64_t next = word;
      if (8u * i + 2u < bytes) next = U64s(min(first + 8ul * (i + 1u), last)).at[0];
      words.at[i] = (word >> shift) | ((next << 1) << (63u - shift));
      word = next;
    }
  }
  return words;
}

// The four bytes from byte `i` on.
uint word_at(Words words, uint i) {
  const uint shift = i % 8u * 8u;
  uint64_t bits = words.at[i / 8u] >> shift;
  if (shift > 32u && i / 8u + 1u < kMostWords) bits |= words.at[i / 8u + 1u] << (64u - shift);
  return unpackUint2x32(bits).x;
}

struct Unit {
  Octet octets[kUnitOctets];
};

#ifdef PLAIN
// `count` of its elements are there.
Unit load_plain_unit(uint64_t at, uint count) {
  const uint item = kType == kF32 ? 4u : 2u;
  const uint bytes = kUnitElements * item;
  const Words words = load_bytes(at, bytes, kWhole ? bytes : count * item);
  Unit unit;
  [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
    float values[8];
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      const uint k = 8u * j + i;
      const uvec2 pair = unpackUint2x32(words.at[k * item / 8u]);
      if (kType == kF32) values[i] = uintBitsToFloat(pair[k % 2u]);
      else if (kType == kBf16) {
        const uint word = pair[k / 2u % 2u];
        values[i] = uintBitsToFloat(k % 2u == 0u ? word << 16 : word & 0xffff0000u);
      } else {
        values[i] = k % 2u == 0u ? low_half(pair[k / 2u % 2u]) : high_half(pair[k / 2u % 2u]);
      }
      if (!kWhole) values[i] = k < count ? values[i] : 0.0;
    }
    unit.octets[j] = Octet(vec4(values[0], values[1], values[2], values[3]),
                           vec4(values[4], values[5], values[6], values[7]));
  }
  return unit;
}

#endif

#ifdef SMALL
Unit load_small_block(uint64_t block) {
  const Words words = load_bytes(block, block_bytes(kType), block_bytes(kType));
  uvec4 others = uvec4(0);
  if (head_words(kType) > 0u) others.x = word_at(words, head_words_offset(kType));
  const BlockHead head = make_head(kType, word_at(words, 0u), others);
  Unit unit;
  [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
    const uvec2 offsets = octet_code_offsets(kType, j);
    uvec2 codes = uvec2(word_at(words, offsets.x), 0u);
    if (has_second_word(kType)) codes.y = word_at(words, offsets.y);
    unit.octets[j] = decode_small(kType, head, codes, j);
  }
  return unit;
}
#endif

#ifdef SUPER
BlockHead load_super_head(uint64_t block) {
  const uint first = head_words_offset(kType), scale = scale_offset(kType);
  const uint bytes = kType == kQ3_K ? 14u : kType == kQ6_K ? 18u : kType == kIq4_xs ? 8u : 16u;
  const Words words = load_bytes(block + min(first, scale), bytes, bytes);
  uvec4 others = uvec4(0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (i < head_words(kType)) others[i] = word_at(words, first - min(first, scale) + 4u * i);
  }
  return make_head(kType, word_at(words, scale - min(first, scale)), others);
}
BlockHead load_q2_k_head(uint64_t block) {  // whose scales and scale lie apart
  const Words scales = load_bytes(block, 16u, 16u), scale = load_bytes(block + 80ul, 4u, 4u);
  return make_head(kType, word_at(scale, 0u), uvec4(word_at(scales, 0u), word_at(scales, 4u),
                                                    word_at(scales, 8u), word_at(scales, 12u)));
}

// Unit `i` of a block of 256.
Unit load_super_unit(uint64_t block, BlockHead head, uint i) {
  const uint first = kUnitOctets * i;
  const uvec2 offsets = octet_code_offsets(kType, first);
  const bool nibbles = kType == kQ4_K || kType == kQ5_K || kType == kIq4_xs;
  const uint bytes = nibbles ? 16u : 8u;
  const Words low = load_bytes(block + offsets.x, bytes, bytes);
  Words second = low, high = low;
  // q6_K's quarters 1 and 3.
  if (kType == kQ6_K) second = load_bytes(block + offsets.x + 32u, bytes, bytes);
  if (has_second_word(kType)) high = load_bytes(block + offsets.y, bytes, bytes);
  Unit unit;
  [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
    const uint at = nibbles ? 4u * j : 4u * (j / 2u);
    const uint word = kType == kQ6_K && j % 2u == 1u ? word_at(second, at) : word_at(low, at);
    unit.octets[j] = decode_octet(kType, head, uvec2(word, word_at(high, at)), first + j);
  }
  return unit;
}

#endif

// ---- Activations

float load_term(uint64_t row, uint element) {
  if (kWhole) return F32s(row).at[element];
  const float term = F32s(row).at[min(element, params.depth - 1u)];
  return element < params.depth ? term : 0.0;
}

vec4 load_run_of_x(uint64_t row, uint element) {
  return vec4(load_term(row, element), load_term(row, element + 1u), load_term(row, element + 2u),
              load_term(row, element + 3u));
}

// Octet `o` of the block that begins at element `first`, the same in all lanes.
Octet load_shared_x(uint64_t row, uint first, uint o) {
  const uvec2 runs = first + octet_runs(kType, o);
  if (kCanShare) {
    const uint lane = sharing_lane();
    return share_octet(load_term(row, (lane < 4u ? runs.x : runs.y - 4u) + lane));
  }
  return Octet(load_run_of_x(row, runs.x), load_run_of_x(row, runs.y));
}

// ---- Products

const uint kSums = kRows * kColumns;

// Unit `unit` of the block that begins at element `first`.
void add_unit(inout float totals[kSums], uint64_t x[kRows], Unit w[kColumns], uint first,
              uint unit) {
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    float sums[kColumns];
    [[unroll]] for (uint j = 0u; j < kUnitOctets; ++j) {
      const Octet terms = load_shared_x(x[r], first, kUnitOctets * unit + j);
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        const float sum = octet_sum(w[c].octets[j], terms);
        sums[c] = j == 0u ? sum : sums[c] + sum;
      }
    }
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) totals[r * kColumns + c] += sums[c];
  }
}

#ifdef SUPER
void add_blocks(inout float totals[kSums], uint64_t x[kRows], uint64_t weights[kColumns]) {
  for (uint b = 0u; b < params.depth / 256u; ++b) {
    BlockHead heads[kColumns];
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const uint64_t block = weights[c] + uint64_t(b) * block_bytes(kType);
      if (kType == kQ2_K) heads[c] = load_q2_k_head(block);
      else heads[c] = load_super_head(block);
    }
    for (uint u = 0u; u < 8u; ++u) {
      Unit w[kColumns];
      [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
        w[c] = load_super_unit(weights[c] + uint64_t(b) * block_bytes(kType), heads[c], u);
      }
      add_unit(totals, x, w, 256u * b, u);
    }
  }
}
#else
// Blocks are units.
void add_blocks(inout float totals[kSums], uint64_t x[kRows], uint64_t weights[kColumns]) {
  const uint units = (params.depth + kUnitElements - 1u) / kUnitElements;
  for (uint u = 0u; u < units; ++u) {
    Unit w[kColumns];
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const uint64_t at = weights[c] + uint64_t(u) * block_bytes(kType);
#ifdef PLAIN
      w[c] = load_plain_unit(at, min(kUnitElements, params.depth - kUnitElements * u));
#else
      w[c] = load_small_block(at);
#endif
    }
    add_unit(totals, x, w, kUnitElements * u, 0u);
  }
}

#endif

void multiply(Place place) {
  const uint first_row = place.row_group * kRows;
  const uint first_column = place.column_group * (kGroupSize * kColumns) + gl_LocalInvocationIndex;
  uint64_t x[kRows], weights[kColumns];
  float totals[kSums];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) x[r] = x_row(place, first_row + r);
  [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
    weights[c] = weight_row(place, first_column + c * kGroupSize);
  }
  [[unroll]] for (uint i = 0u; i < kSums; ++i) totals[i] = 0.0;
  add_blocks(totals, x, weights);
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      store(place, first_row + r, first_column + c * kGroupSize, totals[r * kColumns + c]);
    }
  }
}

void main() {
  const uint group = group_index();
  const Place place = find_place(group);
  if (group < group_count() && place.row_group * kRows < place.rows) multiply(place);
}
