// By how much element-wise functions and reductions may differ from the exact value, and what
// numbers they are tried on.
#pragma once

#include <cmath>

#include "support/conformance.h"

namespace heddle::test {

inline Fill elementwise_fill(DType dtype) {
  if (is_integer(dtype)) return {-20, 20, true};
  return {-2, 2, dtype != DType::complex64};
}

/// Library functions are within 2 ulp, the project's own within 4, where results are normal
/// numbers; half types round once more.
inline Tolerance elementwise_tolerance(DType dtype) {
  if (dtype == DType::f16 || dtype == DType::bf16) return {0.51, 1e-36};
  if (dtype == DType::complex64) return {4, 2e-6};
  return {4, dtype == DType::f64 ? 0 : 1e-36};
}

/// Products whose factors are rounded: where the argument of a tail is, several times over.
inline Tolerance unary_tolerance(UnaryKind kind, DType dtype) {
  Tolerance tolerance = elementwise_tolerance(dtype);
  const bool product = kind == UnaryKind::gelu || kind == UnaryKind::gelu_tanh;
  if (product && (dtype == DType::f32 || dtype == DType::f64)) tolerance.ulps = 12;
  return tolerance;
}

inline Tolerance binary_tolerance(BinaryKind kind, DType dtype) {
  Tolerance tolerance = elementwise_tolerance(dtype);
  // Where two logarithms cancel, only the absolute error is small.
  if (kind == BinaryKind::logaddexp) tolerance.absolute = dtype == DType::f64 ? 1e-15 : 3e-7;
  if (kind == BinaryKind::power && dtype == DType::complex64) tolerance = {2, 2e-6};
  return tolerance;
}

/// `count` numbers of at most `size` each are added, or multiplied.
inline Tolerance reduce_tolerance(DType dtype, ReduceKind kind, std::int64_t count, double size) {
  const bool product = kind == ReduceKind::prod;
  if (kind != ReduceKind::sum && kind != ReduceKind::mean && !product) return {};
  const double epsilon = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  const auto n = static_cast<double>(count);
  const double terms = kind == ReduceKind::mean ? 1 : n;
  // Blocked and pairwise: the error grows far slower than the number of terms.
  const double absolute = product ? 0 : epsilon * size * terms * (2 + std::sqrt(n) / 8);
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  if (product && dtype == DType::complex64) return {2 + n, 1e-4};
  return {half      ? 0.52
          : product ? 2 + n
                    : 1,
          dtype == DType::complex64 ? 8 * absolute + 1e-6 : absolute};
}

/// `count` numbers of at most `size` each are combined one after another, by a device that may have
/// no double to do it in.
inline Tolerance scan_tolerance(DType dtype, ScanKind kind, std::int64_t count, double size) {
  if (kind == ScanKind::sum) return reduce_tolerance(dtype, ReduceKind::sum, count, size);
  if (kind == ScanKind::prod) return reduce_tolerance(dtype, ReduceKind::prod, count, size);
  if (kind != ScanKind::logaddexp) return {};
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  const auto n = static_cast<double>(count);
  const double largest = size + std::log(n + 1);
  return {half ? 0.52 : 1, 2e-6 + 0x1p-24 * largest * n / 4};
}

/// Numbers that neither overflow nor vanish when they are combined.
inline Fill reduce_fill(DType dtype, ReduceKind kind) {
  // Means of 64-bit integers are taken in double, which extremes overwhelm.
  const bool wide_mean = kind == ReduceKind::mean && is_integer(dtype) && item_size(dtype) == 8;
  if (is_integer(dtype)) return {-90, 90, !wide_mean};
  if (kind == ReduceKind::prod && dtype == DType::complex64) return {0.6, 0.8};  // about 1 in size
  if (kind == ReduceKind::prod) return {0.9, 1.1};
  return {-2, 2, kind == ReduceKind::max || kind == ReduceKind::min};
}

}  // namespace heddle::test
