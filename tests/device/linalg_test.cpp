// Factors of matrices, equations, Fourier and Hadamard transforms, and products of complex ones.
#include <cmath>
#include <cstring>

#include "base/team.h"
#include "device/cpu_levels.h"
#include "support/allocations.h"
#include "tensor/format.h"

namespace heddle::test {
namespace {

constexpr DType kWide[] = {DType::f32, DType::f64};
constexpr FactorKind kDirect[] = {FactorKind::cholesky, FactorKind::qr, FactorKind::lu,
                                  FactorKind::inverse, FactorKind::triangular_inverse};

/// Far from singular: the diagonal outweighs the rest, and the lower triangle equals the upper.
Tensor symmetric(DType dtype, Shape shape, Random& random) {
  Tensor a = random_tensor(dtype, shape, random, {-1, 1});
  const auto n = static_cast<std::size_t>(shape.back());
  const std::size_t part = dtype == DType::f64 ? 8 : 4, item = a.bytes.size() == 0 ? 0 : part;
  for (std::size_t first = 0; n > 0 && first < a.bytes.size(); first += n * n * item) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        std::memcpy(&a.bytes[first + (i * n + j) * item], &a.bytes[first + (j * n + i) * item],
                    item);
      }
      const double diagonal = static_cast<double>(n) + 1.5;
      const float narrow = static_cast<float>(diagonal);
      std::byte* at = &a.bytes[first + (i * n + i) * item];
      if (dtype == DType::f64) std::memcpy(at, &diagonal, item);
      if (dtype == DType::f32) std::memcpy(at, &narrow, item);
    }
  }
  return a;
}

/// Symmetric but for what lies below the diagonal.
Tensor regular(DType dtype, const Shape& shape, Random& random) {
  Tensor a = symmetric(dtype, shape, random);
  const auto n = static_cast<std::size_t>(shape.back());
  const std::size_t item = item_size(dtype);
  const Tensor other = random_tensor(dtype, shape, random, {-1, 1});
  for (std::size_t i = 0; i < a.bytes.size() / item; ++i) {
    if (i / n % n > i % n) std::memcpy(&a.bytes[i * item], &other.bytes[i * item], item);
  }
  return a;
}

Tolerance tolerance_of(DType dtype) {
  return dtype == DType::f64 ? Tolerance{64, 1e-12} : Tolerance{64, 2e-5};
}

TEST(Factor, DirectKindsOfEverySize) {
  Random random(1);
  for (const DType dtype : kWide) {
    for (const FactorKind kind : kDirect) {
      for (const std::int64_t n : {0, 1, 2, 3, 7, 33}) {
        for (const bool upper : {false, true}) {
          const Tensor a = kind == FactorKind::cholesky ? symmetric(dtype, {n, n}, random)
                                                        : regular(dtype, {n, n}, random);
          expect_on_cpu(Factor{kind, upper}, {a}, tolerance_of(dtype));
        }
      }
      for (const Shape& shape :
           {Shape{2, 3, 4, 4}, Shape{0, 3, 3}, Shape{70, 2, 2}, Shape{5, 0, 0}}) {
        expect_on_cpu(Factor{kind}, {symmetric(dtype, shape, random)}, tolerance_of(dtype));
      }
    }
  }
}

TEST(Factor, QrAndLuOfAnyShape) {
  Random random(2);
  for (const DType dtype : kWide) {
    for (const FactorKind kind : {FactorKind::qr, FactorKind::lu}) {
      for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{1, 4}, Shape{4, 1}, Shape{0, 3},
                                 Shape{3, 0}, Shape{2, 40, 17}, Shape{2, 17, 40}}) {
        expect_on_cpu(Factor{kind}, {random_tensor(dtype, shape, random)}, tolerance_of(dtype));
      }
    }
  }
}

