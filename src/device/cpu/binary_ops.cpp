// Binary functions and comparisons of every dtype for which they mean something.
#include <cmath>
#include <complex>
#include <concepts>
#include <functional>
#include <limits>
#include <type_traits>

#include "device/cpu/combine.h"
#include "device/cpu/elementwise.h"
#include "device/cpu/floor_division.h"
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
concept ordered = real<T> || std::integral<T>;

// Arithmetic modulo 2^bits. Small types go through 32 bits, since they promote to int.
template <integer T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

template <class F>
struct Arithmetic {
  template <inexact T>
  T operator()(T a, T b) const {
    return F()(a, b);
  }
  template <integer T>
  T operator()(T a, T b) const {
    using U = Wrapping<T>;
    return static_cast<T>(F()(static_cast<U>(a), static_cast<U>(b)));
  }
};
struct Add : Arithmetic<std::plus<>> {
  using Arithmetic::operator();
  template <std::same_as<bool> T>
  bool operator()(T a, T b) const {
    return a | b;
  }
};
struct Multiply : Arithmetic<std::multiplies<>> {
  using Arithmetic::operator();
  // As in NumPy: NaN where C would look for infinities, which keeps loops from being vectorised.
  template <complex_number T>
  T operator()(T a, T b) const {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  template <std::same_as<bool> T>
  bool operator()(T a, T b) const {
    return a & b;
  }
};
using Subtract = Arithmetic<std::minus<>>;
struct Divide {
  template <inexact T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

// By zero, integers give 0 as in NumPy. The smallest number by -1 wraps.
struct FloorDivide {
  template <real T>
  T operator()(T a, T b) const {
    return floor_quotient(a, b);
  }
  template <integer T>
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if constexpr (std::is_unsigned_v<T>) {
      return a / b;
    } else {
      if (b == -1) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
      const T quotient = a / b;
      return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }
  }
};
// The remainder of FloorDivide: it has the sign of b. By zero: integers give 0, reals NaN.
struct Remainder {
  template <real T>
  T operator()(T a, T b) const {
    return floor_rest(a, b);
  }
  template <integer T>
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if constexpr (std::is_unsigned_v<T>) {
      return a % b;
    } else {
      if (b == -1) return 0;
      const T remainder = a % b;
      return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
    }
  }
};
struct Power {
  template <real T>
  T operator()(T a, T b) const {
    return std::pow(a, b);
  }
  // In double: the exponential of a product magnifies its rounding.
  template <complex_number T>
  T operator()(T a, T b) const {
    return T(std::pow(std::complex<double>(a), std::complex<double>(b)));
  }
  template <integer T>
  T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return inverse_power(a, b);
    }
    using U = Wrapping<T>;
    U result = 1, base = static_cast<U>(a);
    for (auto left = static_cast<std::make_unsigned_t<T>>(b); left != 0;) {
      if (left & 1u) result *= base;
      base *= base;
      left = static_cast<std::make_unsigned_t<T>>(left >> 1);
    }
    return static_cast<T>(result);
  }

 private:
  /// 1 / a^-b, truncated.
  template <integer T>
  static T inverse_power(T a, T b) {
    if (a == 1) return 1;
    if (a == -1) return b % 2 == 0 ? 1 : -1;
    return 0;
  }
};
struct Maximum {  // NaN in, NaN out
  template <ordered T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <ordered T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Logaddexp {
  template <real T>
  T operator()(T a, T b) const {
    return LogAddExp()(a, b);
  }
};
struct Arctan2 {
  template <real T>
  T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
};
struct LogicalAnd {
  template <class T>
  bool operator()(T a, T b) const {
    return a != T{} && b != T{};
  }
};
struct LogicalOr {
  template <class T>
  bool operator()(T a, T b) const {
    return a != T{} || b != T{};
  }
};
template <class F>
struct Bitwise {
  template <std::integral T>
  T operator()(T a, T b) const {
    return static_cast<T>(F()(a, b));
  }
};
// Counts below zero or beyond the width shift every bit out, as in NumPy.
struct LeftShift {
  template <integer T>
  T operator()(T a, T b) const {
    using Count = std::make_unsigned_t<T>;
    const auto count = static_cast<Count>(b);
    if (count >= sizeof(T) * 8) return 0;
    return static_cast<T>(static_cast<Wrapping<T>>(a) << count);
  }
};
struct RightShift {
  template <integer T>
  T operator()(T a, T b) const {
    const auto count = static_cast<std::make_unsigned_t<T>>(b);
    if (count >= sizeof(T) * 8) return a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> count);
  }
};

