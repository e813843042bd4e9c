// Kernels that hand one matrix after another to LAPACK.
#pragma once

#include <atomic>
#include <climits>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/cpu/tasks.h"

namespace heddle::cpu {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

/// Takes arrays off a task's part of the workspace; without memory, it measures.
class Carver {
 public:
  explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}
  template <class T>
  T* take(std::int64_t count) {
    constexpr std::size_t kLine = 64;
    std::byte* at = memory_ ? memory_ + used_ : nullptr;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

/// One matrix of each operand.
struct MatrixOperands {
  const std::byte* in[2];
  std::byte* out[3];

  template <class T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i) const {
    return reinterpret_cast<T*>(out[i]);
  }
};

/// What a matrix is said to have failed of when it has infinities or NaN; other than LAPACK's.
inline constexpr int kNotFinite = INT_MAX;

/// The first of the matrices that failed, whichever task found it, and how.
class FirstFailure {
 public:
  void note(std::int64_t matrix, int info) noexcept {
    const std::uint64_t mine =
        static_cast<std::uint64_t>(matrix) << 32 | static_cast<std::uint32_t>(info);
    std::uint64_t known = first_.load(std::memory_order_relaxed);
    while (mine < known && !first_.compare_exchange_weak(known, mine, std::memory_order_relaxed)) {
    }
  }
  bool any() const noexcept { return first_.load(std::memory_order_relaxed) != kNone; }
  std::int64_t matrix() const noexcept { return static_cast<std::int64_t>(first_ >> 32); }
  int info() const noexcept { return static_cast<int>(static_cast<std::uint32_t>(first_)); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::atomic<std::uint64_t> first_{kNone};
};

/// How operands divide into matrices: all but the last two axes of operand 0.
struct MatrixBatch {
  Shape axes;
  std::int64_t matrices = 1, matrices_per_row = 0;
  std::size_t in_bytes[2] = {}, out_bytes[3] = {};  // of one matrix

  explicit MatrixBatch(const PrepareArgs& args);
  MatrixOperands at(const Launch& launch, std::int64_t matrix) const;
  /// "the matrix", or "matrix [1, 0]".
  std::string name_of(std::int64_t matrix) const;
};

/// "cholesky: matrix [2] is not positive definite ..."
[[noreturn]] void fail_matrix(std::string_view function, const MatrixBatch& batch,
                              const FirstFailure& failure, std::string_view what);

/// A kernel that calls kind(operands, room) for each matrix, where kind.carve(carver) makes the
/// room. A result other than 0 is the matrix's failure, of which kind.failure(info) tells.
/// `elements` are what one matrix's work is worth.
template <class Kind>
Prepared make_matrix_kernel(const PrepareArgs& args, std::string_view function, const Kind& kind,
                            std::int64_t elements) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  const MatrixBatch batch(args);
  Carver measure;
  kind.carve(measure);
  std::size_t data_bytes = 0;
  for (const ByteRange& range : traits.reads) data_bytes += range.end - range.begin;
  for (const ByteRange& range : traits.writes) data_bytes += range.end - range.begin;
  const Tasks tasks(batch.matrices, batch.matrices_per_row, elements, measure.used(), data_bytes);
  traits.workspace_bytes = tasks.workspace_bytes();
  traits.honours_extent = batch.matrices_per_row > 0;
  return make_kernel(std::move(traits), [=](const Launch& launch) {
    FirstFailure failure;
    tasks.run(launch, [&](std::int64_t matrix, std::byte* scratch) {
      Carver carver(scratch);
      const int info = kind(batch.at(launch, matrix), kind.carve(carver));
      if (info != 0) failure.note(matrix, info);
    });
    if (failure.any()) fail_matrix(function, batch, failure, kind.failure(failure.info()));
  });
}

/// The size of a work array that LAPACK asks for in a number of its element type, which may have
/// been rounded down; nothing where LAPACK's integers cannot say it.
std::optional<int> work_size(double asked);

/// `from`, of rows side by side, by columns; and so the other way round too.
template <class T>
void transpose_matrix(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  constexpr std::int64_t kTile = 16;  // a cache line of floats
  for (std::int64_t r = 0; r < rows; r += kTile) {
    const std::int64_t r_end = std::min(rows, r + kTile);
    for (std::int64_t c = 0; c < columns; c += kTile) {
      const std::int64_t c_end = std::min(columns, c + kTile);
      for (std::int64_t i = r; i < r_end; ++i) {
        for (std::int64_t j = c; j < c_end; ++j) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}

/// About as many element-wise operations as n^3 multiplications, without overflow.
std::int64_t cubic_work(std::int64_t m, std::int64_t n);

/// LAPACK's integers are of 32 bits, and index rows, columns and elements of work arrays.
inline constexpr std::int64_t kMostRows = INT_MAX / 64;
std::string too_large(std::string_view function, std::int64_t m, std::int64_t n);

// Of Factor, the kinds that iterate (factor_spectral.cpp).
Prepared prepare_spectral(const PrepareArgs& args, const Factor& op);

}  // namespace heddle::cpu
