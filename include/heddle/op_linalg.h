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

/// a [..., M, N] -> its factors, matrix by matrix (K is min(M, N)):
///   cholesky: [..., N, N], L of a = L L^T or with `upper` U of a = U^T U.  qr: Q [..., M, K] and
///   R [..., K, N].  svd: U [..., M, M], S [..., K] and V^T [..., N, N], or S without `vectors`.
///   eigh (reads the lower triangle, or with `upper` the upper): values [..., N], ascending, and
///   vectors [..., N, N] in columns.  eig: the same, complex64.  lu: u32 pivots [..., M] (row i is
///   row pivots[i] of a), L [..., M, K], U [..., K, N].  inverse; triangular_inverse (of the lower
///   triangle, or with `upper` the upper).
/// All but svd, qr and lu take square matrices only.
struct Factor {
  static constexpr std::string_view kName = "factor";
  FactorKind kind = FactorKind::cholesky;
  bool upper = false, vectors = true;
  bool operator==(const Factor&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("upper", upper), f("vectors", vectors); }
};

/// a [..., N, N], b [..., N, K] (of the same leading axes) -> x with a x = b. `triangular` reads the
/// lower triangle of a, or with `upper` the upper.
struct Solve {
  static constexpr std::string_view kName = "solve";
  bool triangular = false, upper = false;
  bool operator==(const Solve&) const = default;
  void fields(auto&& f) const { f("triangular", triangular), f("upper", upper); }
};

enum class FftKind : std::uint8_t { forward, inverse, real_forward, real_inverse };
std::string_view to_string(FftKind kind) noexcept;

/// The discrete Fourier transform of each line along `axis`, unscaled forwards and scaled by 1/n
/// backwards. forward, inverse: complex64 -> complex64.  real_forward: f32 -> complex64 with
/// n/2 + 1 elements.  real_inverse: complex64 with n/2 + 1 -> f32 with n.
struct Fft {
  static constexpr std::string_view kName = "fft";
  FftKind kind = FftKind::forward;
  std::int64_t axis = 0;
  std::int64_t n = 0;  // the length of the (real) line
  bool operator==(const Fft&) const = default;
  void fields(auto&& f) const { f("kind", kind), f("axis", axis), f("n", n); }
};

/// x [..., n] floating -> each row times the Hadamard matrix of order n, times `scale`; n is m 2^k
/// with m of 1, 12, 20 and 28.
struct Hadamard {
  static constexpr std::string_view kName = "hadamard";
  float scale = 1.0f;
  bool operator==(const Hadamard&) const = default;
  void fields(auto&& f) const { f("scale", scale); }
};

}  // namespace heddle
