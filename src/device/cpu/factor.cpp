// Factors of matrices, by LAPACK, which stores by columns: rows that lie side by side are the
// transposed matrix to it. Where that has the same factors, nothing needs to be turned round.
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "device/cpu/lapack.h"
#include "device/cpu/lines.h"
#include "device/cpu/matrices.h"
#include "tensor/format.h"

namespace heddle::cpu {

MatrixBatch::MatrixBatch(const PrepareArgs& args) {
  const Shape& shape = args.inputs[0].spec.shape;
  axes = Shape(std::span(shape.begin(), shape.size() - 2));
  matrices = elements(axes);
  if (!axes.empty() && axes[0] > 0) matrices_per_row = matrices / axes[0];
  const auto per_matrix = [&](const OperandSpec& operand) {
    return matrices == 0 ? 0 : byte_size(operand.spec) / static_cast<std::size_t>(matrices);
  };
  for (std::size_t i = 0; i < args.inputs.size(); ++i) in_bytes[i] = per_matrix(args.inputs[i]);
  for (std::size_t i = 0; i < args.outputs.size(); ++i) out_bytes[i] = per_matrix(args.outputs[i]);
}

MatrixOperands MatrixBatch::at(const Launch& launch, std::int64_t matrix) const {
  MatrixOperands operands{};
  const auto m = static_cast<std::size_t>(matrix);
  for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
    operands.in[i] = launch.inputs[i].data + m * in_bytes[i];
  }
  for (std::size_t i = 0; i < launch.outputs.size(); ++i) {
    operands.out[i] = launch.outputs[i].data + m * out_bytes[i];
  }
  return operands;
}

std::string MatrixBatch::name_of(std::int64_t matrix) const {
  if (axes.empty()) return "the matrix";
  Dims index(axes.size(), 0);
  for (std::size_t i = axes.size(); i-- > 0; matrix /= axes[i]) index[i] = matrix % axes[i];
  return fmt::format("matrix {}", index);
}

void fail_matrix(std::string_view function, const MatrixBatch& batch, const FirstFailure& failure,
                 std::string_view what) {
  fail(ErrorCode::invalid_argument, "{}: {} {}", function, batch.name_of(failure.matrix()), what);
}

std::optional<int> work_size(double asked) {
  const double size = asked * (1 + 0x1p-22) + 1;
  if (size > INT_MAX) return std::nullopt;
  return static_cast<int>(size);
}

std::int64_t cubic_work(std::int64_t m, std::int64_t n) {
  constexpr double kMost = 1e12;
  const double work =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::min(m, n));
  return static_cast<std::int64_t>(std::min(work, kMost)) + 1;
}

std::string too_large(std::string_view function, std::int64_t m, std::int64_t n) {
  return fmt::format("{}: matrices of {} by {} are larger than LAPACK's integers tell", function, m,
                     n);
}

namespace {

/// LAPACK's name of a triangle of the transposed matrix.
constexpr char other_triangle(bool upper) {
  return upper ? 'L' : 'U';
}

/// The triangle of `from`, diagonal included, and zeros.
template <class T>
void copy_triangle(const T* from, int n, bool upper, T* to) {
  for (int i = 0; i < n; ++i, from += n, to += n) {
    const int begin = upper ? i : 0, end = upper ? n : i + 1;
    std::fill(to, to + begin, T{});
    std::copy(from + begin, from + end, to + begin);
    std::fill(to + end, to + n, T{});
  }
}

struct NoRoom {};

template <class T>
struct Cholesky {
  int n;
  bool upper;

  NoRoom carve(Carver&) const { return {}; }
  int operator()(const MatrixOperands& matrix, NoRoom) const {
    copy_triangle(matrix.input<T>(0), n, upper, matrix.output<T>(0));
    return n == 0 ? 0 : lapack::potrf(other_triangle(upper), n, matrix.output<T>(0));
  }
  std::string failure(int info) const {
    return fmt::format("is not positive definite: its leading minor of order {} is not positive",
                       info);
  }
};

template <class T>
struct TriangularInverse {
  int n;
  bool upper;

  NoRoom carve(Carver&) const { return {}; }
  int operator()(const MatrixOperands& matrix, NoRoom) const {
    copy_triangle(matrix.input<T>(0), n, upper, matrix.output<T>(0));
    return n == 0 ? 0 : lapack::trtri(other_triangle(upper), n, matrix.output<T>(0));
  }
  std::string failure(int info) const {
    return fmt::format("is singular: element {} of its diagonal is 0", info - 1);
  }
};

template <class T>
struct Inverse {
  int n, lwork;