TEST(Factor, LuOfSingularMatricesHasZeros) {
  expect_on_cpu(Factor{FactorKind::lu}, {tensor_of(DType::f32, {2, 2}, {1, 2, 2, 4})});
  expect_on_cpu(Factor{FactorKind::lu}, {tensor_of(DType::f64, {2, 2}, {0, 0, 0, 0})});
}

// ---- Those that are not unique: what must hold of them

using Complex = std::complex<Number>;

/// A matrix of a tensor of them, as complex numbers.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<Complex> values;

  Matrix(std::int64_t m, std::int64_t n)
      : rows(m), columns(n), values(static_cast<std::size_t>(m * n)) {}
  Complex& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  Complex operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

/// Of the last `axes` axes (1: a row).
Matrix matrix_at(const Values& x, std::int64_t index, int axes = 2) {
  const Shape& shape = x.spec.shape;
  Matrix m(axes == 2 ? shape[shape.size() - 2] : 1, shape.back());
  for (std::size_t i = 0; i < m.values.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(index) * m.values.size() + i;
    m.values[i] = {x.real[at], x.imaginary.empty() ? 0 : x.imaginary[at]};
  }
  return m;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      for (std::int64_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix adjoint(const Matrix& a) {
  Matrix b(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) b(j, i) = std::conj(a(i, j));
  }
  return b;
}

void expect_equal(const Matrix& a, const Matrix& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.values.size(), b.values.size()) << what;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_LE(static_cast<double>(std::abs(a.values[i] - b.values[i])), tolerance)
        << what << ", element " << i;
  }
}

void expect_unitary(const Matrix& a, double tolerance, const std::string& what) {
  Matrix identity(a.columns, a.columns);
  for (std::int64_t i = 0; i < a.columns; ++i) identity(i, i) = 1;
  expect_equal(product(adjoint(a), a), identity, tolerance, what + " is unitary");
}

/// The outputs, which are the same for any number of threads.
std::vector<Values> run_spectral(const Op& op, const Tensor& a) {
  const Ran first = run_op(cpu_device(), op, {a});
  EXPECT_EQ(first.refused, "") << to_string(op);
  for (const int threads : {2, 8}) {
    const Ran again = run_op(cpu_device(), op, {a}, {.threads = threads});
    for (std::size_t i = 0; i < first.outputs.size(); ++i) {
      EXPECT_TRUE(first.outputs[i].bytes == again.outputs[i].bytes)
          << to_string(op) << " with " << threads << " threads";
    }
  }
  std::vector<Values> values;
  for (const Tensor& output : first.outputs) {
    values.push_back(decode(output.operand, output.bytes.data()));
  }
  return values;
}

constexpr DType kSpectral[] = {DType::f32, DType::f64, DType::complex64};

double loose(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : 2e-5;
}

/// Descending or ascending, and what there is without vectors.
void expect_ordered(const Values& values, bool descending, const Values& alone, double tolerance) {
  const auto k = static_cast<std::size_t>(values.spec.shape.back());
  for (std::size_t i = 0; i < values.real.size(); ++i) {
    if (k > 0 && i % k > 0) {
      EXPECT_TRUE(descending ? values.real[i] <= values.real[i - 1]
                             : values.real[i] >= values.real[i - 1]);
    }
    EXPECT_NEAR(static_cast<double>(values.real[i]), static_cast<double>(alone.real[i]), tolerance);
  }
}

