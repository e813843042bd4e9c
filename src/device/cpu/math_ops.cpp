#include "device/cpu/math_ops.h"

#include <cstring>
#include <type_traits>

#include "device/cpu/isa.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/math_ops.cpp"
#include "hwy/foreach_target.h"
//
#include "device/cpu/math-inl.h"

#ifndef HEDDLE_CPU_MATH_ONCE
#define HEDDLE_CPU_MATH_ONCE
namespace heddle::cpu {
template <class T>
struct MathOf {
  UnaryMap<T> (*unary)(UnaryKind);
  BinaryMap<T> (*binary)(BinaryKind);
  CompareMap<T> (*compare)(CompareKind);
};
struct MathTable {
  MathOf<float> floats, streamed_floats;
  MathOf<f16> f16s;
  MathOf<bf16> bf16s;
  FloatBinary (*gated)(UnaryKind);
  FloatBinary (*streamed_gated)(UnaryKind);
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

// ---- Vectors of float from memory and back

HWY_INLINE HWY_ATTR FloatVec load(const float* x) {
  return hn::LoadU(FloatTag(), x);
}
template <Stores kStores = Stores::cached>
HWY_INLINE HWY_ATTR void store(FloatVec v, float* out) {
  put<kStores>(v, out);
}

HWY_INLINE HWY_ATTR FloatVec load(const bf16* x) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const hn::Rebind<std::uint16_t, FloatTag> narrow;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(x));
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
/// Rounds as bf16(float) does.
template <Stores kStores = Stores::cached>
HWY_INLINE HWY_ATTR void store(FloatVec v, bf16* out) {
  const hn::RebindToUnsigned<FloatTag> wide;
  const hn::Rebind<std::uint16_t, FloatTag> narrow;
  const auto bits = hn::BitCast(wide, v), high = hn::ShiftRight<16>(bits);
  const auto half = hn::Add(hn::Set(wide, 0x7fffu), hn::And(high, hn::Set(wide, 1u)));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, half));
  const auto nan = hn::Or(high, hn::Set(wide, 0x40u));
  const auto result = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(v)), nan, rounded);
  hn::StoreU(hn::TruncateTo(narrow, result), narrow, reinterpret_cast<std::uint16_t*>(out));
}

// The other levels have no instructions for these.
#if HEDDLE_TARGET_CONVERTS_F16
HWY_INLINE HWY_ATTR FloatVec load(const f16* x) {
  const hn::Rebind<hwy::float16_t, FloatTag> narrow;
  return hn::PromoteTo(FloatTag(), hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(x)));
}
template <Stores kStores = Stores::cached>
HWY_INLINE HWY_ATTR void store(FloatVec v, f16* out) {
  const hn::Rebind<hwy::float16_t, FloatTag> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, reinterpret_cast<hwy::float16_t*>(out));
}
#endif

// ---- Loops. What is left of whole vectors goes through padded copies, so that an element is
// computed alike wherever it stands.

/// Only floats are streamed.
template <Stores kStores, class T>
HWY_INLINE HWY_ATTR void fetch(const T* x, std::int64_t i) {
  if constexpr (std::is_same_v<T, float>) fetch_ahead<kStores>(x, i);
}

template <class Op, class T, Stores kStores>
HWY_NOINLINE HWY_ATTR void unary_array(const T* x, T* out, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    fetch<kStores>(x, i);
    store<kStores>(Op::apply(load(x + i)), out + i);
  }
  if (i == n) return;
  HWY_ALIGN T rest[hn::MaxLanes(FloatTag())] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(T);
  std::memcpy(rest, x + i, bytes);
  store(Op::apply(load(rest)), rest);
  std::memcpy(out + i, rest, bytes);
}

template <class Op, class T, Stores kStores>
HWY_NOINLINE HWY_ATTR void binary_array(const T* a, const T* b, T* out, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    fetch<kStores>(a, i);
    fetch<kStores>(b, i);
    store<kStores>(Op::apply(load(a + i), load(b + i)), out + i);
  }
  if (i == n) return;
  HWY_ALIGN T rest_a[hn::MaxLanes(FloatTag())] = {}, rest_b[hn::MaxLanes(FloatTag())] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(T);
  std::memcpy(rest_a, a + i, bytes);
  std::memcpy(rest_b, b + i, bytes);
  store(Op::apply(load(rest_a), load(rest_b)), rest_a);
  std::memcpy(out + i, rest_a, bytes);
}

/// Zeros and ones, as bools are.
HWY_INLINE HWY_ATTR void store(hn::Mask<FloatTag> mask, std::uint8_t* out) {
  const hn::RebindToSigned<FloatTag> wide;
  const hn::Rebind<std::uint8_t, FloatTag> bytes;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(wide, mask), hn::Set(wide, 1));
  hn::StoreU(hn::DemoteTo(bytes, ones), bytes, out);
}

