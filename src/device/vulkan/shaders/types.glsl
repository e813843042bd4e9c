// Elements of any dtype. Include after kernel.glsl. Dtypes are heddle's enumerators (dtype.h), best
// given as specialisation constants, so that what is not meant costs nothing.
//
// With MINIMAL defined (devices without 8 and 16-bit storage) loads read whole words, whose other
// bytes lie in the same 4 bytes of memory; such devices store no narrow types.
#ifndef MINIMAL
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
TYPED_REFERENCE(U16s, uint16_t, 2)
TYPED_REFERENCE(I16s, int16_t, 2)
TYPED_REFERENCE(U8s, uint8_t, 1)
TYPED_REFERENCE(I8s, int8_t, 1)
#endif

const uint kBool = 0, kU8 = 1, kU16 = 2, kU32 = 3, kU64 = 4, kI8 = 5, kI16 = 6, kI32 = 7, kI64 = 8,
           kF16 = 9, kBf16 = 10, kF32 = 11, kF64 = 12, kComplex64 = 13, kQ4_0 = 14, kQ4_1 = 15,
           kQ5_0 = 16, kQ5_1 = 17, kQ8_0 = 18, kQ2_K = 19, kQ3_K = 20, kQ4_K = 21, kQ5_K = 22,
           kQ6_K = 23, kIq4_nl = 24, kIq4_xs = 25;

// ---- Integers narrower than a word, as words

uint load_u8(uint64_t address) {
#ifdef MINIMAL
  return bitfieldExtract(U32s(address & ~3ul).at[0], int(address & 3ul) * 8, 8);
#else
  return uint(U8s(address).at[0]);
#endif
}
int load_i8(uint64_t address) {
  return bitfieldExtract(int(load_u8(address)), 0, 8);
}
uint load_u16(uint64_t address) {  // 2-byte aligned
#ifdef MINIMAL
  return bitfieldExtract(U32s(address & ~3ul).at[0], int(address & 2ul) * 8, 16);
#else
  return uint(U16s(address).at[0]);
#endif
}
int load_i16(uint64_t address) {
  return bitfieldExtract(int(load_u16(address)), 0, 16);
}

// ---- Halves

float f16_to_float(uint bits) {
  return unpackHalf2x16(bits & 0xffffu).x;
}
float bf16_to_float(uint bits) {
  return uintBitsToFloat(bits << 16);
}

// To the nearest, ties to even: what packHalf2x16 does is the driver's choice.
uint float_to_f16(float value) {
  const uint bits = floatBitsToUint(value);
  const uint sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u) {  // 65536 and more, infinity, NaN
    return sign | (magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u);
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, in units of 2^-24
    if (magnitude < 0x33000000u) return sign;  // less than half a unit
    const uint shift = 126u - (magnitude >> 23), mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint half_unit = 1u << (shift - 1u), rest = mantissa & ((1u << shift) - 1u);
    const uint kept = mantissa >> shift;
    return sign | (kept + uint(rest > half_unit || (rest == half_unit && (kept & 1u) == 1u)));
  }
  const uint rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | min((rounded - 0x38000000u) >> 13, 0x7c00u);
}
uint float_to_bf16(float value) {
  const uint bits = floatBitsToUint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// ---- Real numbers as floats: element `i` of an array of f32, f16 or bf16

float load_float(uint dtype, uint64_t base, uint i) {
  if (dtype == kF32) return F32s(base).at[i];
  const uint bits = load_u16(base + 2ul * i);
  return dtype == kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}
void store_float(uint dtype, uint64_t base, uint i, float value) {
  if (dtype == kF32) F32s(base).at[i] = value;
#ifndef MINIMAL
  else U16s(base).at[i] = uint16_t(dtype == kF16 ? float_to_f16(value) : float_to_bf16(value));
#endif
}

// ---- Stores of narrow items, which devices without 8 and 16-bit storage lack

void store_narrow(uint bytes, uint64_t address, uint value) {
#ifndef MINIMAL
  if (bytes == 2u) U16s(address).at[0] = uint16_t(value);
  else U8s(address).at[0] = uint8_t(value & 0xffu);
#endif
}
void store_bool(uint64_t address, bool value) {
  store_narrow(1u, address, uint(value));
}
/// Moves an item of 1, 2, 4 or 8 bytes, aligned to its size.
void copy_item(uint bytes, uint64_t from, uint64_t to) {
  if (bytes == 4u) U32s(to).at[0] = U32s(from).at[0];
  else if (bytes == 8u) U32x2s(to).at[0] = U32x2s(from).at[0];
  else store_narrow(bytes, to, bytes == 2u ? load_u16(from) : load_u8(from));
}
