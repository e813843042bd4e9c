// Element-wise functions.
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
Array floor(const Arg& a) {
  return within("floor", a, [&]() -> Array {
    return has_fractions(a.dtype()) ? unary(UnaryKind::floor, a) : a.array();
  });
}
Array ceil(const Arg& a) {
  return within("ceil", a, [&]() -> Array {
    return has_fractions(a.dtype()) ? unary(UnaryKind::ceil, a) : a.array();
  });
}
Array round(const Arg& a) {
  return within("round", a, [&]() -> Array {
    return has_fractions(a.dtype()) ? unary(UnaryKind::round, a) : a.array();
  });
}
Array logical_not(const Arg& a) {
  return unary(UnaryKind::logical_not, a);
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

Array clip(const Arg& a, const std::optional<Array>& lowest, const std::optional<Array>& highest) {
  return within("clip", a, [&]() -> Array {
    require(lowest || highest, ErrorCode::invalid_argument,
            "clip: neither a minimum nor a maximum was given");

    const Array raised = lowest ? maximum(a, *lowest) : a.array();
    return highest ? minimum(raised, *highest) : raised;
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

Array where(const Arg& condition, const Arg& x, const Arg& y) {
  return within("where", condition, [&]() -> Array {
    const DType dtype = promote_types(x.dtype(), y.dtype());
    return heddle::apply(Select{},
                         {astype(condition, DType::bool_), astype(x, dtype), astype(y, dtype)});
  });
}

}  // namespace heddle
