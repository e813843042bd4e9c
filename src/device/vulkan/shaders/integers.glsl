// Integers and bools of any width as 64 bits: sign or zero extended, wrapped as they are stored.
// Include after types.glsl.

uint integer_bytes(uint dtype) {
  return dtype == kU64 || dtype == kI64 ? 8u
         : dtype == kU32 || dtype == kI32 ? 4u
         : dtype == kU16 || dtype == kI16 ? 2u
                                          : 1u;
}

/// x with its sign, put together of words: Mesa 22.3 takes int64_t(x) < 0 for false.
int64_t widened(int x) {
  return int64_t(packUint2x32(uvec2(uint(x), x < 0 ? 0xffffffffu : 0u)));
}
int64_t load_integer(uint dtype, uint64_t address) {
  if (dtype == kI32) return widened(I32s(address).at[0]);
  if (dtype == kU32) return int64_t(U32s(address).at[0]);
  if (dtype == kU64 || dtype == kI64) return int64_t(U64s(address).at[0]);
  if (dtype == kI16) return widened(load_i16(address));
  if (dtype == kU16) return int64_t(load_u16(address));
  if (dtype == kI8) return widened(load_i8(address));
  const uint byte = load_u8(address);
  return int64_t(dtype == kBool ? uint(byte != 0u) : byte);
}
void store_integer(uint dtype, uint64_t address, int64_t value) {
  const uint bytes = integer_bytes(dtype);
  if (bytes == 8u) {
    U64s(address).at[0] = uint64_t(value);
  } else if (bytes == 4u) {
    U32s(address).at[0] = uint(uint64_t(value) & 0xfffffffful);
  } else {
    store_narrow(bytes, address, uint(uint64_t(value) & 0xfffful));
  }
}
