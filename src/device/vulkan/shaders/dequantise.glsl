// One element of a block of GGUF's formats, whose layouts src/tensor/blocks.h has. Include after
// types.glsl. Products of an f16 scale, a sub-block's scale and a code are exact, or are what is
// rounded last, as on the CPU.

uint nibble(uint byte, bool high) {
  return high ? byte >> 4 : byte & 15u;
}
float f16_at(uint64_t address) {
  return f16_to_float(load_u16(address));
}
/// In the formats of 32 elements byte j holds elements j and j + 16.
uint small_code(uint64_t qs, uint i) {
  return nibble(load_u8(qs + (i & 15u)), i >= 16u);
}
uint bit_of(uint64_t bytes, uint byte, uint bit) {
  return (load_u8(bytes + byte) >> bit) & 1u;
}
/// The two-bit code of element i in q2_K's and q3_K's order.
uint two_bit_code(uint64_t qs, uint i) {
  return (load_u8(qs + 32u * (i / 128u) + i % 32u) >> (2u * (i % 128u / 32u))) & 3u;
}
/// Scale and min of sub-block s of q4_K and q5_K.
uvec2 k_scale_min(uint64_t scales, uint s) {
  if (s < 4u) return uvec2(load_u8(scales + s), load_u8(scales + s + 4u)) & 63u;
  const uint low = load_u8(scales + s + 4u);
  return uvec2((low & 15u) | (load_u8(scales + s - 4u) >> 6) << 4,
               (low >> 4) | (load_u8(scales + s) >> 6) << 4);
}
int q3k_scale(uint64_t scales, uint s) {
  const uint low = nibble(load_u8(scales + s % 8u), s >= 8u);
  const uint high = (load_u8(scales + 8u + s % 4u) >> (2u * (s / 4u))) & 3u;
  return int(low | high << 4) - 32;
}
int iq4_value(uint code) {  // four of the codebook's values a word
  const uint low = code < 4u ? 0xbfad9881u : 0xf6eaddcfu;
  const uint high = code < 12u ? 0x26190d01u : 0x71594535u;
  return bitfieldExtract(int(code < 8u ? low : high), 8 * int(code & 3u), 8);
}

float dequantise_small(uint dtype, uint64_t block, uint i) {
  const float d = f16_at(block);
  switch (dtype) {
    case kQ4_0: return d * float(int(small_code(block + 2u, i)) - 8);
    case kQ4_1: return d * float(small_code(block + 4u, i)) + f16_at(block + 2u);
    case kQ5_0: {
      const uint code = small_code(block + 6u, i) | bit_of(block + 2u, i / 8u, i % 8u) << 4;
      return d * float(int(code) - 16);
    }
    case kQ5_1: {
      const uint code = small_code(block + 8u, i) | bit_of(block + 4u, i / 8u, i % 8u) << 4;
      return d * float(code) + f16_at(block + 2u);
    }
    case kIq4_nl: return d * float(iq4_value(small_code(block + 2u, i)));
  }
  return d * float(load_i8(block + 2u + i));  // q8_0
}

float dequantise_q4_or_5_k(uint64_t block, uint i, bool fifth_bit) {
  const uint s = i / 32u, l = i % 32u;
  const uvec2 scale_min = k_scale_min(block + 4u, s);
  const uint64_t qs = block + (fifth_bit ? 48u : 16u);
  uint code = nibble(load_u8(qs + 32u * (s / 2u) + l), (s & 1u) == 1u);
  if (fifth_bit) code |= bit_of(block + 16u, l, s) << 4;
  const float scale = f16_at(block) * float(scale_min.x);
  return scale * float(code) - f16_at(block + 2u) * float(scale_min.y);
}
float dequantise_q6_k(uint64_t block, uint i) {
  const uint hemi = i / 128u, quarter = i % 128u / 32u, l = i % 32u;
  const uint low = nibble(load_u8(block + 64u * hemi + 32u * (quarter & 1u) + l), quarter >= 2u);
  const uint high = (load_u8(block + 128u + 32u * hemi + l) >> (2u * quarter)) & 3u;
  const float scale = f16_at(block + 208u) * float(load_i8(block + 192u + i / 16u));
  return scale * float(int(low | high << 4) - 32);
}

/// Element i of the block.
float dequantise(uint dtype, uint64_t block, uint i) {
  switch (dtype) {
    case kQ2_K: {
      const uint scales = load_u8(block + i / 16u);
      const float scale = f16_at(block + 80u) * float(scales & 15u);
      return scale * float(two_bit_code(block + 16u, i)) - f16_at(block + 82u) * float(scales >> 4);
    }
    case kQ3_K: {
      const uint code = two_bit_code(block + 32u, i) | bit_of(block, i % 32u, i / 32u) << 2;
      return f16_at(block + 108u) * float(q3k_scale(block + 96u, i / 16u)) * float(int(code) - 4);
    }
    case kQ4_K: return dequantise_q4_or_5_k(block, i, false);
    case kQ5_K: return dequantise_q4_or_5_k(block, i, true);
    case kQ6_K: return dequantise_q6_k(block, i);
    case kIq4_xs: {
      const uint s = i / 32u;
      const uint low = nibble(load_u8(block + 4u + s / 2u), (s & 1u) == 1u);
      const uint high = (load_u16(block + 2u) >> (2u * s)) & 3u;
      const float scale = f16_at(block) * float(int(low | high << 4) - 32);
      return scale * float(iq4_value(small_code(block + 8u + 16u * s, i % 32u)));
    }
  }
  return dequantise_small(dtype, block, i);
}
