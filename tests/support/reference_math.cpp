// Element-wise functions, casts and reductions.
#include <cmath>
#include <complex>
#include <limits>
#include <stdexcept>

#include "support/reference.h"

namespace heddle::test {

namespace {

using Complex = std::complex<Number>;
using Wide = __int128;

int bits_of(DType dtype) {
  return static_cast<int>(item_size(dtype)) * 8;
}
bool is_signed(DType dtype) {
  return info(dtype).kind == DTypeKind::signed_int;
}

/// An integer modulo 2^bits, as the dtype holds it.
Number wrap(DType dtype, Wide value) {
  if (dtype == DType::bool_) return value != 0;
  const Wide modulus = Wide{1} << bits_of(dtype);
  Wide rest = value % modulus;
  if (rest < 0) rest += modulus;
  if (is_signed(dtype) && rest >= modulus / 2) rest -= modulus;
  return static_cast<Number>(rest);
}

/// The product modulo 2^128, which is right modulo any smaller power of two.
Wide multiply(Wide a, Wide b) {
  using Unsigned = unsigned __int128;
  return static_cast<Wide>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}

Wide integer_power(DType dtype, Wide base, Wide exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  Wide result = 1;
  Wide square = base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = static_cast<Wide>(wrap(dtype, multiply(result, square)));
    square = static_cast<Wide>(wrap(dtype, multiply(square, square)));
  }
  return result;
}

Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Wide integer_binary(BinaryKind kind, DType dtype, Wide a, Wide b) {
  const bool in_range = b >= 0 && b < bits_of(dtype);
  switch (kind) {
    case BinaryKind::add:
      return a + b;
    case BinaryKind::subtract:
      return a - b;
    case BinaryKind::multiply:
      return multiply(a, b);
    case BinaryKind::floor_divide:
      return floor_quotient(a, b);
    case BinaryKind::remainder:
      return b == 0 ? 0 : a - floor_quotient(a, b) * b;
    case BinaryKind::power:
      return integer_power(dtype, a, b);
    case BinaryKind::maximum:
      return a > b ? a : b;
    case BinaryKind::minimum:
      return a < b ? a : b;
    case BinaryKind::logical_and:
      return a != 0 && b != 0;
    case BinaryKind::logical_or:
      return a != 0 || b != 0;
    case BinaryKind::bitwise_and:
      return a & b;
    case BinaryKind::bitwise_or:
      return a | b;
    case BinaryKind::bitwise_xor:
      return a ^ b;
    case BinaryKind::left_shift:
      return in_range ? a * (Wide{1} << static_cast<int>(b)) : 0;
    case BinaryKind::right_shift:
      return in_range ? a >> static_cast<int>(b) : (a < 0 ? -1 : 0);
    default:
      throw std::logic_error("reference: integers have no such binary");
  }
}

Number real_binary(BinaryKind kind, Number a, Number b) {
  switch (kind) {
    case BinaryKind::add:
      return a + b;
    case BinaryKind::subtract:
      return a - b;
    case BinaryKind::multiply:
      return a * b;
    case BinaryKind::divide:
      return a / b;
    case BinaryKind::floor_divide:
      if (b == 0) return a / b;
      if (std::isinf(a) || std::isnan(a)) return NAN;  // as Python has it
      if (std::isinf(b)) return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
      return std::floor(a / b);
    case BinaryKind::remainder: {
      const Number r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case BinaryKind::power:
      return std::pow(a, b);
    case BinaryKind::maximum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
    case BinaryKind::minimum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
    case BinaryKind::logaddexp:
      return a == b ? a + std::log(Number{2})
                    : std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
    case BinaryKind::arctan2:
      return std::atan2(a, b);
    case BinaryKind::logical_and:
      return a != 0 && b != 0;
    case BinaryKind::logical_or:
      return a != 0 || b != 0;
    default:
      throw std::logic_error("reference: reals have no such binary");
  }
}

Complex complex_binary(BinaryKind kind, Complex a, Complex b) {
  switch (kind) {
    case BinaryKind::add:
      return a + b;
    case BinaryKind::subtract:
      return a - b;
    case BinaryKind::multiply:
      return a * b;
    case BinaryKind::divide:
      return a / b;
    case BinaryKind::power:
      return std::pow(a, b);
    case BinaryKind::logical_and:
      return Number(a != Complex() && b != Complex());
    case BinaryKind::logical_or:
      return Number(a != Complex() || b != Complex());
    default:
      throw std::logic_error("reference: complex numbers have no such binary");
  }
}

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// The functions that real and complex numbers share.
template <class T>
T smooth_unary(UnaryKind kind, T x) {
  switch (kind) {
    case UnaryKind::negative:
      return -x;
    case UnaryKind::square:
      return x * x;
    case UnaryKind::sqrt:
      return std::sqrt(x);
    case UnaryKind::rsqrt:
      return T(1) / std::sqrt(x);
    case UnaryKind::reciprocal:
      return T(1) / x;
    case UnaryKind::exp:
      return std::exp(x);
    case UnaryKind::log:
      return std::log(x);
    case UnaryKind::sin:
      return std::sin(x);
    case UnaryKind::cos:
      return std::cos(x);
    case UnaryKind::tan:
      return std::tan(x);
    case UnaryKind::sinh:
      return std::sinh(x);
    case UnaryKind::cosh:
      return std::cosh(x);
    case UnaryKind::tanh:
      return std::tanh(x);
    case UnaryKind::log10:
      return std::log10(x);
    case UnaryKind::arcsin:
      return std::asin(x);
    case UnaryKind::arccos:
      return std::acos(x);
    case UnaryKind::arctan:
      return std::atan(x);
    case UnaryKind::arcsinh:
      return std::asinh(x);
    case UnaryKind::arccosh:
      return std::acosh(x);
    case UnaryKind::arctanh:
      return std::atanh(x);
    case UnaryKind::sigmoid:
      return sigmoid(x);
    default:
      throw std::logic_error("reference: no such unary");
  }
}

/// By halving, where erf or what it lacks to 1 is known best.
Number inverse_erf(Number x) {
  if (std::isnan(x) || std::fabs(x) > 1) return NAN;
  if (std::fabs(x) == 1) return std::copysign(INFINITY, x);
  const Number size = std::fabs(x);
  Number low = 0, high = 8;
  for (int i = 0; i < 200; ++i) {
    const Number middle = (low + high) / 2;
    const bool below = size < Number{0.5} ? std::erf(middle) < size : std::erfc(middle) > 1 - size;
    (below ? low : high) = middle;
  }
  return std::copysign(low, x);
}

Number real_unary(UnaryKind kind, Number x) {
  switch (kind) {
    case UnaryKind::abs:
      return std::fabs(x);
    case UnaryKind::sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case UnaryKind::expm1:
      return std::expm1(x);
    case UnaryKind::log2:
      return std::log2(x);
    case UnaryKind::log1p:
      return std::log1p(x);
    case UnaryKind::silu:
      return x * sigmoid(x);
    case UnaryKind::gelu:
      return x * std::erfc(-x / std::sqrt(Number{2})) / 2;
    case UnaryKind::gelu_tanh:
      return x * sigmoid(2 * std::sqrt(2 / std::acos(Number{-1})) * (x + 0.044715L * x * x * x));
    case UnaryKind::relu:
      return x < 0 ? 0 : x;
    case UnaryKind::erf:
      return std::erf(x);
    case UnaryKind::floor:
      return std::floor(x);
    case UnaryKind::ceil:
      return std::ceil(x);
    case UnaryKind::trunc:
      return std::trunc(x);
    case UnaryKind::erfinv:
      return inverse_erf(x);
    case UnaryKind::round:
      return std::nearbyint(x);
    case UnaryKind::logical_not:
      return x == 0;
    case UnaryKind::isnan:
      return std::isnan(x);
    case UnaryKind::isinf:
      return std::isinf(x);
    case UnaryKind::isfinite:
      return std::isfinite(x);
    default:
      return smooth_unary(kind, x);
  }
}

Number integer_unary(UnaryKind kind, DType result, Number x) {
  const auto wide = static_cast<Wide>(x);
  if (kind == UnaryKind::square) return wrap(result, multiply(wide, wide));
  if (kind == UnaryKind::bitwise_invert) {
    return result == DType::bool_ ? wide == 0 : wrap(result, -1 - wide);
  }
  return wrap(result, static_cast<Wide>(real_unary(kind, x)));
}

Complex complex_unary(UnaryKind kind, Complex x) {
  switch (kind) {
    case UnaryKind::abs:
      return std::abs(x);
    case UnaryKind::sign:
      return x == Complex() ? x : x / std::abs(x);
    case UnaryKind::logical_not:
      return Number(x == Complex());
    case UnaryKind::conjugate:
      return std::conj(x);
    case UnaryKind::real:
      return x.real();
    case UnaryKind::imag:
      return x.imag();
    case UnaryKind::round:
      return {std::nearbyint(x.real()), std::nearbyint(x.imag())};
    case UnaryKind::expm1:
      return std::exp(x) - Number{1};
    case UnaryKind::log1p:
      return std::log(x + Number{1});
    case UnaryKind::log2:
      return std::log(x) / std::log(Number{2});
    case UnaryKind::isnan:
      return Number(std::isnan(x.real()) || std::isnan(x.imag()));
    case UnaryKind::isinf:
      return Number(std::isinf(x.real()) || std::isinf(x.imag()));
    case UnaryKind::isfinite:
      return Number(std::isfinite(x.real()) && std::isfinite(x.imag()));
    default:
      return smooth_unary(kind, x);
  }
}

Complex value(const Values& x, std::size_t i) {
  return {x.real[i], x.imaginary.empty() ? 0 : x.imaginary[i]};
}

void set(Values& x, std::size_t i, Complex v) {
  x.real[i] = v.real();
  if (!x.imaginary.empty()) x.imaginary[i] = v.imag();
}

bool is_whole(DType dtype) {
  return is_integer(dtype) || dtype == DType::bool_;
}

TensorSpec result_spec(const Op& op, std::initializer_list<const Values*> inputs) {
  std::vector<TensorSpec> specs;
  for (const Values* x : inputs) specs.push_back(x->spec);
  return infer(op, specs)[0];
}

}  // namespace

Number reference_activation(UnaryKind activation, Number x) {
  return real_unary(activation, x);
}

Values reference_unary(const Unary& op, const Values& x) {
  Values out(result_spec(op, {&x}));
  const DType dtype = x.spec.dtype;
  for (std::size_t i = 0; i < out.real.size(); ++i) {
    if (dtype == DType::complex64) {
      set(out, i, complex_unary(op.kind, value(x, i)));
    } else {
      out.real[i] = is_whole(dtype) ? integer_unary(op.kind, out.spec.dtype, x.real[i])
                                    : real_unary(op.kind, x.real[i]);
    }
  }
  return out;
}

Values reference_binary(const Binary& op, const Values& a, const Values& b) {
  Values out(result_spec(op, {&a, &b}));
  const DType dtype = a.spec.dtype;
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const std::size_t i = broadcast_index(a.spec.shape, index);
    const std::size_t j = broadcast_index(b.spec.shape, index);
    if (dtype == DType::complex64) {
      set(out, next++, complex_binary(op.kind, value(a, i), value(b, j)));
    } else if (is_whole(dtype)) {
      const auto x = static_cast<Wide>(a.real[i]), y = static_cast<Wide>(b.real[j]);
      out.real[next++] = wrap(out.spec.dtype, integer_binary(op.kind, dtype, x, y));
    } else {
      out.real[next++] = real_binary(op.kind, a.real[i], b.real[j]);
    }
  });
  return out;
}

