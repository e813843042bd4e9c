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

// Counted from the front, where negative indices count from the end; beyond every extent if there is
// no such element. In unsigned words: Mesa 22.3 takes int64_t(x) < 0 for false.
uint64_t from_front(int index, uint extent) {
  if (index >= 0) return uint64_t(uint(index));
  const uint back = 0u - uint(index);
  return back <= extent ? uint64_t(extent - back) : 0xfffffffffffffffful;
}

// An index of any integer dtype into an axis of `extent`.
uint64_t load_index(uint type, uint64_t address, uint extent) {
  if (type == kU8) return load_u8(address);
  if (type == kU16) return load_u16(address);
  if (type == kU32) return U32s(address).at[0];
  if (type == kI8) return from_front(load_i8(address), extent);
  if (type == kI16) return from_front(load_i16(address), extent);
  if (type == kI32) return from_front(I32s(address).at[0], extent);
  const uint64_t index = U64s(address).at[0];
  const uint64_t back = 0ul - index;
  return type == kI64 && back <= uint64_t(extent) && back > 0ul ? uint64_t(extent) - back : index;
}
