// Factors, equations and transforms backwards. The formulas are those of M. Giles, "An extended
// collection of matrix derivative results for forward and reverse mode" (2008), but that what is
// read of one triangle only gets a cotangent there only.
#include <complex>

#include "base/check.h"
#include "heddle/linalg.h"
#include "tensor/format.h"
#include "transform/record.h"
#include "transform/vjp.h"

namespace heddle {

namespace {

Array turned(const Array& a) {
  return conjugate(swapaxes(a, -1, -2));
}

Array diagonal_part(const Array& a) {
  return tril(triu(a));
}
/// [..., N] as the diagonals of [..., N, N].
Array as_diagonal(const Array& a) {
  const std::int64_t n = a.shape(-1);
  Shape shape = a.shape();
  shape.push_back(n);
  return diagonal_part(broadcast_to(expand_dims(a, -1), shape));
}

/// a^-1 b and b a^-1 for a triangular a.
Array left_solve(const Array& a, const Array& b, bool upper) {
  return heddle::apply(Solve{true, upper}, {a, b});
}
Array right_solve(const Array& b, const Array& a, bool upper) {
  return swapaxes(left_solve(swapaxes(a, -1, -2), swapaxes(b, -1, -2), !upper), -1, -2);
}

/// The cotangent of a symmetric matrix, where one triangle alone was read.
Array of_triangle(const Array& g, bool upper) {
  const Array both = g + turned(g) - diagonal_part(g);
  return upper ? triu(both) : tril(both);
}

/// By the matrix that L L^T makes: L^-T Phi(L^T g) L^-1, where Phi halves the diagonal.
Array cholesky_vjp(const Array& l, const Array& g) {
  const Array inner = tril(matmul(turned(l), g));
  const Array halved = inner - diagonal_part(inner) * scalar(0.5, g.dtype());
  const Array right = right_solve(halved, l, false);
  const Array s = left_solve(turned(l), right, true);
  return (s + turned(s)) * scalar(0.5, g.dtype());
}

Array inverse_vjp(const Array& y, const Array& g) {
  return -matmul(matmul(turned(y), g), turned(y));
}

/// Of a square or tall a = q r.
Array tall_qr_vjp(const Array& q, const Array& r, const Array& to_q, const Array& to_r) {
  const Array m = matmul(r, turned(to_r)) - matmul(turned(to_q), q);
  const Array symmetric = tril(m) + turned(tril(m, -1));
  return right_solve(to_q + matmul(q, symmetric), turned(r), false);
}

/// Of a wide a = [x y] = q [u v], where q u = x.
Array wide_qr_vjp(const Array& a, const Array& q, const Array& r, const Array& to_q,
                  const Array& to_r) {
  const std::int64_t rows = a.shape(-2), columns = a.shape(-1);
  const auto part = [&](const Array& all, std::int64_t from, std::int64_t to) {
    Dims start(all.ndim(), 0), stop = all.shape();
    start[all.ndim() - 1] = from;
    stop[all.ndim() - 1] = to;
    return slice(all, start, stop);
  };
  const Array to_v = part(to_r, rows, columns), y = part(a, rows, columns);
  const Array through_y = to_q + matmul(y, turned(to_v));
  const Array to_x = tall_qr_vjp(q, part(r, 0, rows), through_y, part(to_r, 0, rows));
  return concatenate({to_x, matmul(q, to_v)}, -1);
}

/// 1 / (b_j - a_i) off the diagonal, 0 where both are equal.
Array inverse_gaps(const Array& values) {
  const Array gaps = expand_dims(values, -2) - expand_dims(values, -1);
  const Array equal = gaps == 0;
  return where(equal, zeros_like(gaps), reciprocal(where(equal, ones_like(gaps), gaps)));
}

Array eigh_vjp(const Array& values, const Array& vectors, const std::optional<Array>& to_values,
               const std::optional<Array>& to_vectors) {
  Array inner = zeros_like(vectors);
  if (to_values) inner = inner + as_diagonal(astype(*to_values, vectors.dtype()));
  if (to_vectors) {
    inner = inner +
            astype(inverse_gaps(values), vectors.dtype()) * matmul(turned(vectors), *to_vectors);
  }
  return matmul(matmul(vectors, inner), turned(vectors));
}

Array columns(const Array& a, std::int64_t count) {
  Dims stop = a.shape();
  stop[a.ndim() - 1] = count;
  return slice(a, Dims(a.ndim(), 0), stop);
}

/// Of u s v^T, of which u and v have as many columns as there are values: the others are any that
/// complete them, and have no derivative of their own.
Array svd_vjp(const Array& u, const Array& s, const Array& v, const std::optional<Array>& to_u,
              const std::optional<Array>& to_s, const std::optional<Array>& to_v) {
  const auto beside = [](const Array& basis, const Array& g) {
    return g - matmul(basis, matmul(turned(basis), g));
  };
  const Array row = expand_dims(s, -2), column = expand_dims(s, -1);
  const Array gaps = inverse_gaps(square(s));
  const auto skew = [&](const Array& basis, const Array& g) {
    const Array inner = matmul(turned(basis), g);
    return gaps * (inner - turned(inner));
  };
  Array inner = to_s ? as_diagonal(*to_s) : zeros_like(matmul(column, row));
  if (to_u) inner = inner + skew(u, *to_u) * row;
  if (to_u && u.dtype() == DType::complex64) {
    // Columns of u and v may turn together, by one phase each.
    const Array phases = matmul(turned(u), *to_u);
    inner = inner + diagonal_part(phases - turned(phases)) / (scalar(2, s.dtype()) * row);
  }
  if (to_v) inner = inner + column * skew(v, *to_v);
  Array found = matmul(matmul(u, inner), turned(v));
  if (to_u) found = found + matmul(beside(u, *to_u) / row, turned(v));
  if (to_v) found = found + matmul(u, turned(beside(v, *to_v) / row));
  return found;
}

InputCotangents svd_rule(const Factor& op, const Backward& b) {
  const Array& a = b.in[0];
  const std::int64_t count = std::min(a.shape(-2), a.shape(-1));
  const std::vector<Array> made =
      op.vectors ? std::vector<Array>(b.out.begin(), b.out.end())
                 : heddle::apply_multi(Factor{FactorKind::svd, false, true}, {a});
  const Array u = columns(made[0], count), v = columns(turned(made[2]), count);
  std::optional<Array> to_u, to_v;
  if (op.vectors && b.cotangents[0]) to_u = columns(*b.cotangents[0], count);
  if (op.vectors && b.cotangents[2]) to_v = columns(turned(*b.cotangents[2]), count);
  return {svd_vjp(u, made[1], v, to_u, b.cotangents[op.vectors ? 1 : 0], to_v)};
}

InputCotangents eigh_rule(const Factor& op, const Backward& b) {
  const std::vector<Array> made =
      op.vectors ? std::vector<Array>(b.out.begin(), b.out.end())
                 : heddle::apply_multi(Factor{FactorKind::eigh, op.upper, true}, {b.in[0]});
  const Array g = eigh_vjp(made[0], made[1], b.cotangents[0],
                           op.vectors ? b.cotangents[1] : std::optional<Array>());
  return {of_triangle((g + turned(g)) * scalar(0.5, g.dtype()), op.upper)};
}

/// m^-1 b of complex64, as a real system of twice the size.
Array complex_solve(const Array& m, const Array& b) {
  const Array mr = real(m), mi = imag(m);
  const Array whole = concatenate({concatenate({mr, -mi}, -1), concatenate({mi, mr}, -1)}, -2);
  const Array x = heddle::apply(Solve{}, {whole, concatenate({real(b), imag(b)}, -2)});
  const std::vector<Array> parts = split(x, 2, -2);
  return astype(parts[0], DType::complex64) +
         astype(parts[1], DType::complex64) * Array(std::vector<std::complex<float>>{{0, 1}}, {});
}

/// a = V diag(w) V^-1 with columns of length 1:
/// V^-H (diag(g_w) + (V^H g_V - V^H V diag(Re(V^H g_V))) / conj(w_j - w_i)) V^H. (Boeddeker et al.,
/// "On the Computation of Complex-valued Gradients with Application to Statistically Optimum
/// Beamforming", 4.77, with the length.) Vectors have no phase of their own.
Array eig_vjp(const Array& values, const Array& vectors, const std::optional<Array>& to_values,
              const std::optional<Array>& to_vectors) {
  const Array across = turned(vectors);
  Array inner = zeros_like(vectors);
  if (to_values) inner = inner + as_diagonal(*to_values);
  if (to_vectors) {
    const Array turn = matmul(across, *to_vectors);
    const Array lengths = astype(real(diagonal_part(turn)), turn.dtype());
    const Array apart = turn - matmul(matmul(across, vectors), lengths);
    inner = inner + apart * conjugate(inverse_gaps(values));
  }
  return complex_solve(across, matmul(inner, across));
}

InputCotangents eig_rule(const Factor& op, const Backward& b) {
  const std::vector<Array> made =
      op.vectors ? std::vector<Array>(b.out.begin(), b.out.end())
                 : heddle::apply_multi(Factor{FactorKind::eig, false, true}, {b.in[0]});
  const Array g = eig_vjp(made[0], made[1], b.cotangents[0],
                          op.vectors ? b.cotangents[1] : std::optional<Array>());
  const DType dtype = b.in[0].dtype();
  return {dtype == DType::complex64 ? g : astype(real(g), dtype)};
}

/// a = P L U: P^T L^-T (tril(L^T g, -1) + triu(g U^T)) U^-T.
InputCotangents lu_rule(const Backward& b) {
  const Array &a = b.in[0], &both = b.out[0], &rows = b.out[2];
  require(a.shape(-1) == a.shape(-2), ErrorCode::unsupported,
          "vjp: the factors L and U of {} have a derivative only where its matrices are square",
          a.spec());
  const Array g = b.g();
  const Array unit = zeros_like(both) + diagonal_part(ones_like(both));
  const Array l = tril(both, -1) + unit, u = triu(both);
  const Array inner = tril(matmul(turned(l), g), -1) + triu(matmul(g, turned(u)));
  const Array ordered = right_solve(left_solve(turned(l), inner, true), turned(u), false);
  const Array places = broadcast_to(expand_dims(rows, -1), a.shape());
  return {take_along_axis(ordered, places, -2)};
}

InputCotangents factor_rule(const Factor& op, const Backward& b) {
  switch (op.kind) {
    case FactorKind::cholesky: {
      const Array l = op.upper ? turned(b.out[0]) : b.out[0];
      const Array g = op.upper ? turned(b.g()) : b.g();
      return {of_triangle(cholesky_vjp(l, tril(g)), op.upper)};
    }
    case FactorKind::qr: {
      const Array &a = b.in[0], &q = b.out[0], &r = b.out[1];
      return {a.shape(-2) >= a.shape(-1) ? tall_qr_vjp(q, r, b.g(0), b.g(1))
                                         : wide_qr_vjp(a, q, r, b.g(0), b.g(1))};
    }
    case FactorKind::svd:
      return svd_rule(op, b);
    case FactorKind::eigh:
      return eigh_rule(op, b);
    case FactorKind::lu:
      return lu_rule(b);
    case FactorKind::inverse:
      return {inverse_vjp(b.out[0], b.g())};
    case FactorKind::triangular_inverse: {
      const Array g = inverse_vjp(b.out[0], b.g());
      return {op.upper ? triu(g) : tril(g)};
    }
    case FactorKind::eig:
      return eig_rule(op, b);
  }
  fail(ErrorCode::unsupported, "vjp: {} has no derivative here", to_string(op.kind));
}

/// Half of a line's frequencies stand for two each, but the first and, of an even line, the last.
Array multiplicities(std::int64_t n, std::size_t rank, std::size_t axis) {
  const std::int64_t half = n / 2 + 1;
  const Array k = heddle::apply(Arange{0, 1, half, DType::i64}, {});
  const Array once = logical_or(k == 0, k * 2 == Array(n));
  Shape line(rank, 1);
  line[axis] = half;
  return reshape(where(once, Array(1.0f), Array(2.0f)), line);
}

}  // namespace

InputCotangents vjp_rule(const Factor& op, const Backward& b) {
  return factor_rule(op, b);
}

InputCotangents vjp_rule(const Solve& op, const Backward& b) {
  const Array &a = b.in[0], &x = b.out[0];
  const Solve back{op.triangular, op.triangular && !op.upper};
  const Array to_b = heddle::apply(back, {swapaxes(a, -1, -2), b.g()});
  const Array to_a = -matmul(to_b, swapaxes(x, -1, -2));
  if (!op.triangular) return {to_a, to_b};
  return {op.upper ? triu(to_a) : tril(to_a), to_b};
}

InputCotangents vjp_rule(const Fft& op, const Backward& b) {
  const auto axis = static_cast<std::size_t>(op.axis);
  const Array g = b.g();
  const Array n = scalar(static_cast<double>(op.n), DType::f32);
  const auto transformed = [&](FftKind kind, const Array& x) {
    return heddle::apply(Fft{kind, op.axis, op.n}, {x});
  };
  switch (op.kind) {
    case FftKind::forward:
      return {transformed(FftKind::inverse, g) * n};
    case FftKind::inverse:
      return {transformed(FftKind::forward, g) / n};
    case FftKind::real_forward: {
      const std::int64_t missing = op.n - g.shape()[axis];
      const Array padded = pad(g, Dims{op.axis}, Shape{0}, Shape{missing});
      return {real(transformed(FftKind::inverse, padded)) * n};
    }
    case FftKind::real_inverse:
      return {transformed(FftKind::real_forward, g) * (multiplicities(op.n, g.ndim(), axis) / n)};
  }
  return {std::nullopt};
}

InputCotangents vjp_rule(const Hadamard& op, const Backward& b) {
  const std::int64_t n = b.in[0].shape(-1);
  const Array g = b.g();
  const bool is_symmetric = (n & (n - 1)) == 0;  // Sylvester's are
  if (is_symmetric) return {heddle::apply(op, {g})};
  const Array unit = eye(static_cast<int>(n), widened(g).dtype());
  const Array matrix = heddle::apply(op, {unit});
  return {astype(matmul(widened(g), swapaxes(matrix, 0, 1)), g.dtype())};
}

}  // namespace heddle
