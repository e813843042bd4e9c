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

template <class T>
void run_dots(const MatmulShape& shape, const Products& loops, const Launch& launch) {
  const T *a = launch.inputs[0].as<T>(), *b = launch.inputs[1].as<T>();
  T* out = launch.outputs[0].as<T>();
  parallel(launch.team, shape.batch, row_grain(shape.depth),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const T *row = a + shape.a_offset(i), *column = b + shape.b_offset(i);
               Pairwise<T> sum;
               for (std::int64_t k = 0; k < shape.depth; k += kBlock) {
                 sum.add(dot(loops, row + k, column + k, std::min(kBlock, shape.depth - k)));
               }
               out[i] = sum.total();
             }
           });
}

}  // namespace

std::optional<Run> dot_products(DType dtype, const MatmulShape& shape) {
  const bool are_dots =
      shape.rows == 1 && shape.columns == 1 && shape.a_depth == 1 && shape.b_depth == 1;
  if (!are_dots || (dtype != DType::f32 && dtype != DType::f64)) return std::nullopt;
  const auto run = dtype == DType::f32 ? run_dots<float> : run_dots<double>;
  return [=, &loops = products(isa())](const Launch& launch) { run(shape, loops, launch); };
}

}  // namespace heddle::cpu
