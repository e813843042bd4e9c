// Singular values and eigenvalues, which LAPACK finds by iterating: so what has infinities or NaN
// is kept from it.
#include <cmath>

#include "base/check.h"
#include "device/cpu/lapack.h"
#include "device/cpu/matrices.h"

namespace heddle::cpu {

namespace {

template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}
template <class T>
bool is_finite(std::complex<T> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

template <class T>
bool all_finite(const T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_finite(x[i])) return false;
  }
  return true;
}

std::string failure_of(const char* iteration, int info) {
  if (info == kNotFinite) return "has infinities or NaN";
  return fmt::format("has {} that LAPACK's iteration did not find ({})", iteration, info);
}

template <class T>
void identity(std::int64_t n, T* to) {
  std::fill(to, to + n * n, T{});
  for (std::int64_t i = 0; i < n; ++i) to[i * (n + 1)] = T{1};
}

/// Of the transposed matrix, whose left vectors are the right ones.
template <class T>
struct Svd {
  std::int64_t m, n;
  bool vectors;
  int lwork = 0;

  std::int64_t k() const { return std::min(m, n); }
  char job() const { return vectors ? 'A' : 'N'; }
  struct Room {
    T *a, *work;
    Real<T>* real_work;
    int* integers;
  };
  /// As cgesdd's description says; what is real needs none.
  std::int64_t real_work() const {
    if (std::is_same_v<T, Real<T>>) return 0;
    const std::int64_t most = std::max(m, n);
    if (!vectors) return 7 * k();
    return std::max(5 * k() * k() + 5 * k(), 2 * most * k() + 2 * k() * k() + k());
  }
  Room carve(Carver& carver) const {
    return {carver.take<T>(m * n), carver.take<T>(lwork), carver.take<Real<T>>(real_work()),
            carver.take<int>(8 * k())};
  }
  std::optional<int> query() const {
    if (k() == 0) return 1;
    T asked{};
    lapack::gesdd(job(), static_cast<int>(n), static_cast<int>(m), static_cast<T*>(nullptr),
                  static_cast<Real<T>*>(nullptr), nullptr, nullptr, &asked, -1, nullptr, nullptr);
    return work_size(std::real(asked));
  }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    T* u = vectors ? matrix.output<T>(0) : nullptr;
    T* vt = vectors ? matrix.output<T>(2) : nullptr;
    if (k() == 0) {
      if (vectors) identity(m, u), identity(n, vt);
      return 0;
    }
    const T* a = matrix.input<T>(0);
    if (!all_finite(a, m * n)) return kNotFinite;
    std::copy_n(a, m * n, room.a);
    return lapack::gesdd(job(), static_cast<int>(n), static_cast<int>(m), room.a,
                         matrix.output<Real<T>>(vectors ? 1 : 0), vt, u, room.work, lwork,
                         room.real_work, room.integers);
  }
  std::string failure(int info) const { return failure_of("singular values", info); }
};

template <class T>
struct Eigh {
  std::int64_t n;
  bool upper, vectors;
  int lwork = 0;

  struct Room {
    T *a, *work;
    Real<T>* real_work;
    int* integers;
  };
  char job() const { return vectors ? 'V' : 'N'; }
  // As the descriptions of syevd and heevd say.
  std::int64_t integers() const { return vectors ? 3 + 5 * n : 1; }
  std::int64_t real_work() const {
    if (std::is_same_v<T, Real<T>>) return 1;
    return vectors ? 1 + 5 * n + 2 * n * n : std::max<std::int64_t>(1, n);
  }
  Room carve(Carver& carver) const {
    return {carver.take<T>(n * n), carver.take<T>(lwork), carver.take<Real<T>>(real_work()),
            carver.take<int>(integers())};
  }
  std::optional<int> query() const {
    if (n == 0) return 1;
    if (real_work() > INT_MAX) return std::nullopt;
    T asked{};
    Real<T> real{}, values{};
    int integer = 0;
    lapack::eigh(job(), 'L', static_cast<int>(n), static_cast<T*>(nullptr), &values, &asked, -1,
                 &real, -1, &integer, -1);
    return work_size(std::real(asked));
  }
  bool triangle_is_finite(const T* a) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t begin = upper ? i : 0, end = upper ? n : i + 1;
      if (!all_finite(a + i * n + begin, end - begin)) return false;
    }
    return true;
  }
  /// The transposed matrix has the same values, and the conjugates of the vectors.
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (n == 0) return 0;
    const T* a = matrix.input<T>(0);
    if (!triangle_is_finite(a)) return kNotFinite;
    std::copy_n(a, n * n, room.a);
    const int info =
        lapack::eigh(job(), upper ? 'L' : 'U', static_cast<int>(n), room.a,
                     matrix.output<Real<T>>(0), room.work, lwork, room.real_work,
                     static_cast<int>(real_work()), room.integers, static_cast<int>(integers()));
    if (!vectors || info != 0) return info;
    T* out = matrix.output<T>(1);
    for (std::int64_t i = 0; i < n * n; ++i) room.a[i] = conjugate(room.a[i]);
    transpose_matrix(room.a, n, n, out);
    return 0;
  }
  std::string failure(int info) const { return failure_of("eigenvalues", info); }
};