Values reference_compare(const Compare& op, const Values& a, const Values& b) {
  Values out({DType::bool_, broadcast_shapes(a.spec.shape, b.spec.shape)});
  std::size_t next = 0;
  for_each_index(out.spec.shape, [&](const Dims& index) {
    const Complex x = value(a, broadcast_index(a.spec.shape, index));
    const Complex y = value(b, broadcast_index(b.spec.shape, index));
    const auto holds = [&] {
      switch (op.kind) {
        case CompareKind::equal:
          return x == y;
        case CompareKind::not_equal:
          return x != y;
        case CompareKind::less:
          return x.real() < y.real();
        case CompareKind::less_equal:
          return x.real() <= y.real();
        case CompareKind::greater:
          return x.real() > y.real();
        case CompareKind::greater_equal:
          return x.real() >= y.real();
      }
      return false;
    };
    out.real[next++] = holds();
  });
  return out;
}

Values reference_cast(const Cast& op, const Values& x) {
  Values out({op.dtype, x.spec.shape});
  for (std::size_t i = 0; i < out.real.size(); ++i) {
    if (op.dtype == DType::bool_) {
      out.real[i] = value(x, i) != Complex();
    } else if (!is_integer(op.dtype)) {
      set(out, i, value(x, i));
    } else if (is_whole(x.spec.dtype)) {
      out.real[i] = wrap(op.dtype, static_cast<Wide>(x.real[i]));
    } else {  // saturates
      const Number low = is_signed(op.dtype) ? -std::ldexp(Number{1}, bits_of(op.dtype) - 1) : 0;
      const int digits = bits_of(op.dtype) - (is_signed(op.dtype) ? 1 : 0);
      const Number high = std::ldexp(Number{1}, digits) - 1;
      const Number y = std::trunc(x.real[i]);
      out.real[i] = std::isnan(y) ? 0 : std::fmin(std::fmax(y, low), high);
    }
  }
  return out;
}

