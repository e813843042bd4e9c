// The order of elements of any real dtype as one of integers: NaN is beyond all numbers, and -0
// equals 0. Include after lines.glsl.
const uint64_t kNanOrder = ~0ul;

// Of floats of `bits` bits, of which those of infinity are given.
uint64_t order_of_float(uint64_t value, uint bits, uint64_t infinity) {
  const uint64_t sign = 1ul << (bits - 1u), magnitude = value & (sign - 1ul);
  if (magnitude > infinity) return kNanOrder;
  if (magnitude == 0ul) return sign;
  return (value & sign) != 0ul ? sign - magnitude : sign + magnitude;
}

uint64_t order_of(uint type, uint64_t address) {
  const uint64_t kSigned32 = 1ul << 31;
  if (type == kF32) return order_of_float(uint64_t(U32s(address).at[0]), 32u, 0x7f800000ul);
  if (type == kF16) return order_of_float(uint64_t(load_u16(address)), 16u, 0x7c00ul);
  if (type == kBf16) return order_of_float(uint64_t(load_u16(address)), 16u, 0x7f80ul);
  if (type == kF64) return order_of_float(U64s(address).at[0], 64u, 0x7ff0000000000000ul);
  if (type == kBool || type == kU8) return uint64_t(load_u8(address));
  if (type == kU16) return uint64_t(load_u16(address));
  if (type == kU32) return uint64_t(U32s(address).at[0]);
  if (type == kI8) return uint64_t(int64_t(load_i8(address)) + int64_t(kSigned32));
  if (type == kI16) return uint64_t(int64_t(load_i16(address)) + int64_t(kSigned32));
  if (type == kI32) return uint64_t(int64_t(I32s(address).at[0]) + int64_t(kSigned32));
  if (type == kI64) return U64s(address).at[0] ^ (1ul << 63);
  return U64s(address).at[0];
}

// An element of a line, and which of two comes first: the larger, of equals the one before.
struct Ranked {
  uint64_t order;
  uint index;
};
const uint kNoIndex = 0xffffffffu;
bool comes_first(Ranked a, Ranked b) {
  return a.order > b.order || (a.order == b.order && a.index < b.index);
}
