// Element-wise functions.
#include "array/ops_common.h"

namespace heddle {

namespace {

Array unary(UnaryKind kind, const Array& a) {
  return heddle::apply(Unary{kind}, {a});
}

Array float_unary(UnaryKind kind, const Array& a) {
  return unary(kind, astype(a, at_least_float(a.dtype())));
}

bool has_fractions(DType dtype) {
  return at_least_float(dtype) == dtype;
}

/// Both in the type where they meet, or in the float type above it.
Array binary(BinaryKind kind, const Array& a, const Array& b, bool as_float = false) {
  return within(to_string(kind), [&] {
    DType dtype = promote_types(a.dtype(), b.dtype());
    if (as_float) dtype = at_least_float(dtype);
    return heddle::apply(Binary{kind}, {astype(a, dtype), astype(b, dtype)});
  });
}

/// On the bits of integers, or of bools.
Array bitwise(BinaryKind kind, const Array& a, const Array& b) {
  return within(to_string(kind), [&] {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    require(has_fractions(a.dtype()) || has_fractions(b.dtype()) || !has_fractions(dtype),
            ErrorCode::invalid_argument, "{} and {} have no integer type in common", a.spec(),
            b.spec());
    return heddle::apply(Binary{kind}, {astype(a, dtype), astype(b, dtype)});
  });
}

Array compare(CompareKind kind, const Array& a, const Array& b) {
  return within(to_string(kind), [&] {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    return heddle::apply(Compare{kind}, {astype(a, dtype), astype(b, dtype)});
  });
}

}  // namespace

// ---- Unary

Array abs(const Array& a) {
  const DTypeKind kind = info(a.dtype()).kind;
  if (kind == DTypeKind::unsigned_int || kind == DTypeKind::boolean) return a;
  return unary(UnaryKind::abs, a);
}
Array negative(const Array& a) {
  return unary(UnaryKind::negative, a);
}
Array operator-(const Array& a) {
  return negative(a);
}
Array sign(const Array& a) {
  return unary(UnaryKind::sign, a);
}
Array square(const Array& a) {
  return unary(UnaryKind::square, a);
}
Array sqrt(const Array& a) {
  return float_unary(UnaryKind::sqrt, a);
}
Array rsqrt(const Array& a) {
  return float_unary(UnaryKind::rsqrt, a);
}
Array reciprocal(const Array& a) {
  return float_unary(UnaryKind::reciprocal, a);
}
Array exp(const Array& a) {
  return float_unary(UnaryKind::exp, a);
}
Array expm1(const Array& a) {
  return float_unary(UnaryKind::expm1, a);
}
Array log(const Array& a) {
  return float_unary(UnaryKind::log, a);
}
Array log2(const Array& a) {
  return float_unary(UnaryKind::log2, a);
}
Array log10(const Array& a) {
  return float_unary(UnaryKind::log10, a);
}
Array log1p(const Array& a) {
  return float_unary(UnaryKind::log1p, a);
}
Array sin(const Array& a) {
  return float_unary(UnaryKind::sin, a);
}
Array cos(const Array& a) {
  return float_unary(UnaryKind::cos, a);
}
Array tan(const Array& a) {
  return float_unary(UnaryKind::tan, a);
}
Array sinh(const Array& a) {
  return float_unary(UnaryKind::sinh, a);
}
Array cosh(const Array& a) {
  return float_unary(UnaryKind::cosh, a);
}
Array tanh(const Array& a) {
  return float_unary(UnaryKind::tanh, a);
}
Array arcsin(const Array& a) {
  return float_unary(UnaryKind::arcsin, a);
}
Array arccos(const Array& a) {
  return float_unary(UnaryKind::arccos, a);
}
Array arctan(const Array& a) {
  return float_unary(UnaryKind::arctan, a);
}
Array sigmoid(const Array& a) {
  return float_unary(UnaryKind::sigmoid, a);
}
Array silu(const Array& a) {
  return float_unary(UnaryKind::silu, a);
}
Array gelu(const Array& a) {
  return float_unary(UnaryKind::gelu, a);
}
Array gelu_tanh(const Array& a) {
  return float_unary(UnaryKind::gelu_tanh, a);
}
Array relu(const Array& a) {
  if (has_fractions(a.dtype())) return unary(UnaryKind::relu, a);
  return maximum(a, zeros({}, a.dtype()));
}
Array erf(const Array& a) {
  return float_unary(UnaryKind::erf, a);
}
Array floor(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::floor, a) : a;
}
Array ceil(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::ceil, a) : a;
}
Array round(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::round, a) : a;
}
Array logical_not(const Array& a) {
  return unary(UnaryKind::logical_not, a);
}
Array isnan(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isnan, a) : zeros(a.shape(), DType::bool_);
}
Array isinf(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isinf, a) : zeros(a.shape(), DType::bool_);
}
Array isfinite(const Array& a) {
  return has_fractions(a.dtype()) ? unary(UnaryKind::isfinite, a) : ones(a.shape(), DType::bool_);
}