TEST(Factor, SingularValuesAndVectors) {
  Random random(3);
  for (const DType dtype : kSpectral) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{4, 4}, Shape{6, 3}, Shape{3, 6}, Shape{2, 3, 5, 4}, Shape{1, 7},
          Shape{40, 30}, Shape{3, 0}, Shape{0, 3}, Shape{0, 2, 2}, Shape{2, 0, 0}}) {
      const Tensor tensor = random_tensor(dtype, shape, random);
      const Values a = decode(tensor.operand, tensor.bytes.data());
      const std::vector<Values> usv = run_spectral(Factor{FactorKind::svd}, tensor);
      const std::vector<Values> alone = run_spectral(Factor{FactorKind::svd, false, false}, tensor);
      const double tolerance = loose(dtype) * (1 + static_cast<double>(shape.back()));
      expect_ordered(usv[1], true, alone[0], tolerance);
      const std::int64_t count = elements(Shape(std::span(shape.begin(), shape.size() - 2)));
      for (std::int64_t i = 0; i < count; ++i) {
        const Matrix u = matrix_at(usv[0], i), s = matrix_at(usv[1], i, 1);
        const Matrix vt = matrix_at(usv[2], i);
        expect_unitary(u, tolerance, "U");
        expect_unitary(adjoint(vt), tolerance, "V");
        Matrix scaled(u.rows, vt.rows);
        for (std::int64_t r = 0; r < u.rows; ++r) {
          for (std::int64_t c = 0; c < s.columns; ++c) scaled(r, c) = u(r, c) * s(0, c);
        }
        expect_equal(product(scaled, vt), matrix_at(a, i), tolerance, "U S V^H");
        for (const Complex x : s.values) EXPECT_GE(x.real(), 0);
      }
    }
  }
}

/// One triangle counts, and of the diagonal the real part.
Matrix hermitian(const Matrix& a, bool upper) {
  Matrix h = a;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      (upper ? h(i, j) : h(j, i)) = std::conj(upper ? a(j, i) : a(i, j));
      if (i == j) h(i, i) = a(i, i).real();
    }
  }
  return h;
}

TEST(Factor, EigenvaluesOfTriangles) {
  Random random(4);
  for (const DType dtype : kSpectral) {
    for (const Shape& shape : {Shape{0, 0}, Shape{1, 1}, Shape{2, 2}, Shape{9, 9},
                               Shape{2, 3, 5, 5}, Shape{40, 40}, Shape{70, 2, 2}}) {
      for (const bool upper : {false, true}) {
        const Tensor tensor = random_tensor(dtype, shape, random);
        const Values a = decode(tensor.operand, tensor.bytes.data());
        const std::vector<Values> both = run_spectral(Factor{FactorKind::eigh, upper}, tensor);
        const std::vector<Values> alone =
            run_spectral(Factor{FactorKind::eigh, upper, false}, tensor);
        const double tolerance = loose(dtype) * (1 + static_cast<double>(shape.back()));
        expect_ordered(both[0], false, alone[0], tolerance);
        const std::int64_t count = elements(Shape(std::span(shape.begin(), shape.size() - 2)));
        for (std::int64_t i = 0; i < count; ++i) {
          const Matrix v = matrix_at(both[1], i), w = matrix_at(both[0], i, 1);
          expect_unitary(v, tolerance, "V");
          Matrix scaled = v;
          for (std::int64_t r = 0; r < v.rows; ++r) {
            for (std::int64_t c = 0; c < v.columns; ++c) scaled(r, c) *= w(0, c);
          }
          expect_equal(product(hermitian(matrix_at(a, i), upper), v), scaled, tolerance, "A V");
        }
      }
    }
  }
}

TEST(Factor, EigenvaluesOfAnyMatrix) {
  Random random(5);
  for (const DType dtype : kSpectral) {
    for (const Shape& shape : {Shape{0, 0}, Shape{1, 1}, Shape{2, 2}, Shape{9, 9},
                               Shape{2, 3, 5, 5}, Shape{30, 30}, Shape{70, 3, 3}}) {
      const Tensor tensor = random_tensor(dtype, shape, random);
      const Values a = decode(tensor.operand, tensor.bytes.data());
      const std::vector<Values> both = run_spectral(Factor{FactorKind::eig}, tensor);
      const std::vector<Values> alone = run_spectral(Factor{FactorKind::eig, false, false}, tensor);
      const double tolerance = 2e-5 * (1 + static_cast<double>(shape.back()));  // all complex64
      const std::int64_t count = elements(Shape(std::span(shape.begin(), shape.size() - 2)));
      for (std::int64_t i = 0; i < count; ++i) {
        const Matrix v = matrix_at(both[1], i), w = matrix_at(both[0], i, 1);
        Complex trace = 0, sum = 0, sum_alone = 0;
        Matrix scaled = v;
        const Matrix m = matrix_at(a, i), w_alone = matrix_at(alone[0], i, 1);
        for (std::int64_t c = 0; c < v.columns; ++c) {
          Number square = 0;
          for (std::int64_t r = 0; r < v.rows; ++r) {
            square += std::norm(v(r, c));
            scaled(r, c) *= w(0, c);
          }
          EXPECT_NEAR(static_cast<double>(square), 1, 1e-5);
          trace += m(c, c), sum += w(0, c), sum_alone += w_alone(0, c);
        }
        expect_equal(product(m, v), scaled, tolerance, "A V");
        EXPECT_LE(static_cast<double>(std::abs(trace - sum)), tolerance);
        EXPECT_LE(static_cast<double>(std::abs(trace - sum_alone)), tolerance);
      }
    }
  }
}

