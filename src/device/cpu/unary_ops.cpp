// Unary functions of every dtype for which they mean something.
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <numbers>
#include <type_traits>

#include "device/cpu/elementwise.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/types.h"
#include "device/cpu/wide_math.h"

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
/// Complex functions are computed in double: their formulas magnify rounding.
template <class F>
std::complex<float> in_double(std::complex<float> x, const F& f) {
  return std::complex<float>(f(std::complex<double>(x)));
}
struct Rsqrt {
  template <real T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
  template <complex_number T>
  T operator()(T x) const {
    return in_double(x, [](std::complex<double> z) { return 1.0 / std::sqrt(z); });
  }
};
struct Reciprocal {
  template <inexact T>
  T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sigmoid {
  template <complex_number T>
  T operator()(T x) const {
    return in_double(x, [](std::complex<double> z) { return 1.0 / (1.0 + std::exp(-z)); });
  }
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
struct Trunc {
  template <real T>
  T operator()(T x) const {
    return std::trunc(x);
  }
};
struct Round {  // halves to even, in the default rounding mode
  template <real T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
  template <complex_number T>
  T operator()(T x) const {
    return {std::nearbyint(x.real()), std::nearbyint(x.imag())};
  }
  template <integer T>
  T operator()(T x) const {
    return x;
  }
};
struct BitwiseInvert {
  template <std::integral T>
  T operator()(T x) const {
    if constexpr (std::same_as<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};
struct Erfinv {
  template <real T>
  T operator()(T x) const {
    return static_cast<T>(inverse(static_cast<double>(x)));
  }

 private:
  static double inverse(double x) {
    const double size = std::fabs(x);
    if (!(size < 1)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return size == 1 ? std::copysign(kInfinity, x) : std::numeric_limits<double>::quiet_NaN();
    }
    // Winitzki's closed form is within 2 in a thousand; each step of Halley's method triples the
    // digits. Near 1, the difference to 1 is what is exact.
    const double logarithm = std::log1p(-size * size), a = 0.147;
    const double half = 2 / (std::numbers::pi * a) + logarithm / 2;
    double y = std::sqrt(std::sqrt(half * half - logarithm / a) - half);
    for (int step = 0; step < 3; ++step) {
      const double error = size < 0.5 ? std::erf(y) - size : (1 - size) - std::erfc(y);
      const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
      if (slope > 0) y -= error / (slope + y * error);
    }
    return std::copysign(y, x);
  }
};
struct Expm1 {
  template <real T>
  T operator()(T x) const {
    return std::expm1(x);
  }
  template <complex_number T>
  T operator()(T x) const {
    return in_double(x, [](std::complex<double> z) {
      const double half = std::sin(z.imag() / 2);
      return std::complex<double>(std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
                                  std::exp(z.real()) * std::sin(z.imag()));
    });
  }
};
struct Log1p {
  template <real T>
  T operator()(T x) const {
    return std::log1p(x);
  }
  template <complex_number T>
  T operator()(T x) const {
    return in_double(x, [](std::complex<double> z) {
      const double a = z.real(), b = z.imag();
      return std::complex<double>(std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a));
    });
  }
};
struct Log2 {
  template <real T>
  T operator()(T x) const {
    return std::log2(x);
  }
  template <complex_number T>
  T operator()(T x) const {
    return in_double(x, [](std::complex<double> z) { return std::log(z) * std::numbers::log2e; });
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
struct Conjugate {
  template <complex_number T>
  T operator()(T x) const {
    return std::conj(x);
  }
};
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
    if constexpr (real<T>) return x - x == T(0);  // else NaN, in one comparison
    return !IsNan()(x) && !IsInf()(x);
  }
};

// std:: functions of real and, where there is one, of complex numbers.
#define HEDDLE_INEXACT(NAME, FUNCTION)                                           \
  struct NAME {                                                                  \
    template <inexact T>                                                         \
    T operator()(T x) const {                                                    \
      if constexpr (complex_number<T>) {                                         \
        return in_double(x, [](std::complex<double> z) { return FUNCTION(z); }); \
      } else {                                                                   \
        return FUNCTION(x);                                                      \
      }                                                                          \
    }                                                                            \
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
HEDDLE_INEXACT(Log, std::log);
HEDDLE_INEXACT(Log10, std::log10);
HEDDLE_INEXACT(Sin, std::sin);
HEDDLE_INEXACT(Cos, std::cos);
HEDDLE_INEXACT(Tan, std::tan);
HEDDLE_INEXACT(Sinh, std::sinh);
HEDDLE_INEXACT(Cosh, std::cosh);
HEDDLE_INEXACT(Tanh, std::tanh);
HEDDLE_INEXACT(Arcsin, std::asin);
HEDDLE_INEXACT(Arccos, std::acos);
HEDDLE_INEXACT(Arctan, std::atan);
HEDDLE_INEXACT(Arcsinh, std::asinh);
HEDDLE_INEXACT(Arccosh, std::acosh);
HEDDLE_INEXACT(Arctanh, std::atanh);
HEDDLE_REAL(Erf, std::erf);
#undef HEDDLE_INEXACT
#undef HEDDLE_REAL

template <class F, class T>
void map_block(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<std::invoke_result_t<F, T>*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

/// A float of each complex number.
template <class F>
void float_of_complex(const void* const* in, void* out, std::int64_t n, const F& f) {
  const auto* x = static_cast<const std::complex<float>*>(in[0]);
  auto* y = static_cast<float*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

BlockFunction part_of_complex(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::abs:
      return [](const void* const* in, void* out, std::int64_t n) {
        float_of_complex(in, out, n, [](std::complex<float> z) { return std::abs(z); });
      };
    case UnaryKind::real:
      return [](const void* const* in, void* out, std::int64_t n) {
        float_of_complex(in, out, n, [](std::complex<float> z) { return z.real(); });
      };
    case UnaryKind::imag:
      return [](const void* const* in, void* out, std::int64_t n) {
        float_of_complex(in, out, n, [](std::complex<float> z) { return z.imag(); });
      };
    default:
      return {};
  }
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
    case UnaryKind::trunc:
      return of_type<Trunc>(dtype);
    case UnaryKind::erfinv:
      return of_type<Erfinv>(dtype);
    case UnaryKind::arcsinh:
      return of_type<Arcsinh>(dtype);
    case UnaryKind::arccosh:
      return of_type<Arccosh>(dtype);
    case UnaryKind::arctanh:
      return of_type<Arctanh>(dtype);
    case UnaryKind::bitwise_invert:
      return of_type<BitwiseInvert>(dtype);
    case UnaryKind::conjugate:
      return of_type<Conjugate>(dtype);
    case UnaryKind::real:
    case UnaryKind::imag:
      break;  // to floats: see part_of_complex
  }
  return {};
}

BlockFunction vectorised(UnaryKind kind, Stores stores) {
  const FloatUnary common = float_unary(kind, stores);
  const FloatUnary fast = common ? common : wide_unary(kind, stores);
  if (!fast) return {};
  return [fast](const void* const* in, void* out, std::int64_t n) {
    fast(static_cast<const float*>(in[0]), static_cast<float*>(out), n);
  };
}

bool gives_bool(UnaryKind kind) {
  return kind == UnaryKind::logical_not || kind == UnaryKind::isnan || kind == UnaryKind::isinf ||
         kind == UnaryKind::isfinite;
}

}  // namespace

BlockFunction unary_block(UnaryKind kind, DType dtype, DType out) {
  if (dtype == DType::complex64 && out == DType::f32) return part_of_complex(kind);
  if (out != (gives_bool(kind) ? DType::bool_ : dtype)) return {};
  if (dtype == DType::f32) {
    if (BlockFunction fast = vectorised(kind, Stores::cached)) return fast;
  }
  return find(kind, dtype);
}

BlockFunction streamed_unary_block(UnaryKind kind) {
  return vectorised(kind, Stores::streamed);
}

}  // namespace heddle::cpu
