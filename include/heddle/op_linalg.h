// Linear algebra and transforms of whole lines or matrices.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

enum class FactorKind : std::uint8_t {
  cholesky,
  qr,
  svd,
  eigh,
  eig,
  lu,
  inverse,
  triangular_inverse
};
std::string_view to_string(FactorKind kind) noexcept;

/// a [..., M, N], f32 or f64 -> its factors, matrix by matrix (K is min(M, N)):
///   cholesky: [..., N, N], L of a = L L^T or with `upper` U of a = U^T U; reads that triangle.
///   qr: Q [..., M, K] and R [..., K, N].
///   svd: U [..., M, M], S [..., K] and V^H [..., N, N], or S without `vectors`; S descends.
///   eigh: values [..., N], ascending, and vectors [..., N, N] in columns, or the values without
///     `vectors`; reads the lower triangle, or with `upper` the upper.
///   eig: the same, complex64, in no order.
///   lu: L below the diagonal and U [..., M, N], u32 pivots [..., K] (row i was swapped with row
///     pivots[i], for i = 0, 1, ...) and u32 rows [..., M] (row i of a is row rows[i] of L U).
///   inverse; triangular_inverse (of the lower triangle, or with `upper` the upper).
/// svd, eigh and eig also take complex64, whose singular values and eigh's values are f32. All but
/// svd, qr and lu take square matrices only. A matrix that has no such factors fails when it is
/// computed, by its number; svd, eigh and eig refuse infinities and NaN.
struct Factor {
  static constexpr std::string_view kName = "factor";
  FactorKind kind = FactorKind::cholesky;
  bool upper = false, vectors = true;
  bool operator==(const Factor&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("upper", upper), f("vectors", vectors); }
};

/// a [..., N, N], b [..., N, K] (f32 or f64, of the same leading axes) -> x [..., N, K] with
/// a x = b. `triangular` reads the lower triangle of a, or with `upper` the upper. A singular
/// matrix fails when it is computed.
struct Solve {
  static constexpr std::string_view kName = "solve";
  bool triangular = false, upper = false;
  bool operator==(const Solve&) const = default;
  void fields(auto&& f) const { f("triangular", triangular), f("upper", upper); }
};

enum class FftKind : std::uint8_t { forward, inverse, real_forward, real_inverse };
std::string_view to_string(FftKind kind) noexcept;

/// The discrete Fourier transform of each line along `axis`: sums of x[j] w^(jk), with
/// w = e^(-2 pi i / n) forwards, and backwards w = e^(2 pi i / n), divided by n.  forward, inverse:
/// complex64 [n] -> complex64 [n].  real_forward: f32 [n] -> complex64 [n/2 + 1].  real_inverse:
/// complex64 [n/2 + 1] -> f32 [n], taking the rest of the line as the conjugates of what is there.
struct Fft {
  static constexpr std::string_view kName = "fft";
  FftKind kind = FftKind::forward;
  std::int64_t axis = 0;
  std::int64_t n = 0;  // the length of the line, of the real one where one is real
  bool operator==(const Fft&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axis", axis), f("n", n); }
};

/// x [..., n] floating -> each row times the Hadamard matrix of order n, times `scale`; n is m 2^k
/// with m of 1, 12, 20 and 28. The matrix is the product (Kronecker's) of one of order m, Paley's
/// second of 12 and Williamson's of 20 and 28, as in MLX, and Sylvester's of 2^k.
struct Hadamard {
  static constexpr std::string_view kName = "hadamard";
  float scale = 1.0f;
  bool operator==(const Hadamard&) const = default;
  void fields(auto&& f) const { f("scale", scale); }
};

/// The m of such an n, or 0 if it is none.
std::int64_t hadamard_order(std::int64_t n) noexcept;

}  // namespace heddle
