// Element-wise ops backwards: the cotangent times the (conjugated) derivative.
#include <numbers>

#include "base/check.h"
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

using std::numbers::pi;

Array sigmoid_slope(const Array& y) {
  return y * (1 - y);
}

/// d/dx of x * Phi(x), Phi being the normal distribution.
Array gelu_slope(const Array& x) {
  const Array phi =
      exp(square(x) * scalar(-0.5, x.dtype())) * scalar(1 / std::sqrt(2 * pi), x.dtype());
  const Array area =
      (erf(x * scalar(std::numbers::sqrt2 / 2, x.dtype())) + 1) * scalar(0.5, x.dtype());
  return area + x * phi;
}

/// d/dx of x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3).
Array gelu_tanh_slope(const Array& x) {
  const double root = std::sqrt(2 / pi);
  const Array x2 = square(x);
  const Array t = tanh(x * (x2 * scalar(root * 0.044715, x.dtype()) + scalar(root, x.dtype())));
  const Array u_slope = x2 * scalar(3 * root * 0.044715, x.dtype()) + scalar(root, x.dtype());
  return ((1 + t) + x * (1 - square(t)) * u_slope) * scalar(0.5, x.dtype());
}

/// |x| of complex x: x / |x|, and 0 at 0; of real x, the sign.
Array abs_slope(const Array& x, const Array& y) {
  if (x.dtype() != DType::complex64) return sign(x);
  const Array away = y != 0;
  return where(away, x / where(away, y, ones_like(y)), zeros_like(x));
}

/// The derivative of a function that is analytic, or real, at x, where it is y. Nothing for steps.
std::optional<Array> slope(UnaryKind kind, const Array& x, const Array& y) {
  const auto constant = [&](double value) { return scalar(value, x.dtype()); };
  switch (kind) {
    case UnaryKind::square:
      return x * constant(2);
    case UnaryKind::sqrt:
      return constant(0.5) / y;
    case UnaryKind::rsqrt:
      return constant(-0.5) * y / x;
    case UnaryKind::reciprocal:
      return -square(y);
    case UnaryKind::exp:
      return y;
    case UnaryKind::expm1:
      return y + 1;
    case UnaryKind::log:
      return reciprocal(x);
    case UnaryKind::log2:
      return constant(1 / std::numbers::ln2) / x;
    case UnaryKind::log10:
      return constant(1 / std::numbers::ln10) / x;
    case UnaryKind::log1p:
      return reciprocal(1 + x);
    case UnaryKind::sin:
      return cos(x);
    case UnaryKind::cos:
      return -sin(x);
    case UnaryKind::tan:
      return 1 + square(y);
    case UnaryKind::sinh:
      return cosh(x);
    case UnaryKind::cosh:
      return sinh(x);
    case UnaryKind::tanh:
      return 1 - square(y);
    case UnaryKind::arcsin:
      return rsqrt(1 - square(x));
    case UnaryKind::arccos:
      return -rsqrt(1 - square(x));
    case UnaryKind::arctan:
      return reciprocal(1 + square(x));
    case UnaryKind::arcsinh:
      return rsqrt(1 + square(x));
    case UnaryKind::arccosh:
      return rsqrt(square(x) - 1);
    case UnaryKind::arctanh:
      return reciprocal(1 - square(x));
    case UnaryKind::sigmoid:
      return sigmoid_slope(y);
    case UnaryKind::silu: {
      const Array s = sigmoid(x);
      return s + x * sigmoid_slope(s);
    }
    case UnaryKind::gelu:
      return gelu_slope(x);
    case UnaryKind::gelu_tanh:
      return gelu_tanh_slope(x);
    case UnaryKind::erf:
      return constant(2 / std::sqrt(pi)) * exp(-square(x));
    case UnaryKind::erfinv:
      return constant(std::sqrt(pi) / 2) * exp(square(y));
    default:
      return std::nullopt;
  }
}

/// The half types' slopes are computed in f32, and rounded as the product with the cotangent is.
Array times_slope(const Array& g, const Array& slope) {
  return astype(widened(g) * conjugate(slope), g.dtype());
}

std::optional<Array> unary_vjp(UnaryKind kind, const Array& x, const Array& y, const Array& g) {
  switch (kind) {
    case UnaryKind::negative:
      return -g;
    case UnaryKind::abs:
      return astype(g, x.dtype()) * abs_slope(x, y);
    case UnaryKind::relu:
      return where(x > 0, g, zeros_like(g));
    case UnaryKind::conjugate:
      return conjugate(g);
    case UnaryKind::real:
      return astype(g, x.dtype());
    case UnaryKind::imag: {
      const std::complex<float> i{0, 1};
      const Array unit(std::span(&i, 1), Shape{});
      return x.dtype() == DType::complex64 ? std::optional(astype(g, x.dtype()) * unit)
                                           : std::nullopt;
    }
    default:
      break;
  }
  const Array wide = widened(x);
  const std::optional<Array> found = slope(kind, wide, widened(y));
  if (!found) return std::nullopt;
  return times_slope(g, *found);
}

