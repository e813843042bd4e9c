// Element-wise functions.
#include <cmath>
#include <limits>
#include <numbers>

#include "array/ops_common.h"

namespace heddle {

namespace {

Array cast_to(DType dtype, const Arg& a) {
  return a.dtype() == dtype ? Array(a) : astype(a, dtype);
}

Array unary(UnaryKind kind, const Arg& a) {
  return within(to_string(kind), a, [&] {
    Node::Inputs inputs;
    inputs.push_back(a);
    return make_array(Unary{kind}, std::move(inputs));
  });
}

Array float_unary(UnaryKind kind, const Arg& a) {
  return within(to_string(kind), a,
                [&] { return unary(kind, cast_to(at_least_float(a.dtype()), a)); });
}

bool has_fractions(DType dtype) {
  return at_least_float(dtype) == dtype;
}

/// `op` of both in `dtype`.
Array pairwise(Op&& op, DType dtype, const Arg& a, const Arg& b) {
  Node::Inputs inputs;
  inputs.push_back(cast_to(dtype, a));
  inputs.push_back(cast_to(dtype, b));
  return make_array(std::move(op), std::move(inputs));
}

/// Both in the type where they meet, or in the float type above it.
Array binary(BinaryKind kind, const Arg& a, const Arg& b, bool as_float = false) {
  return within(to_string(kind), a, [&] {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    return pairwise(Binary{kind}, as_float ? at_least_float(dtype) : dtype, a, b);
  });
}

/// On the bits of integers, or of bools.
Array bitwise(BinaryKind kind, const Arg& a, const Arg& b) {
  return within(to_string(kind), a, [&] {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    require(has_fractions(a.dtype()) || has_fractions(b.dtype()) || !has_fractions(dtype),
            ErrorCode::invalid_argument, "{} and {} have no integer type in common", a.spec(),
            b.spec());
    return pairwise(Binary{kind}, dtype, a, b);
  });
}

/// `value` as a scalar of a plain dtype, rounded once.
Array number(double value, DType dtype) {
  if (dtype == DType::f64) {
    return Array::from_bytes({dtype, {}}, std::as_bytes(std::span(&value, 1)));
  }
  return astype(Array(static_cast<float>(value)), dtype);
}

bool is_real(DType dtype) {
  return dtype != DType::complex64;
}

/// For functions that leave numbers without fractions as they are.
Array rounded(UnaryKind kind, const Arg& a) {
  return within(to_string(kind), a, [&]() -> Array {
    if (has_fractions(a.dtype())) return unary(kind, a);
    return a;
  });
}

Array compare(CompareKind kind, const Arg& a, const Arg& b) {
  return within(to_string(kind), a,
                [&] { return pairwise(Compare{kind}, promote_types(a.dtype(), b.dtype()), a, b); });
}

}  // namespace

// ---- Unary

Array abs(const Arg& a) {
  return within("abs", a, [&]() -> Array {
    const DTypeKind kind = info(a.dtype()).kind;
    if (kind == DTypeKind::unsigned_int || kind == DTypeKind::boolean) return a;
    return unary(UnaryKind::abs, a);
  });
}
Array negative(const Arg& a) {
  return unary(UnaryKind::negative, a);
}
Array operator-(const Arg& a) {
  return negative(a);
}
Array positive(const Arg& a) {
  return within("positive", a, [&]() -> Array {
    require(!is_block(a.dtype()), ErrorCode::invalid_argument,
            "positive: {} is block-quantised; it must be numbers", a.spec());
    return a;
  });
}
Array sign(const Arg& a) {
  return unary(UnaryKind::sign, a);
}
Array square(const Arg& a) {
  return unary(UnaryKind::square, a);
}
Array sqrt(const Arg& a) {
  return float_unary(UnaryKind::sqrt, a);
}
Array rsqrt(const Arg& a) {
  return float_unary(UnaryKind::rsqrt, a);
}
Array reciprocal(const Arg& a) {
  return float_unary(UnaryKind::reciprocal, a);
}
Array exp(const Arg& a) {
  return float_unary(UnaryKind::exp, a);
}
Array expm1(const Arg& a) {
  return float_unary(UnaryKind::expm1, a);
}
Array log(const Arg& a) {
  return float_unary(UnaryKind::log, a);
}
Array log2(const Arg& a) {
  return float_unary(UnaryKind::log2, a);
}
Array log10(const Arg& a) {
  return float_unary(UnaryKind::log10, a);
}
Array log1p(const Arg& a) {
  return float_unary(UnaryKind::log1p, a);
}
Array sin(const Arg& a) {
  return float_unary(UnaryKind::sin, a);
}
Array cos(const Arg& a) {
  return float_unary(UnaryKind::cos, a);
}
Array tan(const Arg& a) {
  return float_unary(UnaryKind::tan, a);
}
Array sinh(const Arg& a) {
  return float_unary(UnaryKind::sinh, a);
}
Array cosh(const Arg& a) {
  return float_unary(UnaryKind::cosh, a);
}
Array tanh(const Arg& a) {
  return float_unary(UnaryKind::tanh, a);
}
Array arcsin(const Arg& a) {
  return float_unary(UnaryKind::arcsin, a);
}
Array arccos(const Arg& a) {
  return float_unary(UnaryKind::arccos, a);
}
Array arctan(const Arg& a) {
  return float_unary(UnaryKind::arctan, a);
}
Array arcsinh(const Arg& a) {
  return float_unary(UnaryKind::arcsinh, a);
}
Array arccosh(const Arg& a) {
  return float_unary(UnaryKind::arccosh, a);
}
Array arctanh(const Arg& a) {
  return float_unary(UnaryKind::arctanh, a);
}
Array degrees(const Arg& a) {
  return within("degrees", a, [&]() -> Array {
    const DType dtype = at_least_float(a.dtype());
    return multiply(cast_to(dtype, a), number(180.0 / std::numbers::pi, dtype));
  });
}
Array radians(const Arg& a) {
  return within("radians", a, [&]() -> Array {
    const DType dtype = at_least_float(a.dtype());
    return multiply(cast_to(dtype, a), number(std::numbers::pi / 180.0, dtype));
  });
}
Array sigmoid(const Arg& a) {
  return float_unary(UnaryKind::sigmoid, a);
}
Array silu(const Arg& a) {
  return float_unary(UnaryKind::silu, a);
}
Array gelu(const Arg& a) {
  return float_unary(UnaryKind::gelu, a);
}
Array gelu_tanh(const Arg& a) {
  return float_unary(UnaryKind::gelu_tanh, a);
}
Array relu(const Arg& a) {
  return within("relu", a, [&]() -> Array {
    if (has_fractions(a.dtype())) return unary(UnaryKind::relu, a);
    return maximum(a, zeros({}, a.dtype()));
  });
}
Array erf(const Arg& a) {
  return float_unary(UnaryKind::erf, a);
}
Array erfinv(const Arg& a) {
  return float_unary(UnaryKind::erfinv, a);
}
Array floor(const Arg& a) {
  return rounded(UnaryKind::floor, a);
}
Array ceil(const Arg& a) {
  return rounded(UnaryKind::ceil, a);
}
Array trunc(const Arg& a) {
  return rounded(UnaryKind::trunc, a);
}
Array round(const Arg& a) {
  return rounded(UnaryKind::round, a);
}
Array logical_not(const Arg& a) {
  return unary(UnaryKind::logical_not, a);
}
Array bitwise_invert(const Arg& a) {
  return unary(UnaryKind::bitwise_invert, a);
}
Array operator~(const Arg& a) {
  return bitwise_invert(a);
}
Array isnan(const Arg& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isnan, a) : zeros(a.shape(), DType::bool_);
}
Array isinf(const Arg& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isinf, a) : zeros(a.shape(), DType::bool_);
}
Array isfinite(const Arg& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isfinite, a) : ones(a.shape(), DType::bool_);
}