/// T real: values and vectors of complex pairs come in parts.
template <class T>
struct Eig {
  using Complex = std::complex<float>;
  std::int64_t n;
  bool vectors;
  int lwork = 0;

  struct Room {
    T *a, *work, *real, *imaginary, *vectors;
  };
  char job() const { return vectors ? 'V' : 'N'; }
  Room carve(Carver& carver) const {
    return {carver.take<T>(n * n), carver.take<T>(lwork), carver.take<T>(n), carver.take<T>(n),
            carver.take<T>(vectors ? n * n : 1)};
  }
  std::optional<int> query() const {
    if (n == 0) return 1;
    T asked{};
    lapack::geev(job(), static_cast<int>(n), nullptr, nullptr, nullptr, nullptr, &asked, -1);
    return work_size(asked);
  }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (n == 0) return 0;
    if (!all_finite(matrix.input<T>(0), n * n)) return kNotFinite;
    transpose_matrix(matrix.input<T>(0), n, n, room.a);
    const int info = lapack::geev(job(), static_cast<int>(n), room.a, room.real, room.imaginary,
                                  room.vectors, room.work, lwork);
    if (info != 0) return info;
    auto* values = matrix.output<Complex>(0);
    for (std::int64_t i = 0; i < n; ++i) {
      values[i] = Complex(static_cast<float>(room.real[i]), static_cast<float>(room.imaginary[i]));
    }
    if (vectors) write_vectors(room, matrix.output<Complex>(1));
    return 0;
  }
  void write_vectors(const Room& room, Complex* out) const {
    for (std::int64_t v = 0; v < n; ++v) {
      // Of a pair the first has the positive imaginary part: columns v and v + 1 are the parts.
      const bool paired = room.imaginary[v] > 0 && v + 1 < n;
      const T* parts = room.vectors + v * n;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto real = static_cast<float>(parts[i]);
        const float imaginary = paired ? static_cast<float>(parts[n + i]) : 0.0f;
        out[i * n + v] = {real, imaginary};
        if (paired) out[i * n + v + 1] = {real, -imaginary};
      }
      if (paired) ++v;
    }
  }
  std::string failure(int info) const { return failure_of("eigenvalues", info); }
};

template <>
struct Eig<std::complex<float>> {
  using Complex = std::complex<float>;
  std::int64_t n;
  bool vectors;
  int lwork = 0;

  struct Room {
    Complex *a, *work, *vectors;
    float* real_work;
  };
  char job() const { return vectors ? 'V' : 'N'; }
  Room carve(Carver& carver) const {
    return {carver.take<Complex>(n * n), carver.take<Complex>(lwork),
            carver.take<Complex>(vectors ? n * n : 1), carver.take<float>(2 * n)};
  }
  std::optional<int> query() const {
    if (n == 0) return 1;
    Complex asked{};
    float real = 0;
    lapack::geev(job(), static_cast<int>(n), nullptr, nullptr, nullptr, &asked, -1, &real);
    return work_size(asked.real());
  }
  int operator()(const MatrixOperands& matrix, const Room& room) const {
    if (n == 0) return 0;
    if (!all_finite(matrix.input<Complex>(0), n * n)) return kNotFinite;
    transpose_matrix(matrix.input<Complex>(0), n, n, room.a);
    const int info = lapack::geev(job(), static_cast<int>(n), room.a, matrix.output<Complex>(0),
                                  room.vectors, room.work, lwork, room.real_work);
    if (vectors && info == 0) transpose_matrix(room.vectors, n, n, matrix.output<Complex>(1));
    return info;
  }
  std::string failure(int info) const { return failure_of("eigenvalues", info); }
};

template <class Kind>
Prepared with_work(const PrepareArgs& args, const Factor& op, Kind kind, std::int64_t m,
                   std::int64_t n) {
  const std::optional<int> lwork = kind.query();
  if (!lwork) return refuse(too_large(to_string(op.kind), m, n));
  kind.lwork = *lwork;
  return make_matrix_kernel(args, to_string(op.kind), kind, 8 * cubic_work(m, n));
}

template <class T>
Prepared prepare_typed(const PrepareArgs& args, const Factor& op) {
  const Shape& shape = args.inputs[0].spec.shape;
  const std::int64_t m = shape[shape.size() - 2], n = shape.back();
  switch (op.kind) {
    case FactorKind::svd:
      return with_work(args, op, Svd<T>{m, n, op.vectors}, m, n);
    case FactorKind::eigh:
      return with_work(args, op, Eigh<T>{n, op.upper, op.vectors}, m, n);
    default:
      return with_work(args, op, Eig<T>{n, op.vectors}, m, n);
  }
}

}  // namespace

Prepared prepare_spectral(const PrepareArgs& args, const Factor& op) {
  switch (args.inputs[0].spec.dtype) {
    case DType::f64:
      return prepare_typed<double>(args, op);
    case DType::complex64:
      return prepare_typed<std::complex<float>>(args, op);
    default:
      return prepare_typed<float>(args, op);
  }
}

}  // namespace heddle::cpu
