// What reductions, scans and scatters combine two values with.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

namespace heddle::cpu {

/// Wide enough that products of promoted small integers do not overflow.
template <class T>
using Unsigned = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

struct Sum {  // of integers wraps; of bools it is or
  template <class A>
  static constexpr A identity() {
    return A{};
  }
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<Unsigned<A>>(a) + static_cast<Unsigned<A>>(b));
    } else {
      return a + b;
    }
  }
};
struct Prod {  // of bools it is and
  template <class A>
  static constexpr A identity() {
    return A(1);
  }
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<Unsigned<A>>(a) * static_cast<Unsigned<A>>(b));
    } else {
      return a * b;
    }
  }
};
struct Max {  // NaN in, NaN out
  template <class A>
  static constexpr A identity() {
    using Limits = std::numeric_limits<A>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <class A>
  A operator()(A a, A b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class A>
  static constexpr A identity() {
    using Limits = std::numeric_limits<A>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <class A>
  A operator()(A a, A b) const {
    return a < b || a != a ? a : b;
  }
};
struct LogAddExp {  // of floating types
  template <class A>
  static constexpr A identity() {
    return -std::numeric_limits<A>::infinity();
  }
  template <class A>
  A operator()(A a, A b) const {
    if (a == b) return a + std::numbers::ln2_v<A>;  // infinities too
    return (a > b || a != a ? a : b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
};

}  // namespace heddle::cpu