/// Where both are the larger, the first is taken.
Array chosen(const Array& here, const Array& g) {
  return where(here, g, zeros_like(g));
}

/// g b a^(b-1) and g a^b log(a), where a zero power or base gives no NaN.
InputCotangents power_vjp(const Array& a, const Array& b, const Array& y, const Array& g) {
  const Array one = ones_like(a);
  const Array still = b == 0;
  const Array slope = where(still, zeros_like(y), b * power(a, where(still, one, b - one)));
  const Array at_zero = a == 0;
  const Array growth = where(at_zero, zeros_like(y), y * log(where(at_zero, one, a)));
  return {g * conjugate(slope), g * conjugate(growth)};
}

InputCotangents logaddexp_vjp(const Array& a, const Array& b, const Array& g) {
  // Shares of the sum; of two infinities, half each.
  const Array share = where(a == b, scalar(0.5, a.dtype()), sigmoid(a - b));
  return {g * share, g * (1 - share)};
}

InputCotangents binary_vjp(BinaryKind kind, const Array& a, const Array& b, const Array& y,
                           const Array& g) {
  switch (kind) {
    case BinaryKind::add:
      return {g, g};
    case BinaryKind::subtract:
      return {g, -g};
    case BinaryKind::multiply:
      return {g * conjugate(b), g * conjugate(a)};
    case BinaryKind::divide:
      return {g / conjugate(b), -(g * conjugate(y / b))};
    case BinaryKind::remainder:
      return {g, -(g * floor_divide(a, b))};
    case BinaryKind::power:
      return power_vjp(a, b, y, g);
    case BinaryKind::maximum:
      return {chosen(a >= b, g), chosen(a < b, g)};
    case BinaryKind::minimum:
      return {chosen(a <= b, g), chosen(a > b, g)};
    case BinaryKind::logaddexp:
      return logaddexp_vjp(a, b, g);
    case BinaryKind::arctan2: {
      const Array scaled = g / (square(a) + square(b));
      return {scaled * b, -(scaled * a)};
    }
    default:
      return {std::nullopt, std::nullopt};
  }
}

}  // namespace

InputCotangents vjp_rule(const Unary& op, const Backward& b) {
  return {unary_vjp(op.kind, b.in[0], b.out[0], b.g())};
}

InputCotangents vjp_rule(const Binary& op, const Backward& b) {
  const DType dtype = b.in[0].dtype();
  if (!is_differentiable(b.out[0].dtype())) return {std::nullopt, std::nullopt};
  InputCotangents found =
      binary_vjp(op.kind, widened(b.in[0]), widened(b.in[1]), widened(b.out[0]), widened(b.g()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (found[i]) found[i] = astype(sum_to(*found[i], b.in[i].shape()), dtype);
  }
  return found;
}

InputCotangents vjp_rule(const Select&, const Backward& b) {
  const Array g = b.g(), none = zeros_like(g);
  return {std::nullopt, sum_to(where(b.in[0], g, none), b.in[1].shape()),
          sum_to(where(b.in[0], none, g), b.in[2].shape())};
}

InputCotangents vjp_rule(const GatedMultiply& op, const Backward& b) {
  const Array gate = widened(b.in[0]), up = widened(b.in[1]), g = widened(b.g());
  const Array active = heddle::apply(Unary{op.activation}, {gate});
  const std::optional<Array> to_gate = unary_vjp(op.activation, gate, active, g * up);
  return {astype(*to_gate, b.in[0].dtype()), astype(g * active, b.in[1].dtype())};
}

InputCotangents vjp_rule(const Fused& op, const Backward& b) {
  const ArraysFunction parts = [&](const std::vector<Array>& in) {
    std::vector<Array> values = in;
    for (const ElementStep& step : op.program->steps) {
      std::vector<Array> operands;
      for (std::size_t i = 0; i < operand_count(step); ++i) {
        operands.push_back(values[step.operands[i]]);
      }
      const Op part = std::visit([](const auto& o) { return Op(o); }, step.op);
      values.push_back(heddle::apply(part, std::move(operands)));
    }
    return std::vector<Array>{values.back()};
  };
  return vjp_of_parts(parts, b);
}

}  // namespace heddle
