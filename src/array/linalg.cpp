// Linear algebra.
#include "heddle/linalg.h"

#include <limits>

#include "array/ops_common.h"

namespace heddle::linalg {

namespace {

Array factor(FactorKind kind, const Arg& a, bool upper = false) {
  return heddle::apply(Factor{kind, upper}, {a});
}

std::vector<Array> factors(FactorKind kind, const Arg& a, bool upper = false) {
  return apply_multi(Factor{kind, upper}, {a});
}

bool reads_upper(const char* function, const std::string& triangle) {
  require(triangle == "L" || triangle == "U", ErrorCode::invalid_argument,
          "{}: triangle \"{}\"; it must be L or U", function, triangle);
  return triangle == "U";
}

/// The first `rows` rows and `columns` columns of each matrix.
Array corner(const Array& a, std::int64_t rows, std::int64_t columns) {
  Dims stop = a.shape();
  stop[stop.size() - 2] = rows;
  stop[stop.size() - 1] = columns;
  return stop == a.shape() ? a : slice(a, Dims(a.ndim(), 0), stop);
}

Array typed_zero(DType dtype) {
  return astype(Array(0), dtype);
}

double epsilon(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

/// Square matrices in f32 or f64, of any real type.
Array determinable(const char* function, const Arg& a) {
  require(a.ndim() >= 2 && a.shape(-1) == a.shape(-2), ErrorCode::invalid_argument,
          "{}: {} does not hold square matrices", function, a.spec());
  const DType dtype = at_least_float(a.dtype());
  require(is_floating(dtype), ErrorCode::invalid_argument, "{}: {}; it must be of real numbers",
          function, a.spec());
  return astype(a, dtype == DType::f64 ? dtype : DType::f32);
}

/// What a determinant is the product of: U's diagonal, and the sign of the rows' permutation.
struct Determinant {
  Array diagonal, sign;
};
Determinant determinant_of(const Array& a) {
  const auto [both, pivots] = lu_factor(a);
  const Array moved =
      sum(not_equal(pivots, arange(static_cast<double>(a.shape(-1)), DType::u32)), -1);
  const Array odd = remainder(moved, Array(2));
  return {diagonal(both, 0, -2, -1),
          astype(subtract(Array(1), multiply(Array(2), odd)), a.dtype())};
}

DType result_type(const Arg& a) {
  return at_least_float(a.dtype());
}

}  // namespace

std::pair<Array, Array> qr(const Arg& a) {
  return within("qr", a, [&]() -> std::pair<Array, Array> {
    const std::vector<Array> both = factors(FactorKind::qr, a);
    return {both[0], both[1]};
  });
}

std::vector<Array> svd(const Arg& a, bool compute_uv) {
  return within("svd", a, [&]() -> std::vector<Array> {
    return apply_multi(Factor{FactorKind::svd, false, compute_uv}, {a});
  });
}

Array inv(const Arg& a) {
  return within("inv", a, [&]() -> Array { return factor(FactorKind::inverse, a); });
}

Array tri_inv(const Arg& a, bool upper) {
  return within("tri_inv", a,
                [&]() -> Array { return factor(FactorKind::triangular_inverse, a, upper); });
}

Array cholesky(const Arg& a, bool upper) {
  return within("cholesky", a, [&]() -> Array { return factor(FactorKind::cholesky, a, upper); });
}

Array pinv(const Arg& a) {
  return within("pinv", a, [&]() -> Array {
    require(is_floating(a.dtype()), ErrorCode::invalid_argument,
            "pinv: a is {}; it must be f32 or f64", a.spec());
    const std::vector<Array> usv = svd(a);
    const std::int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
    Shape shape = a.shape();
    shape[shape.size() - 2] = n, shape[shape.size() - 1] = m;
    if (k == 0) return zeros(shape, a.dtype());
    const Array u = swapaxes(corner(usv[0], m, k), -1, -2);
    const Array v = swapaxes(corner(usv[2], k, n), -1, -2);
    const double rcond = 10.0 * static_cast<double>(std::max(m, n)) * epsilon(a.dtype());
    const Array cutoff = multiply(max(usv[1], -1, true), astype(Array(rcond), a.dtype()));
    const Array inverse = where(greater(usv[1], cutoff), reciprocal(usv[1]), typed_zero(a.dtype()));
    return matmul(multiply(v, expand_dims(inverse, -2)), u);
  });
}

Array cholesky_inv(const Arg& a, bool upper) {
  return within("cholesky_inv", a, [&]() -> Array {
    const Array inverse = tri_inv(a, upper);
    const Array transposed = swapaxes(inverse, -1, -2);
    return upper ? matmul(inverse, transposed) : matmul(transposed, inverse);
  });
}

std::vector<Array> lu(const Arg& a) {
  return within("lu", a, [&]() -> std::vector<Array> {
    const std::vector<Array> parts = factors(FactorKind::lu, a);
    const std::int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
    const Array ones = eye(static_cast<int>(m), static_cast<int>(k), 0, a.dtype());
    return {parts[2], add(tril(corner(parts[0], m, k), -1), ones), triu(corner(parts[0], k, n))};
  });
}

std::pair<Array, Array> lu_factor(const Arg& a) {
  return within("lu_factor", a, [&]() -> std::pair<Array, Array> {
    const std::vector<Array> parts = factors(FactorKind::lu, a);
    return {parts[0], parts[1]};
  });
}

namespace {

Array solved(const char* function, const Arg& a, const Arg& b, const Solve& op) {
  return within(function, a, [&]() -> Array {
    require(a.ndim() >= 2 && a.shape(-1) == a.shape(-2), ErrorCode::invalid_argument,
            "{}: a is {}; it must hold square matrices", function, a.spec());
    require(b.ndim() >= 1, ErrorCode::invalid_argument,
            "{}: b is {}; it must have at least one dimension", function, b.spec());
    const bool vector = b.ndim() == 1;
    require(a.shape(-1) == b.shape(vector ? -1 : -2), ErrorCode::invalid_argument,
            "{}: a is {}, and b {} has other numbers of equations", function, a.spec(), b.spec());
    const DType dtype = promote_types(a.dtype(), b.dtype());
    require(dtype == DType::f32 || dtype == DType::f64, ErrorCode::invalid_argument,
            "{}: a is {} and b {}; they must meet in f32 or f64", function, a.spec(), b.spec());
    const Array right = vector ? expand_dims(b, 1) : b.array();
    const auto batch_of = [](const Shape& shape) {
      return Shape(std::span<const std::int64_t>(shape.begin(), shape.size() - 2));
    };
    Shape batch;
    try {
      batch = broadcast_shapes(batch_of(a.shape()), batch_of(right.shape()));
    } catch (const Error&) {
      fail(ErrorCode::invalid_argument, "{}: the leading axes of a {} and b {} do not broadcast",
           function, a.spec(), b.spec());
    }
    const auto repeated = [&](const Array& x) {
      Shape shape = batch;
      shape.push_back(x.shape(-2));
      shape.push_back(x.shape(-1));
      return broadcast_to(astype(x, dtype), shape);
    };
    const Array x = heddle::apply(op, {repeated(a), repeated(right)});
    return vector ? squeeze(x, {-1}) : x;
  });
}

}  // namespace

Array solve(const Arg& a, const Arg& b) {
  return solved("solve", a, b, Solve{});
}

Array solve_triangular(const Arg& a, const Arg& b, bool upper) {
  return solved("solve_triangular", a, b, Solve{true, upper});
}

Array cross(const Arg& a, const Arg& b, int axis) {
  return within("cross", a, [&]() -> Array {
    const auto from_the_end = [&](const Arg& x) {
      const std::size_t at = normalize_axis(axis, x.ndim(), "cross");
      const std::int64_t extent = x.shape()[at];
      require(extent == 2 || extent == 3, ErrorCode::invalid_argument,
              "cross: axis {} of {} has {} elements; it must have 2 or 3", axis, x.spec(), extent);
      return static_cast<int>(at) - static_cast<int>(x.ndim());
    };
    const int at = from_the_end(a);
    require(from_the_end(b) == at, ErrorCode::invalid_argument,
            "cross: axis {} of {} and of {} are different ones where they broadcast", axis,
            a.spec(), b.spec());
    const DType dtype = promote_types(a.dtype(), b.dtype());
    const std::vector<Array> x = split(astype(a, dtype), static_cast<int>(a.shape(at)), at);
    const std::vector<Array> y = split(astype(b, dtype), static_cast<int>(b.shape(at)), at);
    const auto minor = [&](std::size_t i, std::size_t j) -> Array {  // x[i] y[j] - x[j] y[i]
      const bool first = i < x.size() && j < y.size(), second = j < x.size() && i < y.size();
      if (first && second) return subtract(multiply(x[i], y[j]), multiply(x[j], y[i]));
      if (first) return multiply(x[i], y[j]);
      if (second) return negative(multiply(x[j], y[i]));
      return zeros_like(multiply(x[0], y[0]));
    };
    return concatenate({minor(1, 2), minor(2, 0), minor(0, 1)}, at);
  });
}

std::pair<Array, Array> eig(const Arg& a) {
  return within("eig", a, [&]() -> std::pair<Array, Array> {
    const std::vector<Array> both = factors(FactorKind::eig, a);
    return {both[0], both[1]};
  });
}

Array eigvals(const Arg& a) {
  return within("eigvals", a, [&]() -> Array {
    return heddle::apply(Factor{FactorKind::eig, false, false}, {a});
  });
}

Array eigvalsh(const Arg& a, const std::string& UPLO) {
  return within("eigvalsh", a, [&]() -> Array {
    const bool upper = reads_upper("eigvalsh", UPLO);
    return heddle::apply(Factor{FactorKind::eigh, upper, false}, {a});
  });
}

std::pair<Array, Array> eigh(const Arg& a, const std::string& UPLO) {
  return within("eigh", a, [&]() -> std::pair<Array, Array> {
    const std::vector<Array> both = factors(FactorKind::eigh, a, reads_upper("eigh", UPLO));
    return {both[0], both[1]};
  });
}

Array det(const Arg& a) {
  return within("det", a, [&]() -> Array {
    const Determinant parts = determinant_of(determinable("det", a));
    // In f64, so that the product of some does not overflow where that of all is a float.
    const Array product = prod(astype(parts.diagonal, DType::f64), -1);
    return astype(multiply(product, astype(parts.sign, DType::f64)), result_type(a));
  });
}

std::pair<Array, Array> slogdet(const Arg& a) {
  return within("slogdet", a, [&]() -> std::pair<Array, Array> {
    const Determinant parts = determinant_of(determinable("slogdet", a));
    const Array signs = multiply(prod(sign(parts.diagonal), -1), parts.sign);
    const Array logarithm = sum(log(abs(parts.diagonal)), -1);
    return {astype(signs, result_type(a)), astype(logarithm, result_type(a))};
  });
}

}  // namespace heddle::linalg