namespace {

Number identity(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::prod:
    case ReduceKind::all:
      return 1;
    case ReduceKind::max:
      return -std::numeric_limits<Number>::infinity();
    case ReduceKind::min:
      return std::numeric_limits<Number>::infinity();
    default:
      return 0;
  }
}

}  // namespace

std::complex<Number> reference_combine(ReduceKind kind, DType dtype, std::complex<Number> a,
                                       std::complex<Number> b) {
  const bool whole = is_whole(dtype);
  const auto wide = [](Complex c) { return static_cast<Wide>(c.real()); };
  switch (kind) {
    case ReduceKind::sum:
      return whole ? Complex(wrap(dtype, wide(a) + wide(b))) : a + b;
    case ReduceKind::mean:
      return a + b;
    case ReduceKind::prod:
      return whole ? Complex(wrap(dtype, multiply(wide(a), wide(b)))) : a * b;
    case ReduceKind::max:
      return real_binary(BinaryKind::maximum, a.real(), b.real());
    case ReduceKind::min:
      return real_binary(BinaryKind::minimum, a.real(), b.real());
    case ReduceKind::all:
      return Number(a != Complex() && b != Complex());
    case ReduceKind::any:
      return Number(a != Complex() || b != Complex());
  }
  return a;
}

Values reference_reduce(const Reduce& op, const Values& x) {
  Values out(result_spec(op, {&x}));
  Shape kept = x.spec.shape;
  Number count = 1;
  for (const std::int64_t axis : op.axes) {
    count *= static_cast<Number>(kept[static_cast<std::size_t>(axis)]);
    kept[static_cast<std::size_t>(axis)] = 1;
  }
  for (std::size_t i = 0; i < out.real.size(); ++i) set(out, i, identity(op.kind));
  std::size_t next = 0;
  for_each_index(x.spec.shape, [&](const Dims& index) {
    const std::size_t to = broadcast_index(kept, index);
    set(out, to, reference_combine(op.kind, out.spec.dtype, value(out, to), value(x, next++)));
  });
  for (std::size_t i = 0; op.kind == ReduceKind::mean && i < out.real.size(); ++i) {
    set(out, i, value(out, i) / count);
  }
  return out;
}

}  // namespace heddle::test
