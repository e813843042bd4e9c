// GGUF's block formats (src/tensor/blocks.h has the layouts), eight elements at a time. Include
// after types.glsl.
//
// An octet is eight elements of a block that are decoded together: two runs of four neighbours,
// chosen by type so that they lie in as few words as can be. A block has block_elements / 8 of
// them; f32, f16 and bf16 are taken in blocks of 32, whose octets are eight neighbours. Four octets
// in a row make a unit of 32 elements.
//
// Blocks are read through whole words of 32 bits, as they lie in memory: a block's size need not be
// a multiple of four bytes. Every value is the format's formula rounded once, as on the CPU:
// products of an f16 scale, a sub-block's scale and a code are exact or the last step, so it does
// not matter whether a compiler fuses what follows.

const uint kUnitOctets = 4, kUnitElements = 32;

bool is_plain(uint dtype) {
  return dtype == kF32 || dtype == kF16 || dtype == kBf16;
}
bool is_super_block(uint dtype) {
  return (dtype >= kQ2_K && dtype <= kQ6_K) || dtype == kIq4_xs;
}
uint block_elements(uint dtype) {
  return is_super_block(dtype) ? 256u : 32u;
}
uint block_bytes(uint dtype) {
  switch (dtype) {
    case kF32: return 128u;
    case kF16: case kBf16: return 64u;
    case kQ4_0: case kIq4_nl: return 18u;
    case kQ4_1: return 20u;
    case kQ5_0: return 22u;
    case kQ5_1: return 24u;
    case kQ8_0: return 34u;
    case kQ2_K: return 84u;
    case kQ3_K: return 110u;
    case kQ4_K: return 144u;
    case kQ5_K: return 176u;
    case kQ6_K: return 210u;
    default: return 136u;  // iq4_xs
  }
}

// The first element of each of the two runs of octet `o`, within the block.
uvec2 octet_runs(uint dtype, uint o) {
  const uint unit = o / kUnitOctets, j = o % kUnitOctets;
  if (is_plain(dtype) || dtype == kQ8_0) return uvec2(8u * o, 8u * o + 4u);
  if (dtype == kQ4_K || dtype == kQ5_K) {  // both nibbles of bytes 16 unit + 4j
    const uint first = 64u * (unit / 2u) + 16u * (unit % 2u) + 4u * j;
    return uvec2(first, first + 32u);
  }
  if (dtype == kQ2_K || dtype == kQ3_K) {  // two quarters of four bytes
    const uint first = 128u * (unit / 4u) + 8u * (unit % 4u) + 4u * (j / 2u) + 64u * (j % 2u);
    return uvec2(first, first + 32u);
  }
  if (dtype == kQ6_K) {  // quarters k and k + 2, whose low bits share bytes
    const uint first = 128u * (unit / 4u) + 8u * (unit % 4u) + 4u * (j / 2u) + 32u * (j % 2u);
    return uvec2(first, first + 64u);
  }
  return uvec2(32u * unit + 4u * j, 32u * unit + 16u + 4u * j);
}

// ---- Words

// Four bytes at an even address.
uint load_word(uint64_t address) {
  const uint64_t at = address & ~3ul;
  const uint low = U32s(at).at[0];
  if ((address & 2ul) == 0ul) return low;
  return (low >> 16) | (U32s(at + 4ul).at[0] << 16);
}

uint byte_of(uint word, uint i) {
  return (word >> (8u * i)) & 255u;
}
uint byte_of(uvec4 words, uint i) {
  return byte_of(words[i / 4u], i % 4u);
}
vec4 bytes_to_floats(uint word) {
  return vec4(word & 255u, (word >> 8) & 255u, (word >> 16) & 255u, word >> 24);
}
vec4 signed_bytes_to_floats(uint word) {
  return vec4(int(word << 24) >> 24, int(word << 16) >> 24, int(word << 8) >> 24, int(word) >> 24);
}
uint low_nibbles(uint word) {
  return word & 0x0f0f0f0fu;
}
uint high_nibbles(uint word) {
  return (word >> 4) & 0x0f0f0f0fu;
}
// Bit `first` + i of `bits`, for i in 0..3, as bit 4 of byte i.
uint fifth_bits(uint bits, uint first) {
  const uint four = bits >> first;
  return ((four & 1u) << 4) | ((four & 2u) << 11) | ((four & 4u) << 18) | ((four & 8u) << 25);
}

