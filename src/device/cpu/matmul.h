// What the kinds of matmul have in common: one matrix product for each element of a batch.
#pragma once

#include "device/cpu/kernel.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

/// Strides are in elements.
struct MatmulShape {
  std::int64_t batch = 1, rows = 0, depth = 0, columns = 0;
  std::int64_t a_row, a_depth;     // strides of a
  std::int64_t b_depth, b_column;  // strides of b
  Shape batch_shape;
  Dims a_batch, b_batch;  // strides along the batch axes, 0 where an operand is repeated

  std::int64_t a_offset(std::int64_t index) const noexcept { return offset(index, a_batch); }
  std::int64_t b_offset(std::int64_t index) const noexcept { return offset(index, b_batch); }

 private:
  std::int64_t offset(std::int64_t index, const Dims& strides) const noexcept {
    std::int64_t result = 0;
    for (std::size_t i = batch_shape.size(); i-- > 0; index /= batch_shape[i]) {
      result += index % batch_shape[i] * strides[i];
    }
    return result;
  }
};

MatmulShape matmul_shape(const PrepareArgs& args);

// ---- Parts of a product, for those who share it out

inline constexpr std::int64_t kRowBlock = kMostTileRows;

/// Part of one batch element's product, small enough for the caches: at most kRowBlock rows and
/// kGroupColumns columns.
struct MatmulPart {
  std::int64_t batch, row, rows, column, columns;
};

struct MatmulOperands {
  const std::byte *a, *b;
  std::byte* out;
};

/// Of f32, f16 or bf16, with float sums; each of a and b has an axis of adjacent elements.
struct FloatMatmul {
  MatmulShape shape;
  DType dtype;
  std::size_t item_bytes;
  Stored stored;
  void (*decode)(const std::byte*, std::int64_t, float*);
  const Products* loops;

  FloatMatmul(const MatmulShape& shape, DType dtype);
};

struct BlockScratch {
  alignas(64) float b[kGroupColumns * kDepthBlock];
  alignas(64) float line[kPanel * kDepthBlock];
};

struct MatmulScratch {
  BlockScratch block;
  alignas(64) float a[kRowBlock * kDepthBlock];
  alignas(64) float sums[kRowBlock * kGroupColumns];
};

void multiply_part(const FloatMatmul& matmul, const MatmulOperands& operands,
                   const MatmulPart& part, MatmulScratch& scratch);
void multiply_part_f64(const MatmulShape& shape, const MatmulOperands& operands,
                       const MatmulPart& part);

/// The product of bf16 by instructions for pairs of them, where there are some; else nothing.
std::optional<Run> pair_matmul(DType dtype, const MatmulShape& shape);

/// A way to run a product. `workspace_bytes` is what Run needs.
struct MatmulRun {
  Run run;
  std::size_t workspace_bytes = 0;
};
/// The product through oneDNN, where it serves; else nothing.
std::optional<MatmulRun> library_matmul(DType dtype, const MatmulShape& shape);
/// Products of f32 or f64 where each matrix of a has one row and each of b one column, whose
/// elements are adjacent; else nothing. Sums are of blocks as in row_ops.h.
std::optional<MatmulRun> dot_products(DType dtype, const MatmulShape& shape);

/// The product of complex64 matrices.
Prepared prepare_complex_matmul(const PrepareArgs& args, const MatmulShape& shape);

}  // namespace heddle::cpu