namespace {

/// Where `a` is the infinity of that sign.
Array is_infinity(const char* function, double infinity, const Arg& a) {
  return within(function, a, [&]() -> Array {
    require(!is_block(a.dtype()) && is_real(a.dtype()), ErrorCode::invalid_argument,
            "{}: {} has no infinity of one sign; it must be real numbers", function, a.spec());
    if (!has_fractions(a.dtype())) return zeros(a.shape(), DType::bool_);
    return equal(a, number(infinity, a.dtype()));
  });
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504.0;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f64:
      return std::numeric_limits<double>::max();
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

/// `part` of the real and imaginary parts, which lie side by side.
template <class Part>
Array by_parts(const Arg& a, const Part& part) {
  const Array vector = a.ndim() == 0 ? reshape(a, {1}) : a.array();
  return reshape(view(part(view(vector, DType::f32)), DType::complex64), a.shape());
}

/// Integers rounded to multiples of 10^digits, halves to even multiples.
Array rounded_integers(const Arg& a, int digits) {
  const int item_bits = static_cast<int>(item_size(a.dtype())) * 8;
  const bool is_signed = info(a.dtype()).kind == DTypeKind::signed_int;
  const double limit = std::ldexp(1.0, is_signed ? item_bits - 1 : item_bits);
  const double unit = std::pow(10.0, digits);
  if (unit >= limit) return zeros_like(a);  // beyond what the type holds: nearer to 0

  const auto integer = [&](std::int64_t value) { return astype(Array(value), a.dtype()); };
  std::int64_t exact = 1;
  for (int i = 0; i < digits && unit < 9e18; ++i) exact *= 10;
  const Array one = integer(1), units = unit < 9e18 ? integer(exact) : number(unit, a.dtype());
  const Array quotient = floor_divide(a, units), rest = remainder(a, units);
  const Array distance = subtract(units, rest);
  const Array is_odd = equal(bitwise_and(quotient, one), one);
  const Array up = logical_or(greater(rest, distance), logical_and(equal(rest, distance), is_odd));
  return multiply(add(quotient, astype(up, a.dtype())), units);
}

/// Floating numbers rounded to multiples of 10^-decimals. Powers of ten divide exactly where they
/// are whole.
Array rounded_floats(const Arg& a, int decimals) {
  const DType dtype = a.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Array x = astype(a, dtype), scale = number(std::pow(10.0, std::abs(decimals)), dtype);
  if (decimals < 0) return astype(multiply(round(divide(x, scale)), scale), a.dtype());
  return astype(divide(round(multiply(x, scale)), scale), a.dtype());
}

}  // namespace

Array isposinf(const Arg& a) {
  return is_infinity("isposinf", std::numeric_limits<double>::infinity(), a);
}
Array isneginf(const Arg& a) {
  return is_infinity("isneginf", -std::numeric_limits<double>::infinity(), a);
}

Array round(const Arg& a, int decimals) {
  return within("round", a, [&]() -> Array {
    if (decimals == 0) return round(a);
    require(std::abs(static_cast<long>(decimals)) <= 300, ErrorCode::invalid_argument,
            "round: to {} decimals; there are at most 300, before or after the point", decimals);
    if (a.dtype() == DType::complex64) {
      return by_parts(a, [&](const Array& parts) { return rounded_floats(parts, decimals); });
    }
    if (has_fractions(a.dtype())) return rounded_floats(a, decimals);
    if (decimals > 0) return a;
    if (a.dtype() == DType::bool_) return zeros_like(a);
    return rounded_integers(a, -decimals);
  });
}

Array nan_to_num(const Arg& a, float nan, std::optional<float> posinf,
                 std::optional<float> neginf) {
  return within("nan_to_num", a, [&]() -> Array {
    require(!is_block(a.dtype()), ErrorCode::invalid_argument,
            "nan_to_num: {} is block-quantised; it must be numbers", a.spec());
    if (!has_fractions(a.dtype())) return a;
    if (a.dtype() == DType::complex64) {
      return by_parts(a, [&](const Array& x) { return nan_to_num(x, nan, posinf, neginf); });
    }
    const auto replacement = [&](std::optional<float> given, double otherwise) {
      return number(given ? static_cast<double>(*given) : otherwise, a.dtype());
    };
    const double most = largest_of(a.dtype());
    const Array numbers = where(isnan(a), number(static_cast<double>(nan), a.dtype()), a);
    const Array below = where(isposinf(a), replacement(posinf, most), numbers);
    return where(isneginf(a), replacement(neginf, -most), below);
  });
}

Array clip(const Arg& a, const std::optional<Array>& lowest, const std::optional<Array>& highest) {
  return within("clip", a, [&]() -> Array {
    require(lowest || highest, ErrorCode::invalid_argument,
            "clip: neither a minimum nor a maximum was given");

    const Array raised = lowest ? maximum(a, *lowest) : a.array();
    return highest ? minimum(raised, *highest) : raised;
  });
}

Array conjugate(const Arg& a) {
  return within("conjugate", a, [&]() -> Array {
    if (is_real(a.dtype()) && !is_block(a.dtype())) return a;
    return unary(UnaryKind::conjugate, a);
  });
}
Array real(const Arg& a) {
  return within("real", a, [&]() -> Array {
    if (is_real(a.dtype()) && !is_block(a.dtype())) return a;
    return unary(UnaryKind::real, a);
  });
}
Array imag(const Arg& a) {
  return within("imag", a, [&]() -> Array {
    if (is_real(a.dtype()) && !is_block(a.dtype())) return zeros_like(a);
    return unary(UnaryKind::imag, a);
  });
}
// ---- Binary

Array add(const Arg& a, const Arg& b) {
  return binary(BinaryKind::add, a, b);
}
Array subtract(const Arg& a, const Arg& b) {
  return binary(BinaryKind::subtract, a, b);
}
Array multiply(const Arg& a, const Arg& b) {
  return binary(BinaryKind::multiply, a, b);
}
Array divide(const Arg& a, const Arg& b) {
  return binary(BinaryKind::divide, a, b, true);
}
Array floor_divide(const Arg& a, const Arg& b) {
  return binary(BinaryKind::floor_divide, a, b);
}
Array remainder(const Arg& a, const Arg& b) {
  return binary(BinaryKind::remainder, a, b);
}
std::vector<Array> divmod(const Arg& a, const Arg& b) {
  return within("divmod", a, [&]() -> std::vector<Array> {
    return {floor_divide(a, b), remainder(a, b)};
  });
}
Array power(const Arg& a, const Arg& b) {
  return binary(BinaryKind::power, a, b);
}
Array maximum(const Arg& a, const Arg& b) {
  return binary(BinaryKind::maximum, a, b);
}
Array minimum(const Arg& a, const Arg& b) {
  return binary(BinaryKind::minimum, a, b);
}
Array logaddexp(const Arg& a, const Arg& b) {
  return binary(BinaryKind::logaddexp, a, b, true);
}
Array arctan2(const Arg& a, const Arg& b) {
  return binary(BinaryKind::arctan2, a, b, true);
}
Array logical_and(const Arg& a, const Arg& b) {
  return binary(BinaryKind::logical_and, a, b);
}
Array logical_or(const Arg& a, const Arg& b) {
  return binary(BinaryKind::logical_or, a, b);
}
Array logical_xor(const Arg& a, const Arg& b) {
  return within("logical_xor", a,
                [&]() -> Array { return not_equal(logical_not(a), logical_not(b)); });
}
Array bitwise_and(const Arg& a, const Arg& b) {
  return bitwise(BinaryKind::bitwise_and, a, b);
}
Array bitwise_or(const Arg& a, const Arg& b) {
  return bitwise(BinaryKind::bitwise_or, a, b);
}
Array bitwise_xor(const Arg& a, const Arg& b) {
  return bitwise(BinaryKind::bitwise_xor, a, b);
}
Array left_shift(const Arg& a, const Arg& b) {
  return bitwise(BinaryKind::left_shift, a, b);
}
Array right_shift(const Arg& a, const Arg& b) {
  return bitwise(BinaryKind::right_shift, a, b);
}
Array equal(const Arg& a, const Arg& b) {
  return compare(CompareKind::equal, a, b);
}
Array not_equal(const Arg& a, const Arg& b) {
  return compare(CompareKind::not_equal, a, b);
}
Array less(const Arg& a, const Arg& b) {
  return compare(CompareKind::less, a, b);
}
Array less_equal(const Arg& a, const Arg& b) {
  return compare(CompareKind::less_equal, a, b);
}
Array greater(const Arg& a, const Arg& b) {
  return compare(CompareKind::greater, a, b);
}
Array greater_equal(const Arg& a, const Arg& b) {
  return compare(CompareKind::greater_equal, a, b);
}
Array operator+(const Arg& a, const Arg& b) {
  return add(a, b);
}
Array operator-(const Arg& a, const Arg& b) {
  return subtract(a, b);
}
Array operator*(const Arg& a, const Arg& b) {
  return multiply(a, b);
}
Array operator/(const Arg& a, const Arg& b) {
  return divide(a, b);
}
Array operator%(const Arg& a, const Arg& b) {
  return remainder(a, b);
}
Array operator&(const Arg& a, const Arg& b) {
  return bitwise_and(a, b);
}
Array operator|(const Arg& a, const Arg& b) {
  return bitwise_or(a, b);
}
Array operator^(const Arg& a, const Arg& b) {
  return bitwise_xor(a, b);
}
Array operator<<(const Arg& a, const Arg& b) {
  return left_shift(a, b);
}
Array operator>>(const Arg& a, const Arg& b) {
  return right_shift(a, b);
}
Array operator&&(const Arg& a, const Arg& b) {
  return logical_and(a, b);
}
Array operator||(const Arg& a, const Arg& b) {
  return logical_or(a, b);
}
Array operator==(const Arg& a, const Arg& b) {
  return equal(a, b);
}
Array operator!=(const Arg& a, const Arg& b) {
  return not_equal(a, b);
}
Array operator<(const Arg& a, const Arg& b) {
  return less(a, b);
}
Array operator<=(const Arg& a, const Arg& b) {
  return less_equal(a, b);
}
Array operator>(const Arg& a, const Arg& b) {
  return greater(a, b);
}
Array operator>=(const Arg& a, const Arg& b) {
  return greater_equal(a, b);
}

Array isclose(const Arg& a, const Arg& b, double rtol, double atol, bool equal_nan) {
  return within("isclose", a, [&]() -> Array {
    const DType dtype = at_least_float(promote_types(a.dtype(), b.dtype()));
    const Array x = astype(a, dtype), y = astype(b, dtype);
    const Array distance = abs(subtract(x, y)), size = abs(y);
    const Array allowed =
        add(multiply(size, number(rtol, size.dtype())), number(atol, size.dtype()));
    // Of infinities the distance is inf or NaN, and equality decides.
    const Array is_near = logical_and(less_equal(distance, allowed), isfinite(y));
    const Array close = logical_or(is_near, equal(x, y));
    return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
  });
}

Array allclose(const Arg& a, const Arg& b, double rtol, double atol, bool equal_nan) {
  return within("allclose", a,
                [&]() -> Array { return all(isclose(a, b, rtol, atol, equal_nan)); });
}

Array array_equal(const Arg& a, const Arg& b, bool equal_nan) {
  return within("array_equal", a, [&]() -> Array {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    if (a.shape() != b.shape()) return Array(false);
    const Array same = equal(a, b);
    if (!equal_nan || !has_fractions(dtype)) return all(same);
    return all(logical_or(same, logical_and(isnan(a), isnan(b))));
  });
}

Array where(const Arg& condition, const Arg& x, const Arg& y) {
  return within("where", condition, [&]() -> Array {
    const DType dtype = promote_types(x.dtype(), y.dtype());
    return heddle::apply(Select{},
                         {astype(condition, DType::bool_), astype(x, dtype), astype(y, dtype)});
  });
}

}  // namespace heddle
