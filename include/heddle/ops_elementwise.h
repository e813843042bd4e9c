// Functions of each element. Operands broadcast, and meet in the dtype that promote_types says.
// complex64 is taken by the functions that have a meaning for it; the others refuse it.
#pragma once

#include <optional>
#include <vector>

#include "heddle/array.h"

namespace heddle {

// ---- Unary. Integer arguments of transcendental functions become f32.
Array abs(const Arg& a);  // of complex64: f32
Array negative(const Arg& a);
Array operator-(const Arg& a);
Array positive(const Arg& a);
Array sign(const Arg& a);  // of complex64: z / |z|
Array square(const Arg& a);
Array sqrt(const Arg& a);
Array rsqrt(const Arg& a);
Array reciprocal(const Arg& a);
Array exp(const Arg& a);
Array expm1(const Arg& a);
Array log(const Arg& a);
Array log2(const Arg& a);
Array log10(const Arg& a);
Array log1p(const Arg& a);
Array sin(const Arg& a);
Array cos(const Arg& a);
Array tan(const Arg& a);
Array sinh(const Arg& a);
Array cosh(const Arg& a);
Array tanh(const Arg& a);
Array arcsin(const Arg& a);
Array arccos(const Arg& a);
Array arctan(const Arg& a);
Array arcsinh(const Arg& a);
Array arccosh(const Arg& a);
Array arctanh(const Arg& a);
Array degrees(const Arg& a);
Array radians(const Arg& a);
Array sigmoid(const Arg& a);
Array silu(const Arg& a);
Array gelu(const Arg& a);
Array gelu_tanh(const Arg& a);
Array relu(const Arg& a);
Array erf(const Arg& a);
Array erfinv(const Arg& a);
Array floor(const Arg& a);
Array ceil(const Arg& a);
Array trunc(const Arg& a);
/// Halves to even.
Array round(const Arg& a);
/// To multiples of 10^-decimals, in a's dtype.
Array round(const Arg& a, int decimals);
Array logical_not(const Arg& a);
Array bitwise_invert(const Arg& a);  // of integers and bools
Array operator~(const Arg& a);
Array isnan(const Arg& a);
Array isinf(const Arg& a);
Array isposinf(const Arg& a);
Array isneginf(const Arg& a);
Array isfinite(const Arg& a);
/// NaN, inf and -inf replaced; without numbers for the infinities, by the largest and the lowest
/// finite number of a's dtype.
Array nan_to_num(const Arg& a, float nan = 0.0f, std::optional<float> posinf = std::nullopt,
                 std::optional<float> neginf = std::nullopt);
/// Not above `maximum` and not below `minimum`, one of which may be left out.
Array clip(const Arg& a, const std::optional<Array>& minimum = std::nullopt,
           const std::optional<Array>& maximum = std::nullopt);
/// Of real numbers, `a` itself.
Array conjugate(const Arg& a);
Array real(const Arg& a);
Array imag(const Arg& a);  // of real numbers: zeros
/// `a`, through which no derivative flows.
Array stop_gradient(const Arg& a);

// ---- Binary
Array add(const Arg& a, const Arg& b);
Array subtract(const Arg& a, const Arg& b);
Array multiply(const Arg& a, const Arg& b);
Array divide(const Arg& a, const Arg& b);  // of integers: f32
/// Rounded towards minus infinity; the remainder has b's sign.
Array floor_divide(const Arg& a, const Arg& b);
Array remainder(const Arg& a, const Arg& b);
std::vector<Array> divmod(const Arg& a, const Arg& b);  // floor_divide and remainder
Array power(const Arg& a, const Arg& b);
Array maximum(const Arg& a, const Arg& b);
Array minimum(const Arg& a, const Arg& b);
Array logaddexp(const Arg& a, const Arg& b);
Array arctan2(const Arg& a, const Arg& b);
Array logical_and(const Arg& a, const Arg& b);
Array logical_or(const Arg& a, const Arg& b);
Array logical_xor(const Arg& a, const Arg& b);
Array bitwise_and(const Arg& a, const Arg& b);
Array bitwise_or(const Arg& a, const Arg& b);
Array bitwise_xor(const Arg& a, const Arg& b);
Array left_shift(const Arg& a, const Arg& b);
Array right_shift(const Arg& a, const Arg& b);
Array equal(const Arg& a, const Arg& b);
Array not_equal(const Arg& a, const Arg& b);
Array less(const Arg& a, const Arg& b);
Array less_equal(const Arg& a, const Arg& b);
Array greater(const Arg& a, const Arg& b);
Array greater_equal(const Arg& a, const Arg& b);
/// |a - b| <= atol + rtol * |b|; equal infinities are close, NaNs only with `equal_nan`.
Array isclose(const Arg& a, const Arg& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
/// One bool for all elements.
Array allclose(const Arg& a, const Arg& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
/// One bool: whether shapes and all elements are equal.
Array array_equal(const Arg& a, const Arg& b, bool equal_nan = false);
Array operator+(const Arg& a, const Arg& b);
Array operator-(const Arg& a, const Arg& b);
Array operator*(const Arg& a, const Arg& b);
Array operator/(const Arg& a, const Arg& b);
Array operator%(const Arg& a, const Arg& b);
Array operator&(const Arg& a, const Arg& b);
Array operator|(const Arg& a, const Arg& b);
Array operator^(const Arg& a, const Arg& b);
Array operator<<(const Arg& a, const Arg& b);
Array operator>>(const Arg& a, const Arg& b);
Array operator&&(const Arg& a, const Arg& b);
Array operator||(const Arg& a, const Arg& b);
Array operator==(const Arg& a, const Arg& b);
Array operator!=(const Arg& a, const Arg& b);
Array operator<(const Arg& a, const Arg& b);
Array operator<=(const Arg& a, const Arg& b);
Array operator>(const Arg& a, const Arg& b);
Array operator>=(const Arg& a, const Arg& b);
Array where(const Arg& condition, const Arg& x, const Arg& y);

}  // namespace heddle
