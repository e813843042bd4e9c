// Unary functions of every dtype for which they mean something.
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

#include "device/cpu/elementwise.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

template <class T>
concept real = std::floating_point<T>;
template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept complex_number = std::same_as<T, std::complex<float>>;
template <class T>
concept inexact = real<T> || complex_number<T>;
template <class T>
concept number = inexact<T> || integer<T>;

/// a op b modulo 2^bits: wraps without overflowing.
template <integer T, class F>
T wrapping(T a, T b, const F& f) {
  using U = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
  return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
}

struct Abs {
  auto operator()(number auto x) const { return magnitude(x); }

 private:
  template <real T>
  static T magnitude(T x) {
    return std::fabs(x);
  }
  template <complex_number T>
  static T magnitude(T x) {
    return T(std::abs(x), 0.0f);
  }
  template <integer T>
  static T magnitude(T x) {
    if constexpr (std::is_unsigned_v<T>) return x;
    return x < 0 ? wrapping(T{0}, x, std::minus<>()) : x;
  }
};
struct Negative {
  template <inexact T>
  T operator()(T x) const {
    return -x;
  }
  template <integer T>
  T operator()(T x) const {
    return wrapping(T{0}, x, std::minus<>());
  }
};
struct Sign {
  template <real T>
  T operator()(T x) const {
    if (std::isnan(x)) return x;
    return static_cast<T>((x > 0) - (x < 0));
  }
  template <integer T>
  T operator()(T x) const {
    return static_cast<T>((x > 0) - (x < 0));
  }
  template <complex_number T>
  T operator()(T x) const {
    const float size = std::abs(x);
    return size == 0.0f ? T{} : x / size;
  }
};
struct Square {
  template <inexact T>
  T operator()(T x) const {
    return x * x;
  }
  template <integer T>
  T operator()(T x) const {
    return wrapping(x, x, std::multiplies<>());
  }
};
struct Rsqrt {
  template <inexact T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Reciprocal {
  template <inexact T>
  T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sigmoid {
  template <real T>
  T operator()(T x) const {
    const T e = std::exp(-std::fabs(x));
    return (x < 0 ? e : T(1)) / (T(1) + e);
  }
};
struct Silu {
  template <real T>
  T operator()(T x) const {
    return x * Sigmoid()(x);
  }
};
struct Gelu {
  template <real T>
  T operator()(T x) const {
    return x * (T(0.5) * std::erfc(x * T(-0.70710678118654752440)));
  }
};
struct GeluTanh {  // sqrt(8 / pi)
  template <real T>
  T operator()(T x) const {
    return x * Sigmoid()(T(1.5957691216057307117) * (x + T(0.044715) * x * x * x));
  }
};
struct Relu {
  template <class T>
  requires(number<T> && !complex_number<T>) T operator()(T x) const { return x < 0 ? T(0) : x; }
};
struct Floor {
  template <real T>
  T operator()(T x) const {
    return std::floor(x);
  }
  template <integer T>
  T operator()(T x) const {
    return x;
  }
};
struct Ceil {
  template <real T>
  T operator()(T x) const {
    return std::ceil(x);
  }
  template <integer T>
  T operator()(T x) const {
    return x;
  }
};
struct Round {  // halves to even, in the default rounding mode
  template <real T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
  template <integer T>
  T operator()(T x) const {
    return x;
  }
};
struct LogicalNot {
  template <class T>
  bool operator()(T x) const {
    return x == T{};
  }
};

/// Whether a property of floats holds of a number; integers have none of them.
template <class F>
bool of_parts(std::complex<float> x, const F& f) {
  return f(x.real()) || f(x.imag());
}
struct IsNan {
  template <class T>
  bool operator()(T x) const {
    if constexpr (complex_number<T>) return of_parts(x, IsNan());
    if constexpr (real<T>) return std::isnan(x);
    return false;
  }
};
struct IsInf {
  template <class T>
  bool operator()(T x) const {
    if constexpr (complex_number<T>) return of_parts(x, IsInf());
    if constexpr (real<T>) return std::isinf(x);
    return false;
  }
};
struct IsFinite {
  template <class T>
  bool operator()(T x) const {
    return !IsNan()(x) && !IsInf()(x);
  }
};

// std:: functions of real and, where there is one, of complex numbers.
#define HEDDLE_INEXACT(NAME, FUNCTION) \
  struct NAME {                        \
    template <inexact T>               \
    T operator()(T x) const {          \
      return FUNCTION(x);              \
    }                                  \
  }
#define HEDDLE_REAL(NAME, FUNCTION) \
  struct NAME {                     \
    template <real T>               \
    T operator()(T x) const {       \
      return FUNCTION(x);           \
    }                               \
  }
HEDDLE_INEXACT(Sqrt, std::sqrt);
HEDDLE_INEXACT(Exp, std::exp);
HEDDLE_REAL(Expm1, std::expm1);
HEDDLE_INEXACT(Log, std::log);
HEDDLE_REAL(Log2, std::log2);
HEDDLE_INEXACT(Log10, std::log10);
HEDDLE_REAL(Log1p, std::log1p);
HEDDLE_INEXACT(Sin, std::sin);
HEDDLE_INEXACT(Cos, std::cos);
HEDDLE_INEXACT(Tan, std::tan);
HEDDLE_INEXACT(Sinh, std::sinh);
HEDDLE_INEXACT(Cosh, std::cosh);
HEDDLE_INEXACT(Tanh, std::tanh);
HEDDLE_INEXACT(Arcsin, std::asin);
HEDDLE_INEXACT(Arccos, std::acos);
HEDDLE_INEXACT(Arctan, std::atan);
HEDDLE_REAL(Erf, std::erf);
#undef HEDDLE_INEXACT
#undef HEDDLE_REAL

template <class F, class T>
void map_block(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<std::invoke_result_t<F, T>*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

/// |z| of complex numbers, into floats.
void complex_magnitude(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const std::complex<float>*>(in[0]);
  auto* y = static_cast<float*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::abs(x[i]);
}

template <class F>
BlockFunction of_type(DType dtype) {
  return with_compute_type(dtype, [](auto tag) -> BlockFunction {
    using T = typename decltype(tag)::type;
    if constexpr (std::invocable<F, T>) return map_block<F, T>;
    return {};
  });
}

BlockFunction find(UnaryKind kind, DType dtype) {
  switch (kind) {
    case UnaryKind::abs:
      return of_type<Abs>(dtype);
    case UnaryKind::negative:
      return of_type<Negative>(dtype);
    case UnaryKind::sign:
      return of_type<Sign>(dtype);
    case UnaryKind::square:
      return of_type<Square>(dtype);
    case UnaryKind::sqrt:
      return of_type<Sqrt>(dtype);
    case UnaryKind::rsqrt:
      return of_type<Rsqrt>(dtype);
    case UnaryKind::reciprocal:
      return of_type<Reciprocal>(dtype);
    case UnaryKind::exp:
      return of_type<Exp>(dtype);
    case UnaryKind::expm1:
      return of_type<Expm1>(dtype);
    case UnaryKind::log:
      return of_type<Log>(dtype);
    case UnaryKind::log2:
      return of_type<Log2>(dtype);
    case UnaryKind::log10:
      return of_type<Log10>(dtype);
    case UnaryKind::log1p:
      return of_type<Log1p>(dtype);
    case UnaryKind::sin:
      return of_type<Sin>(dtype);
    case UnaryKind::cos:
      return of_type<Cos>(dtype);
    case UnaryKind::tan:
      return of_type<Tan>(dtype);
    case UnaryKind::sinh:
      return of_type<Sinh>(dtype);
    case UnaryKind::cosh:
      return of_type<Cosh>(dtype);
    case UnaryKind::tanh:
      return of_type<Tanh>(dtype);
    case UnaryKind::arcsin:
      return of_type<Arcsin>(dtype);
    case UnaryKind::arccos:
      return of_type<Arccos>(dtype);
    case UnaryKind::arctan:
      return of_type<Arctan>(dtype);
    case UnaryKind::sigmoid:
      return of_type<Sigmoid>(dtype);
    case UnaryKind::silu:
      return of_type<Silu>(dtype);
    case UnaryKind::gelu:
      return of_type<Gelu>(dtype);
    case UnaryKind::gelu_tanh:
      return of_type<GeluTanh>(dtype);
    case UnaryKind::relu:
      return of_type<Relu>(dtype);
    case UnaryKind::erf:
      return of_type<Erf>(dtype);
    case UnaryKind::floor:
      return of_type<Floor>(dtype);
    case UnaryKind::ceil:
      return of_type<Ceil>(dtype);
    case UnaryKind::round:
      return of_type<Round>(dtype);
    case UnaryKind::logical_not:
      return of_type<LogicalNot>(dtype);
    case UnaryKind::isnan:
      return of_type<IsNan>(dtype);
    case UnaryKind::isinf:
      return of_type<IsInf>(dtype);
    case UnaryKind::isfinite:
      return of_type<IsFinite>(dtype);
  }
  return {};
}

bool gives_bool(UnaryKind kind) {
  return kind == UnaryKind::logical_not || kind == UnaryKind::isnan || kind == UnaryKind::isinf ||
         kind == UnaryKind::isfinite;
}

}  // namespace

BlockFunction unary_block(UnaryKind kind, DType dtype, DType out) {
  if (kind == UnaryKind::abs && dtype == DType::complex64 && out == DType::f32) {
    return complex_magnitude;
  }
  if (out != (gives_bool(kind) ? DType::bool_ : dtype)) return {};
  if (dtype == DType::f32) {
    if (const FloatUnary fast = float_unary(kind)) {
      return [fast](const void* const* in, void* to, std::int64_t n) {
        fast(static_cast<const float*>(in[0]), static_cast<float*>(to), n);
      };
    }
  }
  return find(kind, dtype);
}

}  // namespace heddle::cpu