template <class F>
struct AnyComparison {
  template <class T>
  bool operator()(T a, T b) const {
    return F()(a, b);
  }
};
template <class F>
struct Ordering {
  template <ordered T>
  bool operator()(T a, T b) const {
    return F()(a, b);
  }
};

template <class F, class T>
void map_block(const void* const* in, void* out, std::int64_t n) {
  const auto* a = static_cast<const T*>(in[0]);
  const auto* b = static_cast<const T*>(in[1]);
  auto* y = static_cast<std::invoke_result_t<F, T, T>*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = F()(a[i], b[i]);
}

template <class F>
BlockFunction of_type(DType dtype) {
  return with_compute_type(dtype, [](auto tag) -> BlockFunction {
    using T = typename decltype(tag)::type;
    if constexpr (std::invocable<F, T, T>) return map_block<F, T>;
    return {};
  });
}

BlockFunction find(BinaryKind kind, DType dtype) {
  switch (kind) {
    case BinaryKind::add:
      return of_type<Add>(dtype);
    case BinaryKind::subtract:
      return of_type<Subtract>(dtype);
    case BinaryKind::multiply:
      return of_type<Multiply>(dtype);
    case BinaryKind::divide:
      return of_type<Divide>(dtype);
    case BinaryKind::floor_divide:
      return of_type<FloorDivide>(dtype);
    case BinaryKind::remainder:
      return of_type<Remainder>(dtype);
    case BinaryKind::power:
      return of_type<Power>(dtype);
    case BinaryKind::maximum:
      return of_type<Maximum>(dtype);
    case BinaryKind::minimum:
      return of_type<Minimum>(dtype);
    case BinaryKind::logaddexp:
      return of_type<Logaddexp>(dtype);
    case BinaryKind::arctan2:
      return of_type<Arctan2>(dtype);
    case BinaryKind::logical_and:
      return of_type<LogicalAnd>(dtype);
    case BinaryKind::logical_or:
      return of_type<LogicalOr>(dtype);
    case BinaryKind::bitwise_and:
      return of_type<Bitwise<std::bit_and<>>>(dtype);
    case BinaryKind::bitwise_or:
      return of_type<Bitwise<std::bit_or<>>>(dtype);
    case BinaryKind::bitwise_xor:
      return of_type<Bitwise<std::bit_xor<>>>(dtype);
    case BinaryKind::left_shift:
      return of_type<LeftShift>(dtype);
    case BinaryKind::right_shift:
      return of_type<RightShift>(dtype);
  }
  return {};
}

BlockFunction vectorised(BinaryKind kind, Stores stores) {
  const FloatBinary common = float_binary(kind, stores);
  const FloatBinary fast = common ? common : wide_binary(kind, stores);
  if (!fast) return {};
  return [fast](const void* const* in, void* out, std::int64_t n) {
    fast(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]),
         static_cast<float*>(out), n);
  };
}

}  // namespace

BlockFunction binary_block(BinaryKind kind, DType dtype) {
  if (dtype == DType::f32) {
    if (BlockFunction fast = vectorised(kind, Stores::cached)) return fast;
  }
  return find(kind, dtype);
}

BlockFunction streamed_binary_block(BinaryKind kind) {
  return vectorised(kind, Stores::streamed);
}

BlockFunction compare_block(CompareKind kind, DType dtype) {
  if (dtype == DType::f32) {
    if (const CompareMap<float> fast = float_compare(kind)) {
      return [fast](const void* const* in, void* to, std::int64_t n) {
        fast(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]),
             static_cast<bool*>(to), n);
      };
    }
  }
  switch (kind) {
    case CompareKind::equal:
      return of_type<AnyComparison<std::equal_to<>>>(dtype);
    case CompareKind::not_equal:
      return of_type<AnyComparison<std::not_equal_to<>>>(dtype);
    case CompareKind::less:
      return of_type<Ordering<std::less<>>>(dtype);
    case CompareKind::less_equal:
      return of_type<Ordering<std::less_equal<>>>(dtype);
    case CompareKind::greater:
      return of_type<Ordering<std::greater<>>>(dtype);
    case CompareKind::greater_equal:
      return of_type<Ordering<std::greater_equal<>>>(dtype);
  }
  return {};
}

}  // namespace heddle::cpu