  struct Room {
    int* pivots;
    T* work;
  };
  Room carve(Carver& carver) const { return {carver.take<int>(n), carver.take<T>(lwork)}; }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (n == 0) return 0;
    T* a = matrix.output<T>(0);
    std::copy_n(matrix.input<T>(0), std::int64_t{n} * n, a);
    if (const int info = lapack::getrf(n, n, a, room.pivots); info != 0) return info;
    return lapack::getri(n, a, room.pivots, room.work, lwork);
  }
  std::string failure(int) const { return "is singular and has no inverse"; }
};

template <class T>
struct Qr {
  int m, n, lwork;

  int k() const { return std::min(m, n); }
  struct Room {
    T *a, *tau, *work;
  };
  Room carve(Carver& carver) const {
    return {carver.take<T>(std::int64_t{m} * n), carver.take<T>(k()), carver.take<T>(lwork)};
  }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (k() == 0) return 0;
    transpose_matrix(matrix.input<T>(0), m, n, room.a);
    if (const int info = lapack::geqrf(m, n, room.a, room.tau, room.work, lwork)) return info;
    T* r = matrix.output<T>(1);
    for (int i = 0; i < k(); ++i, r += n) {
      for (int j = 0; j < n; ++j) r[j] = j < i ? T{} : room.a[std::int64_t{j} * m + i];
    }
    if (const int info = lapack::orgqr(m, k(), room.a, room.tau, room.work, lwork)) return info;
    transpose_matrix(room.a, k(), m, matrix.output<T>(0));
    return 0;
  }
  std::string failure(int) const { return "cannot be factored"; }
};

template <class T>
struct Lu {
  int m, n;

  int k() const { return std::min(m, n); }
  struct Room {
    T* a;
    int* pivots;
  };
  Room carve(Carver& carver) const {
    return {carver.take<T>(std::int64_t{m} * n), carver.take<int>(k())};
  }
  // Singular matrices have these factors too: some of the diagonal is 0.
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (k() > 0) {
      transpose_matrix(matrix.input<T>(0), m, n, room.a);
      lapack::getrf(m, n, room.a, room.pivots);
      transpose_matrix(room.a, n, m, matrix.output<T>(0));
    }
    auto* pivots = matrix.output<std::uint32_t>(1);
    auto* rows = matrix.output<std::uint32_t>(2);
    for (int i = 0; i < k(); ++i) pivots[i] = static_cast<std::uint32_t>(room.pivots[i] - 1);
    std::iota(rows, rows + m, 0u);
    for (int i = k(); i-- > 0;) std::swap(rows[i], rows[pivots[i]]);
    return 0;
  }
  std::string failure(int) const { return "cannot be factored"; }
};

template <class T>
Prepared prepare_direct(const PrepareArgs& args, const Factor& op) {
  const Shape& shape = args.inputs[0].spec.shape;
  const int m = static_cast<int>(shape[shape.size() - 2]), n = static_cast<int>(shape.back());
  const std::string_view function = to_string(op.kind);
  const std::int64_t work = cubic_work(m, n);
  T asked{}, asked_too{};
  switch (op.kind) {
    case FactorKind::cholesky:
      return make_matrix_kernel(args, function, Cholesky<T>{n, op.upper}, work);
    case FactorKind::triangular_inverse:
      return make_matrix_kernel(args, function, TriangularInverse<T>{n, op.upper}, work);
    case FactorKind::inverse:
      if (n > 0) lapack::getri(n, nullptr, nullptr, &asked, -1);
      break;
    case FactorKind::qr:
      if (std::min(m, n) > 0) {
        lapack::geqrf(m, n, nullptr, nullptr, &asked, -1);
        lapack::orgqr(m, std::min(m, n), nullptr, nullptr, &asked_too, -1);
      }
      break;
    case FactorKind::lu:
      return make_matrix_kernel(args, function, Lu<T>{m, n}, work);
    default:
      return refuse("factor: of an unknown kind");
  }
  const std::optional<int> lwork = work_size(std::max(asked, asked_too));
  if (!lwork) return refuse(too_large(function, m, n));
  if (op.kind == FactorKind::qr) {
    return make_matrix_kernel(args, function, Qr<T>{m, n, *lwork}, work);
  }
  return make_matrix_kernel(args, function, Inverse<T>{n, *lwork}, work);
}

}  // namespace

Prepared prepare_factor(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const auto& op = std::get<Factor>(args.op);
  const Shape& shape = args.inputs[0].spec.shape;
  const std::int64_t m = shape[shape.size() - 2], n = shape.back();
  if (std::max(m, n) > kMostRows) return refuse(too_large(to_string(op.kind), m, n));
  if (op.kind == FactorKind::svd || op.kind == FactorKind::eigh || op.kind == FactorKind::eig) {
    return prepare_spectral(args, op);
  }
  const bool wide = args.inputs[0].spec.dtype == DType::f64;
  return wide ? prepare_direct<double>(args, op) : prepare_direct<float>(args, op);
}

}  // namespace heddle::cpu