// ---- What has no result

void expect_fails(const Op& op, const std::vector<Tensor>& inputs,
                  const std::vector<std::string>& parts) {
  for (const int threads : {1, 8}) {
    try {
      run_op(cpu_device(), op, inputs, {.threads = threads});
      ADD_FAILURE() << to_string(op) << " did not fail";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Factor, FailuresNameTheFirstMatrix) {
  for (const DType dtype : kWide) {
    // Matrices [0, 0] and [1, 1] are fine, the others not.
    const Tensor a =
        tensor_of(dtype, {2, 2, 2, 2}, {2, 1, 1, 2, 1, 2, 2, 1, 0, 0, 0, 0, 2, 1, 1, 2});
    expect_fails(Factor{FactorKind::cholesky}, {a},
                 {"cholesky: matrix [0, 1] is not positive definite", "order 2"});
    const Tensor single = tensor_of(dtype, {2, 2}, {1, 2, 2, 4});
    expect_fails(Factor{FactorKind::inverse}, {single}, {"inverse: the matrix is singular"});
    expect_fails(Factor{FactorKind::inverse}, {a}, {"inverse: matrix [1, 0] is singular"});
    const Tensor triangular = tensor_of(dtype, {1, 2, 2}, {1, 9, 0, 0});
    expect_fails(Factor{FactorKind::triangular_inverse}, {triangular},
                 {"triangular_inverse: matrix [0] is singular", "element 1"});
    expect_fails(Solve{}, {single, tensor_of(dtype, {2, 1}, {1, 2})},
                 {"solve: the matrix of a is singular"});
    expect_fails(Solve{true}, {triangular, tensor_of(dtype, {1, 2, 1}, {1, 2})},
                 {"solve: matrix [0] of a is singular", "element 1"});
  }
}

TEST(Factor, WhatIteratesRefusesNanAndInfinity) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    for (const FactorKind kind : {FactorKind::svd, FactorKind::eigh, FactorKind::eig}) {
      for (const bool vectors : {false, true}) {
        for (const DType dtype : kWide) {
          std::vector<double> values(2 * 9, 1.0);
          values[9 + 3] = bad;  // below the diagonal
          expect_fails(Factor{kind, false, vectors}, {tensor_of(dtype, {2, 3, 3}, values)},
                       {"matrix [1] has infinities or NaN"});
        }
        Tensor complex{OperandSpec::contiguous({DType::complex64, {2, 2}}), {}};
        const std::vector<float> parts{1, 0, 2, 0, 3, static_cast<float>(bad), 4, 0};
        complex.bytes.resize(parts.size() * sizeof(float));
        std::memcpy(complex.bytes.data(), parts.data(), complex.bytes.size());
        expect_fails(Factor{kind, false, vectors}, {complex}, {"the matrix has infinities or NaN"});
      }
    }
  }
}