Array clip(const Array& a, const std::optional<Array>& lowest,
           const std::optional<Array>& highest) {
  require(lowest || highest, ErrorCode::invalid_argument,
          "clip: neither a minimum nor a maximum was given");
  return within("clip", [&] {
    const Array raised = lowest ? maximum(a, *lowest) : a;
    return highest ? minimum(raised, *highest) : raised;
  });
}

// ---- Binary

Array add(const Array& a, const Array& b) {
  return binary(BinaryKind::add, a, b);
}
Array subtract(const Array& a, const Array& b) {
  return binary(BinaryKind::subtract, a, b);
}
Array multiply(const Array& a, const Array& b) {
  return binary(BinaryKind::multiply, a, b);
}
Array divide(const Array& a, const Array& b) {
  return binary(BinaryKind::divide, a, b, true);
}
Array floor_divide(const Array& a, const Array& b) {
  return binary(BinaryKind::floor_divide, a, b);
}
Array remainder(const Array& a, const Array& b) {
  return binary(BinaryKind::remainder, a, b);
}
Array power(const Array& a, const Array& b) {
  return binary(BinaryKind::power, a, b);
}
Array maximum(const Array& a, const Array& b) {
  return binary(BinaryKind::maximum, a, b);
}
Array minimum(const Array& a, const Array& b) {
  return binary(BinaryKind::minimum, a, b);
}
Array logaddexp(const Array& a, const Array& b) {
  return binary(BinaryKind::logaddexp, a, b, true);
}
Array arctan2(const Array& a, const Array& b) {
  return binary(BinaryKind::arctan2, a, b, true);
}
Array logical_and(const Array& a, const Array& b) {
  return binary(BinaryKind::logical_and, a, b);
}
Array logical_or(const Array& a, const Array& b) {
  return binary(BinaryKind::logical_or, a, b);
}
Array bitwise_and(const Array& a, const Array& b) {
  return bitwise(BinaryKind::bitwise_and, a, b);
}
Array bitwise_or(const Array& a, const Array& b) {
  return bitwise(BinaryKind::bitwise_or, a, b);
}
Array bitwise_xor(const Array& a, const Array& b) {
  return bitwise(BinaryKind::bitwise_xor, a, b);
}
Array left_shift(const Array& a, const Array& b) {
  return bitwise(BinaryKind::left_shift, a, b);
}
Array right_shift(const Array& a, const Array& b) {
  return bitwise(BinaryKind::right_shift, a, b);
}
Array equal(const Array& a, const Array& b) {
  return compare(CompareKind::equal, a, b);
}
Array not_equal(const Array& a, const Array& b) {
  return compare(CompareKind::not_equal, a, b);
}
Array less(const Array& a, const Array& b) {
  return compare(CompareKind::less, a, b);
}
Array less_equal(const Array& a, const Array& b) {
  return compare(CompareKind::less_equal, a, b);
}
Array greater(const Array& a, const Array& b) {
  return compare(CompareKind::greater, a, b);
}
Array greater_equal(const Array& a, const Array& b) {
  return compare(CompareKind::greater_equal, a, b);
}
Array operator+(const Array& a, const Array& b) {
  return add(a, b);
}
Array operator-(const Array& a, const Array& b) {
  return subtract(a, b);
}
Array operator*(const Array& a, const Array& b) {
  return multiply(a, b);
}
Array operator/(const Array& a, const Array& b) {
  return divide(a, b);
}
Array operator%(const Array& a, const Array& b) {
  return remainder(a, b);
}
Array operator==(const Array& a, const Array& b) {
  return equal(a, b);
}
Array operator!=(const Array& a, const Array& b) {
  return not_equal(a, b);
}
Array operator<(const Array& a, const Array& b) {
  return less(a, b);
}
Array operator<=(const Array& a, const Array& b) {
  return less_equal(a, b);
}
Array operator>(const Array& a, const Array& b) {
  return greater(a, b);
}
Array operator>=(const Array& a, const Array& b) {
  return greater_equal(a, b);
}

Array where(const Array& condition, const Array& x, const Array& y) {
  return within("where", [&] {
    const DType dtype = promote_types(x.dtype(), y.dtype());
    return heddle::apply(Select{},
                         {astype(condition, DType::bool_), astype(x, dtype), astype(y, dtype)});
  });
}

}  // namespace heddle
