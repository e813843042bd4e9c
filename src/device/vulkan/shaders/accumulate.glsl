// What reduce combines, by the type it accumulates in: Accumulator, its identity, how two are
// combined, and how elements are loaded and results stored. Include after math.glsl, with kKind and
// kType (the operand's dtype) defined.
const uint kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProd = 4;  // ReduceKind

#if defined(ACCUMULATOR_F32)

#define Accumulator float
#define kAccumulatorBytes 4ul
#define Accumulators F32s
Accumulator identity() {
  if (kKind == kMax) return -infinity();
  if (kKind == kMin) return infinity();
  return kKind == kProd ? 1.0 : 0.0;
}
Accumulator combine(Accumulator a, Accumulator b) {
  if (kKind == kMax) return a > b || is_nan(a) ? a : b;
  if (kKind == kMin) return a < b || is_nan(a) ? a : b;
  return kKind == kProd ? a * b : a + b;
}
Accumulator load_element(uint64_t address) {
  return load_float(kType, address, 0u);
}
void store_result(uint64_t base, uint i, Accumulator value, uint count) {
  if (kKind == kMean) value /= float(count);
  store_float(kType, base, i, value);
}

// As the operand's type.
void store_element(uint64_t address, Accumulator value) {
  store_float(kType, address, 0u, value);
}

#elif defined(ACCUMULATOR_I32)

#define Accumulator uint
#define kAccumulatorBytes 4ul
#define Accumulators U32s
const bool kSigned = kType == kI8 || kType == kI16 || kType == kI32;
// The lowest and the highest value are the operand type's.
Accumulator identity() {
  uint highest = 0xffffffffu;
  if (kType == kBool) highest = 1u;
  if (kType == kU8 || kType == kI8) highest = 0xffu;
  if (kType == kU16 || kType == kI16) highest = 0xffffu;
  if (kSigned) highest >>= 1u;
  if (kKind == kMax) return kSigned ? ~highest : 0u;
  if (kKind == kMin) return highest;
  return kKind == kProd ? 1u : 0u;
}
Accumulator combine(Accumulator a, Accumulator b) {
  if (kKind == kMax) return kSigned ? uint(max(int(a), int(b))) : max(a, b);
  if (kKind == kMin) return kSigned ? uint(min(int(a), int(b))) : min(a, b);
  return kKind == kProd ? a * b : a + b;
}
Accumulator load_element(uint64_t address) {
  if (kType == kBool || kType == kU8) return load_u8(address);
  if (kType == kI8) return uint(load_i8(address));
  if (kType == kU16) return load_u16(address);
  if (kType == kI16) return uint(load_i16(address));
  return U32s(address).at[0];
}
// Sums and products of narrow types are i32; the largest and smallest are of their type.
void store_result(uint64_t base, uint i, Accumulator value, uint count) {
  const bool narrow = kKind == kMax || kKind == kMin;
  if (narrow && (kType == kBool || kType == kU8 || kType == kI8)) {
    store_narrow(1u, base + i, value);
  } else if (narrow && (kType == kU16 || kType == kI16)) {
    store_narrow(2u, base + 2ul * i, value);
  } else {
    U32s(base).at[i] = value;
  }
}

void store_element(uint64_t address, Accumulator value) {
  if (kType == kBool) {
    store_narrow(1u, address, uint(value != 0u));
  } else if (kType == kU8 || kType == kI8) {
    store_narrow(1u, address, value);
  } else if (kType == kU16 || kType == kI16) {
    store_narrow(2u, address, value);
  } else {
    U32s(address).at[0] = value;
  }
}

#elif defined(ACCUMULATOR_I64)

#define Accumulator uint64_t
#define kAccumulatorBytes 8ul
#define Accumulators U64s
const bool kSigned = kType == kI64;
Accumulator identity() {
  if (kKind == kMax) return kSigned ? 1ul << 63 : 0ul;
  if (kKind == kMin) return kSigned ? ~(1ul << 63) : ~0ul;
  return kKind == kProd ? 1ul : 0ul;
}
bool less(Accumulator a, Accumulator b) {
  return kSigned ? int64_t(a) < int64_t(b) : a < b;
}
Accumulator combine(Accumulator a, Accumulator b) {
  if (kKind == kMax) return less(a, b) ? b : a;
  if (kKind == kMin) return less(b, a) ? b : a;
  return kKind == kProd ? a * b : a + b;
}
Accumulator load_element(uint64_t address) {
  return U64s(address).at[0];
}
void store_result(uint64_t base, uint i, Accumulator value, uint count) {
  U64s(base).at[i] = value;
}

void store_element(uint64_t address, Accumulator value) {
  U64s(address).at[0] = value;
}

#elif defined(ACCUMULATOR_F64)

// f64, floats of other types whose rounding is left to the end, and means of integers, which are f32.
#include "doubles.glsl"
#include "math_f64.glsl"
#define Accumulator double
#define kAccumulatorBytes 8ul
#define Accumulators F64s
Accumulator identity() {
  if (kKind == kMax) return -infinite_double();
  if (kKind == kMin) return infinite_double();
  return kKind == kProd ? 1.0lf : 0.0lf;
}
Accumulator combine(Accumulator a, Accumulator b) {
  if (kKind == kMax) return a > b || is_nan(a) ? a : b;
  if (kKind == kMin) return a < b || is_nan(a) ? a : b;
  return kKind == kProd ? a * b : a + b;
}
Accumulator load_element(uint64_t address) {
  if (kType == kBool || kType == kU8) return double(load_u8(address));
  if (kType == kI8) return double(load_i8(address));
  if (kType == kU16) return double(load_u16(address));
  if (kType == kI16) return double(load_i16(address));
  if (kType == kU32) return double(U32s(address).at[0]);
  if (kType == kI32) return double(I32s(address).at[0]);
  if (kType == kU64) return double(U64s(address).at[0]);
  if (kType == kI64) return double(int64_t(U64s(address).at[0]));
  if (kType != kF64) return double(load_float(kType, address, 0u));
  return F64s(address).at[0];
}
void store_result(uint64_t base, uint i, Accumulator value, uint count) {
  if (kKind == kMean) value /= double(count);
  if (kType == kF64) {
    Accumulators(base).at[i] = value;
  } else {
    F32s(base).at[i] = float(value);
  }
}

void store_element(uint64_t address, Accumulator value) {
  if (kType == kF64) {
    F64s(address).at[0] = value;
  } else {
    store_float(kType, address, 0u, float(value));
  }
}

#else  // ACCUMULATOR_COMPLEX

#define Accumulator vec2
#define kAccumulatorBytes 8ul
#define Accumulators F32x2s
Accumulator identity() {
  return vec2(kKind == kProd ? 1.0 : 0.0, 0.0);
}
Accumulator combine(Accumulator a, Accumulator b) {
  if (kKind == kProd) return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
  return a + b;
}
Accumulator load_element(uint64_t address) {
  return F32x2s(address).at[0];
}
void store_result(uint64_t base, uint i, Accumulator value, uint count) {
  if (kKind == kMean) value /= float(count);
  F32x2s(base).at[i] = value;
}

void store_element(uint64_t address, Accumulator value) {
  F32x2s(address).at[0] = value;
}

#endif