TEST(Factor, OthersPassNanAndInfinityOnAndEnd) {
  for (const DType dtype : kWide) {
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      for (std::size_t at = 0; at < 9; ++at) {
        std::vector<double> values{4, 1, 2, 1, 5, 1, 2, 1, 6};
        values[at] = bad;
        const Tensor a = tensor_of(dtype, {3, 3}, values);
        for (const FactorKind kind : kDirect) {
          try {
            const Ran ran = run_op(cpu_device(), Factor{kind}, {a});
            EXPECT_EQ(ran.refused, "");
          } catch (const Error& error) {  // cholesky's comparisons
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
          }
        }
        for (const bool triangular : {false, true}) {
          try {
            run_op(cpu_device(), Solve{triangular}, {a, tensor_of(dtype, {3, 1}, {1, 2, 3})});
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
          }
        }
      }
    }
  }
}

TEST(Factor, OtherLayoutsAreRefusedAndNamed) {
  Random random(6);
  const Tensor a = random_tensor(arranged(DType::f32, {3, 3}, Arrangement::transposed), random);
  EXPECT_NE(
      run_op(cpu_device(), Factor{}, {a}).refused.find("factor: operand 0 must be contiguous"),
      std::string::npos);
}

TEST(Factor, RowsAlone) {
  Random random(7);
  for (const FactorKind kind :
       {FactorKind::cholesky, FactorKind::qr, FactorKind::svd, FactorKind::eigh, FactorKind::eig,
        FactorKind::lu, FactorKind::inverse, FactorKind::triangular_inverse}) {
    expect_rows_alone(cpu_device(), Factor{kind}, {symmetric(DType::f32, {5, 2, 6, 6}, random)});
  }
  for (const bool triangular : {false, true}) {
    expect_rows_alone(cpu_device(), Solve{triangular},
                      {regular(DType::f64, {5, 2, 6, 6}, random),
                       random_tensor(DType::f64, {5, 2, 6, 3}, random)});
  }
}

TEST(Solve, EverySizeAndTriangle) {
  Random random(8);
  for (const DType dtype : kWide) {
    for (const std::int64_t n : {0, 1, 2, 7, 33}) {
      for (const std::int64_t k : {0, 1, 2, 19}) {
        for (const Solve op : {Solve{}, Solve{true, false}, Solve{true, true}}) {
          expect_on_cpu(op, {regular(dtype, {n, n}, random), random_tensor(dtype, {n, k}, random)},
                        tolerance_of(dtype));
          expect_on_cpu(
              op,
              {regular(dtype, {3, 2, n, n}, random), random_tensor(dtype, {3, 2, n, k}, random)},
              tolerance_of(dtype));
        }
      }
    }
  }
}

// ---- Fourier transforms

TensorSpec fft_input(FftKind kind, const Shape& shape, std::size_t axis, std::int64_t n) {
  Shape extents = shape;
  extents[axis] = kind == FftKind::real_inverse ? n / 2 + 1 : n;
  return {kind == FftKind::real_forward ? DType::f32 : DType::complex64, extents};
}

constexpr FftKind kFfts[] = {FftKind::forward, FftKind::inverse, FftKind::real_forward,
                             FftKind::real_inverse};

void check_fft(FftKind kind, const Shape& shape, std::size_t axis, std::int64_t n, Random& random) {
  const TensorSpec spec = fft_input(kind, shape, axis, n);
  // Results are about sqrt(n) in size, backwards divided by n, and rounded some log(n) times.
  const bool backwards = kind == FftKind::inverse || kind == FftKind::real_inverse;
  const double root = std::sqrt(static_cast<double>(n));
  expect_on_cpu(Fft{kind, static_cast<std::int64_t>(axis), n},
                {random_tensor(spec.dtype, spec.shape, random)},
                {2, 5e-6 * (backwards ? 1 / root : root)});
}

TEST(Fft, EveryLength) {
  Random random(9);
  for (const FftKind kind : kFfts) {
    for (std::int64_t n = 1; n <= 200; ++n) check_fft(kind, {0}, 0, n, random);
  }
}