// The value of a code of iq4_nl and iq4_xs: byte `code` of the codebook, chosen without a table in
// memory, which devices read lane by lane.
float iq4_value(uint code) {
  const uint upper = (code & 4u) != 0u ? 0x71594535u : 0x26190d01u;   // 53 69 89 113, 1 13 25 38
  const uint lower = (code & 4u) != 0u ? 0xf6eaddcfu : 0xbfad9881u;   // -49 .. -10, -127 .. -65
  const uint four = (code & 8u) != 0u ? upper : lower;
  return float(bitfieldExtract(int(four), int(8u * (code & 3u)), 8));
}
vec4 iq4_values(uint codes) {
  return vec4(iq4_value(codes & 15u), iq4_value((codes >> 8) & 15u), iq4_value((codes >> 16) & 15u),
              iq4_value(codes >> 24));
}

// ---- What a block's octets share

struct BlockHead {
  float d, m;    // the block's scale, and its minimum or the minima's scale
  uint high;     // q5_0 and q5_1: the fifth bits
  uvec4 scales;  // of sub-blocks, a byte each: q4_K, q5_K: scales 0..7, minima 0..7; q2_K, q3_K,
                 // q6_K: as stored or without bias; iq4_xs: low nibbles, then pairs of high bits
};

float low_half(uint word) {
  return f16_to_float(word & 0xffffu);
}
float high_half(uint word) {
  return f16_to_float(word >> 16);
}

// A block's scale, of which many are subnormal: unpackHalf2x16 may make those zero.
float scale_half(uint bits) {
  const uint magnitude = bits & 0x7fffu;
  const float kUnit = 5.9604644775390625e-8;  // 2^-24
  const float scale = magnitude < 0x400u ? float(magnitude) * kUnit : f16_to_float(magnitude);
  return (bits & 0x8000u) != 0u ? -scale : scale;
}

// The six-bit scales and minima of q4_K and q5_K: bytes 0..3 and 4..7 hold the first four; the
// last four have their low bits in bytes 8..11 and their high ones in what the first leave over.
uvec4 k_scales(uvec3 words) {
  return uvec4(words.x & 0x3f3f3f3fu, low_nibbles(words.z) | ((words.x >> 2) & 0x30303030u),
               words.y & 0x3f3f3f3fu, high_nibbles(words.z) | ((words.y >> 2) & 0x30303030u));
}
// q3_K's: low four bits in nibbles of bytes 0..7, high two in bytes 8..11.
uvec4 q3k_scales(uvec3 words) {
  const uvec4 low = uvec4(low_nibbles(words.x), low_nibbles(words.y), high_nibbles(words.x),
                          high_nibbles(words.y));
  return low | (((uvec4(words.z) >> uvec4(0, 2, 4, 6)) & 0x03030303u) << 4);
}

// Where a block holds its f16 scale, which has another half or a word's high bits above it in some
// types, and the words of its other scales and fifth bits; and how many of these there are.
uint scale_offset(uint dtype) {
  return dtype == kQ2_K ? 80u : dtype == kQ3_K ? 108u : dtype == kQ6_K ? 208u : 0u;
}
uint head_words_offset(uint dtype) {
  if (dtype == kQ2_K) return 0u;
  return dtype == kQ5_0 ? 2u : dtype == kQ3_K ? 96u : dtype == kQ6_K ? 192u : 4u;
}
uint head_words(uint dtype) {
  if (dtype == kQ2_K || dtype == kQ6_K) return 4u;
  if (dtype == kQ3_K || dtype == kQ4_K || dtype == kQ5_K) return 3u;
  return dtype == kQ5_0 || dtype == kQ5_1 || dtype == kIq4_xs ? 1u : 0u;
}

// From the word at scale_offset, of which q3_K and q6_K have the low half only, and the others.
BlockHead make_head(uint dtype, uint scale, uvec4 words) {
  BlockHead head = BlockHead(scale_half(scale), 0.0, words.x, words);
  if (dtype == kQ4_1 || dtype == kQ5_1 || dtype == kQ2_K || dtype == kQ4_K || dtype == kQ5_K) {
    head.m = scale_half(scale >> 16);
  }
  if (dtype == kQ3_K) head.scales = q3k_scales(words.xyz);
  if (dtype == kQ4_K || dtype == kQ5_K) head.scales = k_scales(words.xyz);
  if (dtype == kIq4_xs) head.scales.y = scale >> 16;
  return head;
}

BlockHead load_head(uint dtype, uint64_t block) {
  const uint64_t scale_at = block + scale_offset(dtype);
  const uint scale = dtype == kQ3_K || dtype == kQ6_K ? load_u16(scale_at) : load_word(scale_at);
  uvec4 words = uvec4(0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (i < head_words(dtype)) words[i] = load_word(block + head_words_offset(dtype) + 4u * i);
  }
  return make_head(dtype, scale, words);
}

