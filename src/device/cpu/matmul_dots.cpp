// Products of one row with one column each, of a batch: nothing is to be shared, so elements are
// read once, where they lie.
#include <algorithm>

#include "device/cpu/isa.h"
#include "device/cpu/matmul.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_ops.h"

namespace heddle::cpu {

namespace {

/// The sum of products of a block, of n <= kBlock.
float dot(const Products& loops, const float* a, const float* b, std::int64_t n) {
  float sum;
  loops.dots[static_cast<std::size_t>(Stored::f32)](
      {.x = a,
       .x_stride = n,
       .rows = 1,
       .weights = reinterpret_cast<const std::byte*>(b),
       .depth = n,
       .columns = 1,
       .out = &sum,
       .out_stride = 1});
  return sum;
}

double dot(const Products&, const double* a, const double* b, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (std::int64_t l = 0; i < n; ++i, ++l) lanes[l] += a[i] * b[i];
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// Elements of a part: what a thread sums for others to join.
constexpr std::int64_t kPart = 32 * kBlock;

struct Dots {
  MatmulShape shape;
  const Products* loops;

  /// A function of the depth only.
  std::int64_t parts() const {
    return std::max<std::int64_t>(1, (shape.depth + kPart - 1) / kPart);
  }

  template <class T>
  T part(const Launch& launch, std::int64_t batch, std::int64_t index) const {
    const T* a = launch.inputs[0].as<T>() + shape.a_offset(batch);
    const T* b = launch.inputs[1].as<T>() + shape.b_offset(batch);
    const std::int64_t end = std::min(shape.depth, (index + 1) * kPart);
    Pairwise<T> sum;
    for (std::int64_t k = index * kPart; k < end; k += kBlock) {
      sum.add(dot(*loops, a + k, b + k, std::min(kBlock, end - k)));
    }
    return sum.total();
  }

  template <class T>
  void run(const Launch& launch) const {
    T* out = launch.outputs[0].as<T>();
    T* sums = parts() > 1 ? reinterpret_cast<T*>(launch.workspace) : out;
    parallel(launch.team, shape.batch * parts(), row_grain(std::min(shape.depth, kPart)),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 sums[i] = part<T>(launch, i / parts(), i % parts());
               }
             });
    for (std::int64_t i = 0; parts() > 1 && i < shape.batch; ++i) {
      Pairwise<T> sum;
      for (std::int64_t p = 0; p < parts(); ++p) sum.add(sums[i * parts() + p]);
      out[i] = sum.total();
    }
  }
};

}  // namespace

std::optional<MatmulRun> dot_products(DType dtype, const MatmulShape& shape) {
  const bool are_dots =
      shape.rows == 1 && shape.columns == 1 && shape.a_depth == 1 && shape.b_depth == 1;
  if (!are_dots || (dtype != DType::f32 && dtype != DType::f64)) return std::nullopt;
  const Dots dots{shape, &products(isa())};
  const auto run = dtype == DType::f32 ? &Dots::run<float> : &Dots::run<double>;
  const std::int64_t sums = dots.parts() > 1 ? shape.batch * dots.parts() : 0;
  return MatmulRun{[=](const Launch& launch) { (dots.*run)(launch); },
                   static_cast<std::size_t>(sums) * item_size(dtype)};
}

}  // namespace heddle::cpu
