// Matmul of bf16 by instructions that multiply and add two terms at a time.
//
// A group of columns of b is packed block by block, each for all rows of a task; a is read where it
// lies. Every sum is taken in blocks of kPairsBlock terms, each one chain, whatever the task.
#include <algorithm>

#include "device/cpu/convert.h"
#include "device/cpu/isa.h"
#include "device/cpu/matmul.h"
#include "device/cpu/matmul_tasks.h"
#include "device/cpu/pair_products.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kItem = 2, kChunkWork = std::int64_t{1} << 17;

struct Scratch {
  alignas(64) float b[kGroupColumns * kPairsBlock / 2];
  alignas(64) float a[kRowBlock * kPairsBlock / 2];  // of rows that cannot be read where they lie
  alignas(64) float sums[kTaskRows * kGroupColumns];
};

/// Rows of a in pairs.
struct PairRows {
  const float* data;
  std::int64_t stride;
};

class PairProduct {
 public:
  PairProduct(const MatmulShape& shape, const PairProducts& loops)
      : shape_(shape), loops_(&loops), narrow_(narrow_function(DType::bf16)) {}

  void run(const Launch& launch) const {
    if (shape_.batch * shape_.rows * shape_.columns == 0) return;  // there are no results
    const Cut cut(shape_, 1, launch.team.size());
    const std::int64_t work = std::min(shape_.rows, cut.rows) *
                              std::min(shape_.columns, kGroupColumns) *
                              std::max<std::int64_t>(1, shape_.depth);
    const SlotOrder order(cut.count, launch.team.size());
    const std::int64_t grain = std::max<std::int64_t>(1, kChunkWork / work);
    parallel(launch.team, order.count, grain, [&](std::int64_t begin, std::int64_t end) {
      Scratch scratch;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t slot = order.slot(i), last = cut.count * (slot + 1) / order.count;
        for (std::int64_t task = cut.count * slot / order.count; task < last; ++task) {
          multiply(launch, cut.task(shape_, task), scratch);
        }
      }
    });
  }

 private:
  void multiply(const Launch& launch, const MatmulPart& task, Scratch& scratch) const {
    std::int64_t k = 0;
    do {  // even a sum of no terms must be written
      const std::int64_t depth = std::min(kPairsBlock, shape_.depth - k);
      pack_b(launch, task, k, depth, scratch.b);
      for (std::int64_t row = 0; row < task.rows; row += kRowBlock) {
        const std::int64_t rows = std::min(kRowBlock, task.rows - row);
        const PairRows a = rows_of_a(launch, task, row, rows, k, depth, scratch.a);
        float* sums = scratch.sums + row * kGroupColumns;
        loops_->tile({.x = a.data,
                      .x_stride = a.stride,
                      .rows = rows,
                      .w = scratch.b,
                      .step = kGroupColumns,
                      .panel = kPanel,
                      .depth = blocks_of(depth, 2),
                      .columns = task.columns,
                      .out = sums,
                      .out_stride = kGroupColumns,
                      .scales = k > 0 ? kOnes : nullptr});
        if (k + depth == shape_.depth) store(launch, task, row, rows, sums);
      }
      k += kPairsBlock;
    } while (k < shape_.depth);
  }

  void store(const Launch& launch, const MatmulPart& task, std::int64_t row, std::int64_t rows,
             const float* sums) const {
    const std::int64_t first = task.batch * shape_.rows + task.row + row;
    std::byte* out = launch.outputs[0].data + (first * shape_.columns + task.column) * kItem;
    for (std::int64_t r = 0; r < rows; ++r) {
      narrow_(sums + r * kGroupColumns, out + r * shape_.columns * kItem, task.columns);
    }
  }

  void pack_b(const Launch& launch, const MatmulPart& task, std::int64_t k, std::int64_t depth,
              float* to) const {
    const std::byte* from =
        launch.inputs[1].data +
        (shape_.b_offset(task.batch) + k * shape_.b_depth + task.column * shape_.b_column) * kItem;
    if (shape_.b_column == 1) {
      loops_->pack_terms(from, shape_.b_depth * kItem, depth, task.columns, to);
    } else {
      loops_->pack_columns(from, shape_.b_column * kItem, depth, task.columns, to);
    }
  }

  /// Rows from `row` of the task on, for terms [k, k + depth); copied where the last term has none
  /// beside it, or rows are not whole pairs apart.
  PairRows rows_of_a(const Launch& launch, const MatmulPart& task, std::int64_t row,
                     std::int64_t rows, std::int64_t k, std::int64_t depth, float* to) const {
    const std::byte* from =
        launch.inputs[0].data +
        (shape_.a_offset(task.batch) + (task.row + row) * shape_.a_row + k) * kItem;
    if (depth % 2 == 0 && shape_.a_row % 2 == 0) {
      return {reinterpret_cast<const float*>(from), shape_.a_row / 2};
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* pairs = to + r * kPairsBlock / 2;
      if (depth % 2 != 0) pairs[depth / 2] = 0;
      std::copy_n(from + r * shape_.a_row * kItem, depth * kItem,
                  reinterpret_cast<std::byte*>(pairs));
    }
    return {to, kPairsBlock / 2};
  }

  MatmulShape shape_;
  const PairProducts* loops_;
  NarrowFunction narrow_;
};

}  // namespace

std::optional<Run> pair_matmul(DType dtype, const MatmulShape& shape) {
  const PairProducts* loops = pair_products(isa());
  const bool b_dense = shape.b_depth == 1 || shape.b_column == 1;
  if (dtype != DType::bf16 || !loops || shape.a_depth != 1 || !b_dense) return std::nullopt;
  return [product = PairProduct(shape, *loops)](const Launch& launch) { product.run(launch); };
}

}  // namespace heddle::cpu
