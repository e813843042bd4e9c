// Products of all kinds, and windows. Operands meet in the type that both promote to.
#pragma once

#include <optional>
#include <source_location>

#include "heddle/array.h"

namespace heddle {

/// Products of matrices [..., M, K] and [..., K, N], whose leading axes broadcast. A vector counts
/// as one row on the left, as one column on the right, and that axis is gone from the result.
/// Floating and complex64 only: throws invalid_argument for integers, as MLX does.
Array matmul(const Arg& a, const Arg& b);
/// beta * c + alpha * (a @ b); c broadcasts to the product.
Array addmm(const Arg& c, const Arg& a, const Arg& b, float alpha = 1.0f, float beta = 1.0f);
/// Sums of products over the last axes: [..., K] and [,,, K] give [..., ,,,]. A scalar multiplies.
Array inner(const Arg& a, const Arg& b);
/// Every element of `a` times every one of `b`, flattened: [a.size(), b.size()].
Array outer(const Arg& a, const Arg& b);
/// Kronecker's product: blocks of `b`, each times an element of `a`.
Array kron(const Arg& a, const Arg& b);
/// Sums of products over the last `axis` axes of a and the first of b.
Array tensordot(const Arg& a, const Arg& b, int axis = 2);
/// The same over the axes named, pair by pair.
Array tensordot(const Arg& a, const Arg& b, const Dims& axes_a, const Dims& axes_b);
/// Sums of conj(a) * b along an axis of both, which have to agree there; the others broadcast.
Array vecdot(const Arg& a, const Arg& b, int axis = -1);
/// Rows (along the last axis, of m 2^k elements with m of 1, 12, 20 or 28) times a Hadamard matrix,
/// times `scale`, by default 1 / sqrt(n). Integers become f32.
Array hadamard_transform(const Arg& a, std::optional<float> scale = std::nullopt);

// ---- Windows of M elements, f32; empty ones where M < 1.
Array bartlett(int M, std::source_location where = std::source_location::current());
Array blackman(int M, std::source_location where = std::source_location::current());
Array hamming(int M, std::source_location where = std::source_location::current());
Array hanning(int M, std::source_location where = std::source_location::current());

}  // namespace heddle
