// What the kinds of matmul have in common: one matrix product for each element of a batch.
#pragma once

#include "device/cpu/kernel.h"

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

/// The product through oneDNN, where it serves; else nothing. `workspace_bytes` is what Run needs.
struct LibraryMatmul {
  Run run;
  std::size_t workspace_bytes = 0;
};
std::optional<LibraryMatmul> library_matmul(DType dtype, const MatmulShape& shape);

/// The product of complex64 matrices.
Prepared prepare_complex_matmul(const PrepareArgs& args, const MatmulShape& shape);

}  // namespace heddle::cpu