template <class Op, class T>
HWY_NOINLINE HWY_ATTR void compare_array(const T* a, const T* b, bool* out, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  auto* bytes = reinterpret_cast<std::uint8_t*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(Op::apply(load(a + i), load(b + i)), bytes + i);
  if (i == n) return;
  HWY_ALIGN T rest_a[hn::MaxLanes(FloatTag())] = {}, rest_b[hn::MaxLanes(FloatTag())] = {};
  HWY_ALIGN std::uint8_t rest[hn::MaxLanes(FloatTag())];
  const auto left = static_cast<std::size_t>(n - i);
  std::memcpy(rest_a, a + i, left * sizeof(T));
  std::memcpy(rest_b, b + i, left * sizeof(T));
  store(Op::apply(load(rest_a), load(rest_b)), rest);
  std::memcpy(bytes + i, rest, left);
}

#define HEDDLE_UNARY(NAME, EXPRESSION)                                           \
  struct NAME##_op {                                                             \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) { return EXPRESSION; } \
  };

#define HEDDLE_BINARY(NAME, EXPRESSION)                                                      \
  struct NAME##_op {                                                                         \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b) { return EXPRESSION; } \
  };

#define HEDDLE_COMPARE(NAME, EXPRESSION)                                                 \
  struct NAME##_op {                                                                     \
    static HWY_INLINE HWY_ATTR auto apply(FloatVec a, FloatVec b) { return EXPRESSION; } \
  };

template <class Activation>
struct Gated {
  static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x, FloatVec up) {
    return hn::Mul(Activation::apply(x), up);
  }
};

HEDDLE_UNARY(exp, exp(x))
HEDDLE_UNARY(sigmoid, sigmoid(x))
HEDDLE_UNARY(silu, silu(x))
HEDDLE_UNARY(tanh, tanh(x))
HEDDLE_UNARY(erf, erf(x))
HEDDLE_UNARY(gelu, gelu(x))
HEDDLE_UNARY(gelu_tanh, gelu_tanh(x))
HEDDLE_UNARY(relu, relu(x))
HEDDLE_UNARY(sqrt, hn::Sqrt(x))
HEDDLE_UNARY(rsqrt, hn::Div(constant(1.0f), hn::Sqrt(x)))
HEDDLE_UNARY(reciprocal, hn::Div(constant(1.0f), x))
HEDDLE_UNARY(square, hn::Mul(x, x))
HEDDLE_UNARY(abs, hn::Abs(x))
HEDDLE_UNARY(negative, hn::Neg(x))
HEDDLE_BINARY(add, hn::Add(a, b))
HEDDLE_BINARY(subtract, hn::Sub(a, b))
HEDDLE_BINARY(multiply, hn::Mul(a, b))
HEDDLE_BINARY(divide, hn::Div(a, b))
// a where it is NaN or the larger, else b, which then may be NaN.
HEDDLE_BINARY(maximum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b))
HEDDLE_BINARY(minimum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b))

HEDDLE_COMPARE(equal, hn::Eq(a, b))
HEDDLE_COMPARE(not_equal, hn::Not(hn::Eq(a, b)))  // true of NaN, as hn::Ne is not everywhere
HEDDLE_COMPARE(less, hn::Lt(a, b))
HEDDLE_COMPARE(less_equal, hn::Le(a, b))
HEDDLE_COMPARE(greater, hn::Gt(a, b))
HEDDLE_COMPARE(greater_equal, hn::Ge(a, b))

template <class T, Stores kStores>
UnaryMap<T> find_unary(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::exp:
      return unary_array<exp_op, T, kStores>;
    case UnaryKind::sigmoid:
      return unary_array<sigmoid_op, T, kStores>;
    case UnaryKind::silu:
      return unary_array<silu_op, T, kStores>;
    case UnaryKind::tanh:
      return unary_array<tanh_op, T, kStores>;
    case UnaryKind::erf:
      return unary_array<erf_op, T, kStores>;
    case UnaryKind::gelu:
      return unary_array<gelu_op, T, kStores>;
    case UnaryKind::gelu_tanh:
      return unary_array<gelu_tanh_op, T, kStores>;
    case UnaryKind::relu:
      return unary_array<relu_op, T, kStores>;
    case UnaryKind::sqrt:
      return unary_array<sqrt_op, T, kStores>;
    case UnaryKind::rsqrt:
      return unary_array<rsqrt_op, T, kStores>;
    case UnaryKind::reciprocal:
      return unary_array<reciprocal_op, T, kStores>;
    case UnaryKind::square:
      return unary_array<square_op, T, kStores>;
    case UnaryKind::abs:
      return unary_array<abs_op, T, kStores>;
    case UnaryKind::negative:
      return unary_array<negative_op, T, kStores>;
    default:
      return nullptr;
  }
}

