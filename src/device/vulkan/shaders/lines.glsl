// Parameters of ops along an axis. A line is what lies along it with all other indices fixed; `inner`
// lines lie side by side. Include in place of kernel.glsl.
struct Params {
  uint rows, per_row;  // of axis 0, which an extent may cut; lines or elements in each
  uint extent, inner;  // elements of a line of x, and from one of them to the next
  uint more;           // the op's own number
};
#include "kernel.glsl"
#include "types.glsl"

// Lines or elements that count.
uint live_count(uint extent_operand) {
  return live_rows(operand(extent_operand), params.rows) * params.per_row;
}

// How many elements from the operand's start element `i` of a line is, of lines of `length`.
uint64_t element_of(uint line, uint64_t i, uint length) {
  const uint outer = line / params.inner;
  return (uint64_t(outer) * length + i) * params.inner + (line - outer * params.inner);
}

uint bytes_of(uint type) {
  if (type == kBool || type == kU8 || type == kI8) return 1u;
  if (type == kU16 || type == kI16 || type == kF16 || type == kBf16) return 2u;
  return type == kU32 || type == kI32 || type == kF32 ? 4u : 8u;
}

// An index of any integer dtype; what is negative is beyond every extent.
uint64_t load_index(uint type, uint64_t address) {
  if (type == kU8) return load_u8(address);
  if (type == kU16) return load_u16(address);
  if (type == kU32) return U32s(address).at[0];
  if (type == kI8) return uint64_t(int64_t(load_i8(address)));
  if (type == kI16) return uint64_t(int64_t(load_i16(address)));
  if (type == kI32) return uint64_t(int64_t(I32s(address).at[0]));
  return U64s(address).at[0];
}
