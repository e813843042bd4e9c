// Linear algebra: on matrices [..., M, N], one after another. f32 and f64 unless a function says
// more; half types and integers are refused, as in MLX. What has no result (a singular matrix, one
// that is not positive definite) fails when it is evaluated, with an error that names the matrix
// and that all its readers get. Everything runs on the CPU.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/array.h"

namespace heddle {
namespace linalg {

/// Norms over all elements (without `axis`, or with up to two axes: of vectors or matrices).
/// Without `ord` the 2-norm of all that. Of vectors any number: 0 counts what is not 0, infinities
/// are the largest and the smallest magnitude. Of matrices 1, -1, 2, -2, infinities, "fro" or "f",
/// and "nuc". Integers become f32; half types are summed in f32; of complex64 it is f32.
Array norm(const Arg& a, double ord, const std::optional<Dims>& axis = std::nullopt,
           bool keepdims = false);
Array norm(const Arg& a, double ord, int axis, bool keepdims = false);
Array norm(const Arg& a, const std::string& ord, const std::optional<Dims>& axis = std::nullopt,
           bool keepdims = false);
Array norm(const Arg& a, const std::string& ord, int axis, bool keepdims = false);
Array norm(const Arg& a, const std::optional<Dims>& axis = std::nullopt, bool keepdims = false);
Array norm(const Arg& a, int axis, bool keepdims = false);

/// Q [..., M, K] and R [..., K, N], K the smaller of both.
std::pair<Array, Array> qr(const Arg& a);
/// U [..., M, M], S [..., K] and V^H [..., N, N], S descending; or S alone. complex64 too.
std::vector<Array> svd(const Arg& a, bool compute_uv = true);
Array inv(const Arg& a);
/// Of the lower triangle, or of the upper.
Array tri_inv(const Arg& a, bool upper = false);
/// L with a = L L^T, of a's lower triangle; or U with a = U^T U, of its upper one.
Array cholesky(const Arg& a, bool upper = false);
/// The pseudo-inverse: singular values below 10 max(M, N) eps of the largest count as 0.
Array pinv(const Arg& a);
/// Of a matrix whose Cholesky factor `a` is.
Array cholesky_inv(const Arg& a, bool upper = false);
/// u32 P [..., M], L [..., M, K] and U [..., K, N]: row i of `a` is row P[i] of L U.
std::vector<Array> lu(const Arg& a);
/// L below the diagonal and U in one [..., M, N], and u32 pivots [..., K]: row i was swapped with
/// row pivots[i], for i = 0, 1, ...
std::pair<Array, Array> lu_factor(const Arg& a);
/// x with a x = b; b [N], or [..., N, K] whose leading axes broadcast with a's.
Array solve(const Arg& a, const Arg& b);
/// The same of a's lower triangle, or of its upper one.
Array solve_triangular(const Arg& a, const Arg& b, bool upper = false);
/// Of vectors of 2 or 3 elements along an axis; of two of 2, the third element of the product.
Array cross(const Arg& a, const Arg& b, int axis = -1);
/// complex64 values [..., N] in no order, and vectors [..., N, N] in columns. complex64 too.
std::pair<Array, Array> eig(const Arg& a);
Array eigvals(const Arg& a);
/// Of symmetric (or Hermitian, complex64) matrices, of whose triangles UPLO reads the lower ("L")
/// or the upper ("U"): ascending values [..., N], vectors [..., N, N] in columns.
Array eigvalsh(const Arg& a, const std::string& UPLO = "L");
std::pair<Array, Array> eigh(const Arg& a, const std::string& UPLO = "L");
/// Integers become f32; half types are computed in f32.
Array det(const Arg& a);
/// Its sign, and the logarithm of its magnitude: 0 and -inf of what is singular.
std::pair<Array, Array> slogdet(const Arg& a);

}  // namespace linalg
}  // namespace heddle