template <class T, Stores kStores>
BinaryMap<T> find_binary(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::add:
      return binary_array<add_op, T, kStores>;
    case BinaryKind::subtract:
      return binary_array<subtract_op, T, kStores>;
    case BinaryKind::multiply:
      return binary_array<multiply_op, T, kStores>;
    case BinaryKind::divide:
      return binary_array<divide_op, T, kStores>;
    case BinaryKind::maximum:
      return binary_array<maximum_op, T, kStores>;
    case BinaryKind::minimum:
      return binary_array<minimum_op, T, kStores>;
    default:
      return nullptr;
  }
}

#if HWY_TARGET == HWY_SCALAR
// One at a time is slower than what a compiler makes of a plain loop.
template <class T>
CompareMap<T> find_compare(CompareKind) {
  return nullptr;
}
#else
template <class T>
CompareMap<T> find_compare(CompareKind kind) {
  switch (kind) {
    case CompareKind::equal:
      return compare_array<equal_op, T>;
    case CompareKind::not_equal:
      return compare_array<not_equal_op, T>;
    case CompareKind::less:
      return compare_array<less_op, T>;
    case CompareKind::less_equal:
      return compare_array<less_equal_op, T>;
    case CompareKind::greater:
      return compare_array<greater_op, T>;
    case CompareKind::greater_equal:
      return compare_array<greater_equal_op, T>;
  }
  return nullptr;
}
#endif

template <Stores kStores>
FloatBinary find_gated(UnaryKind activation) {
  switch (activation) {
    case UnaryKind::silu:
      return binary_array<Gated<silu_op>, float, kStores>;
    case UnaryKind::gelu:
      return binary_array<Gated<gelu_op>, float, kStores>;
    case UnaryKind::gelu_tanh:
      return binary_array<Gated<gelu_tanh_op>, float, kStores>;
    case UnaryKind::relu:
      return binary_array<Gated<relu_op>, float, kStores>;
    default:
      return nullptr;
  }
}

template <class T, Stores kStores = Stores::cached>
constexpr MathOf<T> kMathOf{find_unary<T, kStores>, find_binary<T, kStores>, find_compare<T>};

const MathTable& math_table() {
#if HEDDLE_TARGET_CONVERTS_F16
  static constexpr MathOf<f16> kF16s = kMathOf<f16>;
#else
  static constexpr MathOf<f16> kF16s{[](UnaryKind) -> UnaryMap<f16> { return nullptr; },
                                     [](BinaryKind) -> BinaryMap<f16> { return nullptr; },
                                     [](CompareKind) -> CompareMap<f16> { return nullptr; }};
#endif
  static constexpr MathTable kTable{
      kMathOf<float>, kMathOf<float, Stores::streamed>, kF16s,
      kMathOf<bf16>,  find_gated<Stores::cached>,       find_gated<Stores::streamed>};
  return kTable;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

namespace {
const MathTable& table() {
  HEDDLE_SIMD_RETURN(math_table);
}
const MathOf<float>& floats(Stores stores) {
  return stores == Stores::streamed ? table().streamed_floats : table().floats;
}
}  // namespace

FloatUnary float_unary(UnaryKind kind, Stores stores) {
  return floats(stores).unary(kind);
}
FloatBinary float_binary(BinaryKind kind, Stores stores) {
  return floats(stores).binary(kind);
}
FloatBinary float_gated(UnaryKind activation, Stores stores) {
  const MathTable& all = table();
  return stores == Stores::streamed ? all.streamed_gated(activation) : all.gated(activation);
}

CompareMap<float> float_compare(CompareKind kind) {
  return table().floats.compare(kind);
}

UnaryMap<f16> f16_unary(UnaryKind kind) {
  return table().f16s.unary(kind);
}
BinaryMap<f16> f16_binary(BinaryKind kind) {
  return table().f16s.binary(kind);
}
CompareMap<f16> f16_compare(CompareKind kind) {
  return table().f16s.compare(kind);
}
UnaryMap<bf16> bf16_unary(UnaryKind kind) {
  return table().bf16s.unary(kind);
}
BinaryMap<bf16> bf16_binary(BinaryKind kind) {
  return table().bf16s.binary(kind);
}
CompareMap<bf16> bf16_compare(CompareKind kind) {
  return table().bf16s.compare(kind);
}

}  // namespace heddle::cpu
#endif
