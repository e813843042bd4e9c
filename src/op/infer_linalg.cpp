#include <algorithm>
#include <bit>
#include <cmath>

#include "op/infer.h"

namespace heddle {

namespace {

bool takes_complex(FactorKind kind) {
  return kind == FactorKind::svd || kind == FactorKind::eigh || kind == FactorKind::eig;
}

bool takes_any_shape(FactorKind kind) {
  return kind == FactorKind::svd || kind == FactorKind::qr || kind == FactorKind::lu;
}

bool is_wide_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

void check_factored(const Factor& op, const Operands& in) {
  in.check_count(1, "a");
  const TensorSpec& a = in[0];
  in.check_min_rank(0, 2, "a");
  const bool complex = takes_complex(op.kind);
  in.check(is_wide_float(a.dtype) || (complex && a.dtype == DType::complex64),
           "a is {}; for {} it must be f32{}", a, to_string(op.kind),
           complex ? ", f64 or complex64" : " or f64");
  in.check(takes_any_shape(op.kind) || a.shape[a.shape.size() - 2] == a.shape.back(),
           "the matrices of a, {}, are not square, as {} needs them", a, to_string(op.kind));
}

/// `shape` with other last axes.
Shape with_last(const Shape& shape, std::initializer_list<std::int64_t> last) {
  Shape result(std::span(shape.begin(), shape.size() - 2));
  for (const std::int64_t extent : last) result.push_back(extent);
  return result;
}

}  // namespace

Specs infer_op(const Factor& op, const Operands& in) {
  check_factored(op, in);
  const auto& [dtype, shape] = in[0];
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const std::int64_t k = std::min(rows, columns);
  const DType real = dtype == DType::complex64 ? DType::f32 : dtype;
  Specs specs;
  switch (op.kind) {
    case FactorKind::cholesky:
    case FactorKind::inverse:
    case FactorKind::triangular_inverse:
      return {in[0]};
    case FactorKind::qr:
      return {{dtype, with_last(shape, {rows, k})}, {dtype, with_last(shape, {k, columns})}};
    case FactorKind::svd:
      if (op.vectors) specs.push_back({dtype, with_last(shape, {rows, rows})});
      specs.push_back({real, with_last(shape, {k})});
      if (op.vectors) specs.push_back({dtype, with_last(shape, {columns, columns})});
      return specs;
    case FactorKind::eigh:
      specs.push_back({real, with_last(shape, {k})});
      if (op.vectors) specs.push_back(in[0]);
      return specs;
    case FactorKind::eig:
      specs.push_back({DType::complex64, with_last(shape, {k})});
      if (op.vectors) specs.push_back({DType::complex64, shape});
      return specs;
    case FactorKind::lu:
      specs.push_back(in[0]);
      specs.push_back({DType::u32, with_last(shape, {k})});
      specs.push_back({DType::u32, with_last(shape, {rows})});
      return specs;
  }
  in.check(false, "of an unknown kind");
  return {};
}

Specs infer_op(const Solve&, const Operands& in) {
  in.check_count(2, "a, b");
  in.check_min_rank(0, 2, "a");
  in.check_min_rank(1, 2, "b");
  in.check_one_dtype();
  in.check(is_wide_float(in[0].dtype), "a is {}; it must be f32 or f64", in[0]);
  const Shape &a = in[0].shape, &b = in[1].shape;
  in.check(a[a.size() - 2] == a.back(), "the matrices of {} are not square", in[0]);
  in.check(b.size() == a.size() && b == with_last(a, {a.back(), b.back()}),
           "b is {}; for a {} it must have its leading axes and as many rows", in[1], in[0]);
  return {in[1]};
}

Specs infer_op(const Fft& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_axis(0, op.axis);
  in.check(op.n >= 1, "of {} elements; there must be at least 1", op.n);
  const DType from = op.kind == FftKind::real_forward ? DType::f32 : DType::complex64;
  in.check(in[0].dtype == from, "{} of {}; it must be {}", to_string(op.kind), in[0],
           to_string(from));
  const std::int64_t half = op.n / 2 + 1;
  const std::int64_t length = op.kind == FftKind::real_inverse ? half : op.n;
  in.check(in[0].shape[op.axis] == length, "{} to {} elements along axis {} of {}; it must have {}",
           to_string(op.kind), op.n, op.axis, in[0], length);
  Shape result = in[0].shape;
  result[op.axis] = op.kind == FftKind::real_forward ? half : op.n;
  return {{op.kind == FftKind::real_inverse ? DType::f32 : DType::complex64, result}};
}

std::int64_t hadamard_order(std::int64_t n) noexcept {
  for (const std::int64_t m : {1, 12, 20, 28}) {
    if (n > 0 && n % m == 0 && std::has_single_bit(static_cast<std::uint64_t>(n / m))) return m;
  }
  return 0;
}

Specs infer_op(const Hadamard& op, const Operands& in) {
  in.check_count(1, "x");
  in.check_min_rank(0, 1, "x");
  in.check_floating(0, "x");
  in.check(std::isfinite(op.scale), "scale {}; it must be finite", op.scale);
  in.check(hadamard_order(in[0].shape.back()) > 0,
           "rows of {} elements in {}; they must have m 2^k with m of 1, 12, 20 or 28",
           in[0].shape.back(), in[0]);
  return {in[0]};
}

}  // namespace heddle