TEST(Fft, LongPrimesAndTheirMultiples) {
  Random random(10);
  for (const FftKind kind : kFfts) {
    for (const std::int64_t n : {211, 499, 997, 1009, 3 * 211, 4 * 97, 1 << 10, 7 * 128}) {
      check_fft(kind, {0}, 0, n, random);
    }
  }
}

TEST(Fft, EveryAxis) {
  Random random(11);
  for (const FftKind kind : kFfts) {
    for (const std::int64_t n : {1, 2, 5, 7, 16, 30, 53, 106}) {
      check_fft(kind, {0, 3, 19}, 0, n, random);
      check_fft(kind, {3, 0, 19}, 1, n, random);
      check_fft(kind, {3, 19, 0}, 2, n, random);
    }
    check_fft(kind, {0, 4, 2}, 1, 6, random);
    check_fft(kind, {2, 4, 0, 3}, 2, 6, random);
    check_fft(kind, {1, 0, 1}, 1, 12, random);
    check_fft(kind, {300, 0}, 1, 12, random);
  }
}

TEST(Fft, RowsAlone) {
  Random random(12);
  for (const FftKind kind : kFfts) {
    for (const std::int64_t n : {12, 14, 106}) {
      for (const std::size_t axis : {std::size_t{1}, std::size_t{2}}) {
        const TensorSpec spec = fft_input(kind, {4, 9, 9}, axis, n);
        expect_rows_alone(cpu_device(), Fft{kind, static_cast<std::int64_t>(axis), n},
                          {random_tensor(spec.dtype, spec.shape, random)});
      }
    }
  }
}

// ---- Hadamard transforms

TEST(Hadamard, EveryOrderAndDtype) {
  at_every_level([] {
    Random random(13);
    for (const DType dtype : kFloats) {
      for (const std::int64_t n : {1, 2, 8, 128, 12, 24, 96, 20, 160, 28, 112, 28 * 16}) {
        const double size = std::sqrt(static_cast<double>(n));
        const double each = dtype == DType::f64 ? 1e-14 : 1e-6;
        for (const float scale : {1.0f, 0.125f}) {
          expect_on_cpu(Hadamard{scale}, {random_tensor(dtype, {3, n}, random)},
                        {0.51, each * size});
        }
      }
      expect_on_cpu(Hadamard{1}, {random_tensor(dtype, {4}, random)}, {0.51, 1e-5});
      expect_on_cpu(Hadamard{1}, {random_tensor(dtype, {0, 4}, random)});
      expect_on_cpu(Hadamard{1}, {random_tensor(dtype, {100, 2, 4}, random)}, {0.51, 1e-5});
    }
  });
}

