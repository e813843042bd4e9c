#include "device/cpu/math_ops.h"

#include <cstring>

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
struct MathTable {
  FloatUnary (*unary)(UnaryKind);
  FloatBinary (*binary)(BinaryKind);
  FloatBinary (*gated)(UnaryKind);
};
}  // namespace heddle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

/// Calls out_vector(i) for whole vectors; the rest goes through a padded copy, so that an element
/// is computed alike wherever it stands.
template <class F>
HWY_INLINE HWY_ATTR void map_unary(const float* x, float* out, std::int64_t n) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::apply(hn::LoadU(d, x + i)), d, out + i);
  if (i == n) return;
  HWY_ALIGN float rest[hn::MaxLanes(FloatTag())] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
  std::memcpy(rest, x + i, bytes);
  hn::Store(F::apply(hn::Load(d, rest)), d, rest);
  std::memcpy(out + i, rest, bytes);
}

template <class F>
HWY_INLINE HWY_ATTR void map_binary(const float* a, const float* b, float* out, std::int64_t n) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(F::apply(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest_a[hn::MaxLanes(FloatTag())] = {}, rest_b[hn::MaxLanes(FloatTag())] = {};
  const std::size_t bytes = static_cast<std::size_t>(n - i) * sizeof(float);
  std::memcpy(rest_a, a + i, bytes);
  std::memcpy(rest_b, b + i, bytes);
  hn::Store(F::apply(hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(out + i, rest_a, bytes);
}

#define HEDDLE_UNARY(NAME, EXPRESSION)                                                  \
  struct NAME##_op {                                                                    \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x) { return EXPRESSION; }        \
  };                                                                                    \
  HWY_NOINLINE HWY_ATTR void NAME##_array(const float* x, float* out, std::int64_t n) { \
    map_unary<NAME##_op>(x, out, n);                                                    \
  }                                                                                     \
  struct NAME##_gated_op {                                                              \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec x, FloatVec up) {                \
      return hn::Mul(EXPRESSION, up);                                                   \
    }                                                                                   \
  };

#define HEDDLE_BINARY(NAME, EXPRESSION)                                                      \
  struct NAME##_op {                                                                         \
    static HWY_INLINE HWY_ATTR FloatVec apply(FloatVec a, FloatVec b) { return EXPRESSION; } \
  };                                                                                         \
  HWY_NOINLINE HWY_ATTR void NAME##_array(const float* a, const float* b, float* out,        \
                                          std::int64_t n) {                                  \
    map_binary<NAME##_op>(a, b, out, n);                                                     \
  }

#define HEDDLE_GATED(NAME)                                                                      \
  HWY_NOINLINE HWY_ATTR void NAME##_gated_array(const float* gate, const float* up, float* out, \
                                                std::int64_t n) {                               \
    map_binary<NAME##_gated_op>(gate, up, out, n);                                              \
  }

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
HEDDLE_GATED(silu)
HEDDLE_GATED(gelu)
HEDDLE_GATED(gelu_tanh)
HEDDLE_GATED(relu)
HEDDLE_BINARY(add, hn::Add(a, b))
HEDDLE_BINARY(subtract, hn::Sub(a, b))
HEDDLE_BINARY(multiply, hn::Mul(a, b))
HEDDLE_BINARY(divide, hn::Div(a, b))
// a where it is NaN or the larger, else b, which then may be NaN.
HEDDLE_BINARY(maximum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b))
HEDDLE_BINARY(minimum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b))

FloatUnary find_unary(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::exp:
      return exp_array;
    case UnaryKind::sigmoid:
      return sigmoid_array;
    case UnaryKind::silu:
      return silu_array;
    case UnaryKind::tanh:
      return tanh_array;
    case UnaryKind::erf:
      return erf_array;
    case UnaryKind::gelu:
      return gelu_array;
    case UnaryKind::gelu_tanh:
      return gelu_tanh_array;
    case UnaryKind::relu:
      return relu_array;
    case UnaryKind::sqrt:
      return sqrt_array;
    case UnaryKind::rsqrt:
      return rsqrt_array;
    case UnaryKind::reciprocal:
      return reciprocal_array;
    case UnaryKind::square:
      return square_array;
    case UnaryKind::abs:
      return abs_array;
    case UnaryKind::negative:
      return negative_array;
    default:
      return nullptr;
  }
}

FloatBinary find_binary(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::add:
      return add_array;
    case BinaryKind::subtract:
      return subtract_array;
    case BinaryKind::multiply:
      return multiply_array;
    case BinaryKind::divide:
      return divide_array;
    case BinaryKind::maximum:
      return maximum_array;
    case BinaryKind::minimum:
      return minimum_array;
    default:
      return nullptr;
  }
}

FloatBinary find_gated(UnaryKind activation) {
  switch (activation) {
    case UnaryKind::silu:
      return silu_gated_array;
    case UnaryKind::gelu:
      return gelu_gated_array;
    case UnaryKind::gelu_tanh:
      return gelu_tanh_gated_array;
    case UnaryKind::relu:
      return relu_gated_array;
    default:
      return nullptr;
  }
}

const MathTable& math_table() {
  static constexpr MathTable kTable{find_unary, find_binary, find_gated};
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
}  // namespace

FloatUnary float_unary(UnaryKind kind) {
  return table().unary(kind);
}
FloatBinary float_binary(BinaryKind kind) {
  return table().binary(kind);
}
FloatBinary float_gated(UnaryKind activation) {
  return table().gated(activation);
}

}  // namespace heddle::cpu
#endif