// ---- Octets

// The words that hold an octet's codes: the low bits, then the high bits or the second run.
uvec2 octet_code_offsets(uint dtype, uint o) {
  const uint unit = o / kUnitOctets, j = o % kUnitOctets;
  const uint l = 8u * (unit % 4u) + 4u * (j / 2u), half_block = unit / 4u;  // of q2_K, q3_K, q6_K
  switch (dtype) {
    case kQ4_1: return uvec2(4u + 4u * j, 0);
    case kQ5_0: return uvec2(6u + 4u * j, 0);
    case kQ5_1: return uvec2(8u + 4u * j, 0);
    case kQ8_0: return uvec2(2u + 8u * j, 6u + 8u * j);
    case kQ2_K: return uvec2(16u + 32u * half_block + l, 0);
    case kQ3_K: return uvec2(32u + 32u * half_block + l, l);
    case kQ4_K: return uvec2(16u + 4u * o, 0);
    case kQ5_K: return uvec2(48u + 4u * o, 16u + 16u * (unit % 2u) + 4u * j);
    case kQ6_K: return uvec2(64u * half_block + 32u * (j % 2u) + l, 128u + 32u * half_block + l);
    case kIq4_xs: return uvec2(8u + 4u * o, 0);
    default: return uvec2(2u + 4u * j, 0);  // q4_0, iq4_nl
  }
}
bool has_second_word(uint dtype) {
  return dtype == kQ8_0 || dtype == kQ3_K || dtype == kQ5_K || dtype == kQ6_K;
}
uvec2 load_codes(uint dtype, uint64_t block, uint o) {
  const uvec2 offsets = octet_code_offsets(dtype, o);
  return uvec2(load_word(block + offsets.x),
               has_second_word(dtype) ? load_word(block + offsets.y) : 0u);
}

struct Octet {
  vec4 a, b;  // its two runs
};

Octet decode_small(uint dtype, BlockHead head, uvec2 codes, uint j) {
  if (dtype == kQ8_0) {
    return Octet(head.d * signed_bytes_to_floats(codes.x),
                 head.d * signed_bytes_to_floats(codes.y));
  }
  if (dtype == kIq4_nl) {
    return Octet(head.d * iq4_values(low_nibbles(codes.x)),
                 head.d * iq4_values(high_nibbles(codes.x)));
  }
  uint a = low_nibbles(codes.x), b = high_nibbles(codes.x);
  if (dtype == kQ5_0 || dtype == kQ5_1) {
    a |= fifth_bits(head.high, 4u * j);
    b |= fifth_bits(head.high, 4u * j + 16u);
  }
  if (dtype == kQ4_1 || dtype == kQ5_1) {
    return Octet(head.d * bytes_to_floats(a) + head.m, head.d * bytes_to_floats(b) + head.m);
  }
  const float bias = dtype == kQ4_0 ? 8.0 : 16.0;
  return Octet(head.d * (bytes_to_floats(a) - bias), head.d * (bytes_to_floats(b) - bias));
}

// q4_K, q5_K and iq4_xs: runs a and b are of sub-blocks `s` and `t` of 32.
Octet decode_k_nibbles(uint dtype, BlockHead head, uvec2 codes, uint unit) {
  if (dtype == kIq4_xs) {
    const uint scale = ((head.scales.x >> (4u * unit)) & 15u) |
                       (((head.scales.y >> (2u * unit)) & 3u) << 4);
    const float d = head.d * (float(scale) - 32.0);
    return Octet(d * iq4_values(low_nibbles(codes.x)), d * iq4_values(high_nibbles(codes.x)));
  }
  const uint s = 2u * (unit / 2u);
  uint a = low_nibbles(codes.x), b = high_nibbles(codes.x);
  if (dtype == kQ5_K) {
    const uint bits = codes.y >> s;
    a |= (bits & 0x01010101u) << 4;
    b |= (bits & 0x02020202u) << 3;
  }
  const uvec2 scales = uvec2(byte_of(head.scales.xy[s / 4u], s % 4u),
                             byte_of(head.scales.xy[s / 4u], s % 4u + 1u));
  const uvec2 minima = uvec2(byte_of(head.scales.zw[s / 4u], s % 4u),
                             byte_of(head.scales.zw[s / 4u], s % 4u + 1u));
  const vec2 scale = head.d * vec2(scales), least = head.m * vec2(minima);
  return Octet(scale.x * bytes_to_floats(a) - least.x, scale.y * bytes_to_floats(b) - least.y);
}