TEST(Hadamard, RowsAreOrthogonal) {
  for (const std::int64_t n : {12, 20, 28, 56}) {
    std::vector<double> identity(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = 1;
    const Ran ran = run_op(cpu_device(), Hadamard{1}, {tensor_of(DType::f64, {n, n}, identity)});
    const Matrix h =
        matrix_at(decode(ran.outputs.at(0).operand, ran.outputs.at(0).bytes.data()), 0);
    for (const Complex x : h.values) EXPECT_EQ(std::fabs(x.real()), 1);
    Matrix multiple(n, n);
    for (std::int64_t i = 0; i < n; ++i) multiple(i, i) = static_cast<Number>(n);
    expect_equal(product(adjoint(h), h), multiple, 0, "H^T H");
  }
}

TEST(Hadamard, RowsAlone) {
  Random random(14);
  for (const DType dtype : kFloats) {
    expect_rows_alone(cpu_device(), Hadamard{0.5f}, {random_tensor(dtype, {4, 3, 24}, random)});
  }
}

// ---- Products of complex matrices

TEST(ComplexMatmul, EveryArrangement) {
  Random random(15);
  for (const Arrangement a : kArrangements) {
    for (const Arrangement b : kArrangements) {
      for (const auto& [m, k, n] :
           {std::array<std::int64_t, 3>{1, 1, 1}, {3, 5, 7}, {9, 300, 70}, {2, 0, 3}, {0, 4, 2}}) {
        expect_on_cpu(Matmul{},
                      {random_tensor(arranged(DType::complex64, {m, k}, a), random),
                       random_tensor(arranged(DType::complex64, {k, n}, b), random)},
                      {8, 1e-5 * (1 + static_cast<double>(k))});
      }
    }
  }
}

TEST(ComplexMatmul, BatchesBroadcast) {
  Random random(16);
  expect_on_cpu(Matmul{},
                {random_tensor(DType::complex64, {2, 1, 3, 4}, random),
                 random_tensor(DType::complex64, {5, 4, 6}, random)},
                {8, 1e-5});
  expect_rows_alone(cpu_device(), Matmul{},
                    {random_tensor(DType::complex64, {7, 40}, random),
                     random_tensor(DType::complex64, {40, 66}, random)});
}

// ---- All of them

View in_memory(const Tensor& tensor) {
  const Ref<Buffer> buffer = cpu_device().allocate(tensor.bytes.size());
  std::copy(tensor.bytes.begin(), tensor.bytes.end(), static_cast<std::byte*>(buffer->host()));
  return {buffer, 0, tensor.operand};
}

/// Allocations while the kernel runs.
int allocations_of(const Op& op, const std::vector<Tensor>& inputs) {
  std::vector<OperandSpec> operands;
  std::vector<TensorSpec> specs;
  std::vector<View> in, out;
  for (const Tensor& input : inputs) {
    operands.push_back(input.operand);
    specs.push_back(input.operand.spec);
    in.push_back(in_memory(input));
  }
  const std::vector<OperandSpec> results = output_operands(op, infer(op, specs));
  for (const OperandSpec& result : results) {
    out.push_back(in_memory({result, std::vector<std::byte>(span_bytes(result))}));
  }
  const Prepared prepared = cpu_device().prepare(op, operands, results);
  const auto bytes = static_cast<std::int64_t>(prepared.kernel->traits().workspace_bytes);
  const OperandSpec workspace = OperandSpec::contiguous({DType::u8, {bytes}});
  const View room = in_memory({workspace, std::vector<std::byte>(static_cast<std::size_t>(bytes))});
  const Ref<Stream> stream = cpu_device().default_stream();
  const View none;
  stream->submit()->wait();  // makes what the process makes once
  const AllocationCount count;
  stream->encode(prepared.kernel, in, out, room, none);
  return count.so_far();
}

TEST(LinearAlgebra, KernelsAllocateNothing) {
  Team team(2);
  const TeamScope scope(team);
  Random random(17);
  const Tensor a = symmetric(DType::f32, {3, 20, 20}, random);
  for (const FactorKind kind :
       {FactorKind::cholesky, FactorKind::qr, FactorKind::svd, FactorKind::eigh, FactorKind::eig,
        FactorKind::lu, FactorKind::inverse, FactorKind::triangular_inverse}) {
    EXPECT_EQ(allocations_of(Factor{kind}, {a}), 0) << to_string(kind);
  }
  EXPECT_EQ(allocations_of(Solve{}, {a, a}), 0);
  for (const FftKind kind : kFfts) {
    for (const std::int64_t n : {12, 14, 106, 211}) {
      const TensorSpec spec = fft_input(kind, {0, 9}, 0, n);
      EXPECT_EQ(allocations_of(Fft{kind, 0, n}, {random_tensor(spec.dtype, spec.shape, random)}), 0)
          << to_string(kind) << " of " << n;
    }
  }
  EXPECT_EQ(allocations_of(Hadamard{}, {random_tensor(DType::f16, {5, 24}, random)}), 0);
  EXPECT_EQ(allocations_of(Matmul{}, {random_tensor(DType::complex64, {9, 9}, random),
                                      random_tensor(DType::complex64, {9, 9}, random)}),
            0);
}

}  // namespace
}  // namespace heddle::test