// q2_K, q3_K and q6_K: quarters of half a block, in sub-blocks of 16.
Octet decode_k_quarters(uint dtype, BlockHead head, uvec2 codes, uint o) {
  const uint unit = o / kUnitOctets, j = o % kUnitOctets, half_block = unit / 4u;
  // Sub-block 8 half_block + 2 quarter + (l / 16), where (l / 16) is that of the unit.
  const uint first = 8u * half_block + (unit % 4u) / 2u;
  if (dtype == kQ6_K) {
    const uint quarter = j % 2u;
    const uint high = codes.y >> (2u * quarter);
    const uint a = low_nibbles(codes.x) | ((high & 0x03030303u) << 4);
    const uint b = high_nibbles(codes.x) | (high & 0x30303030u);
    const int scale_a = bitfieldExtract(int(byte_of(head.scales, first + 2u * quarter)), 0, 8);
    const int scale_b = bitfieldExtract(int(byte_of(head.scales, first + 2u * quarter + 4u)), 0, 8);
    return Octet((head.d * float(scale_a)) * (bytes_to_floats(a) - 32.0),
                 (head.d * float(scale_b)) * (bytes_to_floats(b) - 32.0));
  }
  const uint quarter = 2u * (j % 2u);
  const uint pairs = codes.x >> (2u * quarter);
  const vec4 low_a = bytes_to_floats(pairs & 0x03030303u);
  const vec4 low_b = bytes_to_floats((pairs >> 2) & 0x03030303u);
  const uint scale_a = byte_of(head.scales, first + 2u * quarter);
  const uint scale_b = byte_of(head.scales, first + 2u * quarter + 2u);
  if (dtype == kQ2_K) {
    return Octet((head.d * float(scale_a & 15u)) * low_a - head.m * float(scale_a >> 4),
                 (head.d * float(scale_b & 15u)) * low_b - head.m * float(scale_b >> 4));
  }
  // q3_K: without its high bit a code is four less.
  const uint high = codes.y >> (4u * half_block + quarter);
  const vec4 high_a = bytes_to_floats((high & 0x01010101u) << 2);
  const vec4 high_b = bytes_to_floats((high & 0x02020202u) << 1);
  return Octet((head.d * (float(scale_a) - 32.0)) * (low_a + high_a - 4.0),
               (head.d * (float(scale_b) - 32.0)) * (low_b + high_b - 4.0));
}

Octet decode_octet(uint dtype, BlockHead head, uvec2 codes, uint o) {
  if (!is_super_block(dtype)) return decode_small(dtype, head, codes, o);
  if (dtype == kQ4_K || dtype == kQ5_K || dtype == kIq4_xs) {
    return decode_k_nibbles(dtype, head, codes, o / kUnitOctets);
  }
  return decode_k_quarters(dtype, head, codes, o);
}

// Eight neighbours of a plain type at `at`, of which `count` there are: zeros beyond. `aligned`:
// all are there, at a multiple of 16 bytes.
Octet load_plain_octet(uint dtype, uint64_t at, int count, bool aligned) {
  if (aligned && dtype == kF32) return Octet(F32x4s(at).at[0], F32x4s(at).at[1]);
  if (aligned) {
    const uvec4 words = U32x4s(at).at[0];
    const uvec4 low = dtype == kF16 ? words & 0xffffu : words << 16, high = words & 0xffff0000u;
    if (dtype == kBf16) {
      const vec4 even = uintBitsToFloat(low), odd = uintBitsToFloat(high);
      return Octet(vec4(even.x, odd.x, even.y, odd.y), vec4(even.z, odd.z, even.w, odd.w));
    }
    return Octet(vec4(f16_to_float(low.x), high_half(words.x), f16_to_float(low.y),
                      high_half(words.y)),
                 vec4(f16_to_float(low.z), high_half(words.z), f16_to_float(low.w),
                      high_half(words.w)));
  }
  float values[8];
  [[unroll]] for (int i = 0; i < 8; ++i) {
    values[i] = 0.0;
    if (i < count) values[i] = load_float(dtype, at, uint(i));
  }
  return Octet(vec4(values[0], values[1], values[2], values[3]),
               vec4(values[4], values[5], values[6], values[7]));
}

// Octet `o` of the block at `block`, of a block type.
Octet load_octet(uint dtype, uint64_t block, uint o) {
  return decode_octet(dtype, load_head(dtype, block), load_codes(dtype, block, o), o);
}
