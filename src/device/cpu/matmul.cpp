// Matmul: activations against activations.
#include "device/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/isa.h"
#include "device/cpu/matmul_tasks.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"
#include "heddle/half.h"

namespace heddle::cpu {

FloatMatmul::FloatMatmul(const MatmulShape& s, DType type)
    : shape(s),
      dtype(type),
      item_bytes(item_size(type)),
      stored(*stored_type(type)),
      loops(&products(isa())) {
  decode = loops->decode[static_cast<std::size_t>(stored)];
}

namespace {

// Up to this many rows, copying b costs more than reading it where it lies.
constexpr std::int64_t kRowsWithoutPacking = 12;
constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;

/// Shares out a product in parts of at most `row_block` rows and kGroupColumns columns.
template <class Body>
void for_each_part(Team& team, const MatmulShape& shape, std::int64_t row_block, const Body& body) {
  const std::int64_t row_blocks = (shape.rows + row_block - 1) / row_block;
  const std::int64_t groups = (shape.columns + kGroupColumns - 1) / kGroupColumns;
  const std::int64_t work = std::min(shape.rows, row_block) *
                            std::min(shape.columns, kGroupColumns) *
                            std::max<std::int64_t>(1, shape.depth);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kChunkWork / std::max<std::int64_t>(1, work));
  parallel(team, shape.batch * row_blocks * groups, grain,
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const std::int64_t row = i % row_blocks * row_block;
               const std::int64_t column = i / row_blocks % groups * kGroupColumns;
               body(MatmulPart{.batch = i / row_blocks / groups,
                               .row = row,
                               .rows = std::min(row_block, shape.rows - row),
                               .column = column,
                               .columns = std::min(kGroupColumns, shape.columns - column)});
             }
           });
}

// ---- f32, f16 and bf16, with float sums

// A task's most groups of columns, where rows of a must be packed too.
constexpr std::int64_t kTaskGroups = 4;
// Tasks that can run at once: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 32;

bool packs_a(const FloatMatmul& m) {
  return m.dtype != DType::f32;
}
std::int64_t most_rows(const FloatMatmul& m) {
  return std::min(kTaskRows, m.shape.rows);
}
std::int64_t most_groups(const FloatMatmul& m) {
  return packs_a(m) ? std::min(kTaskGroups, blocks_of(m.shape.columns, kGroupColumns)) : 1;
}

MatmulOperands operands_of(const Launch& launch) {
  return {launch.inputs[0].data, launch.inputs[1].data, launch.outputs[0].data};
}

/// What a task of one group of columns works in, on its thread's stack: other threads' caches know
/// nothing of it.
struct StackScratch {
  BlockScratch block;
  alignas(64) float sums[kTaskRows * kGroupColumns];
};

/// What a task works in.
struct FloatScratch {
  BlockScratch& block;
  float *a, *sums;
  std::int64_t sums_stride;

  static std::int64_t a_floats(const FloatMatmul& m) {
    return packs_a(m) ? blocks_of(most_rows(m), kStripRows) * kStripRows * kDepthBlock : 0;
  }
  static std::int64_t sums_floats(const FloatMatmul& m) {
    return packs_a(m) ? most_rows(m) * most_groups(m) * kGroupColumns : 0;
  }
  static std::int64_t floats(const FloatMatmul& m) { return a_floats(m) + sums_floats(m); }

  /// `memory` is `floats` of the workspace.
  FloatScratch(const FloatMatmul& m, StackScratch& stack, float* memory)
      : block(stack.block),
        a(memory),
        sums(packs_a(m) ? memory + a_floats(m) : stack.sums),
        sums_stride(most_groups(m) * kGroupColumns) {}
  /// For products of kGroupColumns columns and kRowBlock rows at most.
  explicit FloatScratch(MatmulScratch& one)
      : block(one.block), a(one.a), sums(one.sums), sums_stride(kGroupColumns) {}
};

struct Packed {
  const float* data;
  std::int64_t stride, panel = 0;
};

/// A group of columns of b, for terms [k, k + depth).
struct GroupBlock {
  const std::byte* at;
  std::int64_t k, depth, columns;
};

GroupBlock block_of(const FloatMatmul& m, const std::byte* b, const MatmulPart& part,
                    std::int64_t column, std::int64_t k) {
  const MatmulShape& s = m.shape;
  const std::int64_t first =
      s.b_offset(part.batch) + k * s.b_depth + (part.column + column) * s.b_column;
  return {.at = b + first * static_cast<std::int64_t>(m.item_bytes),
          .k = k,
          .depth = std::min(kDepthBlock, s.depth - k),
          .columns = std::min(kGroupColumns, part.columns - column)};
}

bool is_read_in_place(const FloatMatmul& m, const GroupBlock& block, std::int64_t rows) {
  return m.shape.b_column == 1 && m.dtype == DType::f32 && rows <= kRowsWithoutPacking &&
         block.columns % kPanel == 0;
}

/// As a tile reads it; in `to` unless it can be read where it lies.
Packed pack_b(const FloatMatmul& m, const GroupBlock& block, std::int64_t rows, float* to,
              float* line) {
  const MatmulShape& s = m.shape;
  const auto item = static_cast<std::int64_t>(m.item_bytes);
  if (is_read_in_place(m, block, rows)) {
    return {reinterpret_cast<const float*>(block.at), s.b_depth, kPanel};
  }
  if (s.b_column == 1) {
    if (block.columns == kGroupColumns) {
      m.loops->decode_group[static_cast<std::size_t>(m.stored)](block.at, s.b_depth * item,
                                                                block.depth, to);
      return {to, kGroupColumns, kPanel};
    }
    for (std::int64_t i = 0; i < block.depth; ++i) {
      m.decode(block.at + i * s.b_depth * item, block.columns, to + i * kGroupColumns);
    }
    return {to, kGroupColumns, kPanel};
  }
  const bool is_turned_in_place = m.dtype == DType::f32 && block.depth % kPanel == 0;
  for (std::int64_t first = 0; first < block.columns; first += kPanel) {
    const std::int64_t columns = std::min(kPanel, block.columns - first);
    const std::byte* from = block.at + first * s.b_column * item;
    float* panel = to + first * kDepthBlock;
    if (is_turned_in_place && columns == kPanel) {
      m.loops->to_panel(reinterpret_cast<const float*>(from), s.b_column, block.depth, panel);
      continue;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      m.decode(from + c * s.b_column * item, block.depth, line + c * kDepthBlock);
    }
    std::fill(line + columns * kDepthBlock, line + kPanel * kDepthBlock, 0.0f);
    m.loops->to_panel(line, kDepthBlock, block.depth, panel);
  }
  return {to, kPanel, kPanel * kDepthBlock};
}

/// Rows of a as floats. Row r of a strip, whose rows are multiplied together, has its term k at
/// r * row + k * term.
struct PackedRows {
  const float* data;
  std::int64_t row, term = 1;
  std::int64_t strip = kRowBlock, strip_stride = kRowBlock * row;  // rows of one, and its elements
};

/// Rows that lie across, each term's side by side, in strips that lie side by side. `line` has room
/// for all of a task.
PackedRows pack_across(const FloatMatmul& m, const std::byte* a, std::int64_t rows,
                       std::int64_t depth, float* to, float* line) {
  const PackedRows packed{to, 1, kStripRows, kStripRows, kStripRows * kDepthBlock};
  for (std::int64_t k = 0; k < depth; ++k) {
    m.decode(a + k * m.shape.a_depth * static_cast<std::int64_t>(m.item_bytes), rows, line);
    float* strip = to + k * kStripRows;
    for (std::int64_t row = 0; row < rows; row += kStripRows, strip += packed.strip_stride) {
      std::memcpy(strip, line + row, kStripRows * sizeof(float));
    }
  }
  return packed;
}

/// Rows of a for terms [k, k + depth); in `to` unless they can be read where they lie.
PackedRows pack_a(const FloatMatmul& m, const std::byte* a, const MatmulPart& part, std::int64_t k,
                  std::int64_t depth, float* to, float* line) {
  const MatmulShape& s = m.shape;
  const auto item = static_cast<std::int64_t>(m.item_bytes);
  const auto at = [&](std::int64_t row) {
    return a + (s.a_offset(part.batch) + (part.row + row) * s.a_row + k * s.a_depth) * item;
  };
  if (!packs_a(m)) {
    const auto* rows = reinterpret_cast<const float*>(at(0));
    if (s.a_depth == 1) return {rows, s.a_row};
    return {rows, s.a_row, s.a_depth, kStripRows, kStripRows * s.a_row};
  }
  if (s.a_depth != 1) return pack_across(m, at(0), part.rows, depth, to, line);
  for (std::int64_t r = 0; r < part.rows; ++r) m.decode(at(r), depth, to + r * kDepthBlock);
  return {to, kDepthBlock};
}

/// A task's results, as floats.
struct Sums {
  float* at;
  std::int64_t stride;
};

/// The sums of a block's columns, with what `old` holds of earlier blocks.
void multiply_block(const FloatMatmul& m, const MatmulPart& task, const PackedRows& a,
                    const Packed& b, const GroupBlock& block, const Sums& old, const Sums& sums) {
  const float* x = a.data;
  for (std::int64_t r = 0; r < task.rows; r += a.strip, x += a.strip_stride) {
    m.loops->tile({.x = x,
                   .x_stride = a.row,
                   .rows = std::min(a.strip, task.rows - r),
                   .w = b.data,
                   .step = b.stride,
                   .panel = b.panel,
                   .depth = block.depth,
                   .columns = block.columns,
                   .out = sums.at + r * sums.stride,
                   .out_stride = sums.stride,
                   .scales = block.k > 0 ? kOnes : nullptr,
                   .old = old.at + r * old.stride,
                   .old_stride = old.stride,
                   .x_step = a.term});
  }
}

/// A task's sums, in `result` at the end.
void sum_task(const FloatMatmul& m, const MatmulOperands& operands, const MatmulPart& task,
              const FloatScratch& scratch, const Sums& result) {
  // Sums that are added to again and again lie side by side: far from each other, and between those
  // of other threads, caches and what fetches into them work against it.
  const Sums near{scratch.sums, scratch.sums_stride};
  std::int64_t k = 0;
  do {  // even a sum of no terms must be written
    const std::int64_t depth = std::min(kDepthBlock, m.shape.depth - k);
    const Sums& sums = k + kDepthBlock < m.shape.depth ? near : result;
    const PackedRows a = pack_a(m, operands.a, task, k, depth, scratch.a, scratch.block.line);
    for (std::int64_t c = 0; c < task.columns; c += kGroupColumns) {
      const GroupBlock block = block_of(m, operands.b, task, c, k);
      const Packed b = pack_b(m, block, task.rows, scratch.block.b, scratch.block.line);
      multiply_block(m, task, a, b, block, {near.at + c, near.stride}, {sums.at + c, sums.stride});
    }
    k += kDepthBlock;
  } while (k < m.shape.depth);
}

template <class T>
void store_halves(const Sums& from, const MatmulPart& task, T* to, std::int64_t stride) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    for (std::int64_t c = 0; c < task.columns; ++c) {
      to[r * stride + c] = static_cast<T>(from.at[r * from.stride + c]);
    }
  }
}

void multiply_task(const FloatMatmul& m, const MatmulOperands& operands, const MatmulPart& task,
                   const FloatScratch& scratch) {
  const MatmulShape& s = m.shape;
  const std::int64_t offset = (task.batch * s.rows + task.row) * s.columns + task.column;
  if (m.dtype == DType::f32) {
    auto* out = reinterpret_cast<float*>(operands.out) + offset;
    return sum_task(m, operands, task, scratch, {out, s.columns});
  }
  const Sums sums{scratch.sums, scratch.sums_stride};
  sum_task(m, operands, task, scratch, sums);
  if (m.dtype == DType::f16) {
    store_halves(sums, task, reinterpret_cast<f16*>(operands.out) + offset, s.columns);
  } else {
    store_halves(sums, task, reinterpret_cast<bf16*>(operands.out) + offset, s.columns);
  }
}

}  // namespace

void multiply_part(const FloatMatmul& matmul, const MatmulOperands& operands,
                   const MatmulPart& part, MatmulScratch& scratch) {
  multiply_task(matmul, operands, part, FloatScratch(scratch));
}

namespace {

struct FloatProduct {
  FloatMatmul matmul;
  std::int64_t slots;

  explicit FloatProduct(const FloatMatmul& m) : matmul(m) {
    const MatmulShape& s = m.shape;
    slots = std::min(kMostSlots,
                     s.batch * blocks_of(s.rows, kRowBlock) * blocks_of(s.columns, kGroupColumns));
  }

  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(slots * FloatScratch::floats(matmul)) * sizeof(float);
  }

  void run(const Launch& launch) const {
    if (slots == 0) return;  // there are no results
    const MatmulShape& s = matmul.shape;
    const Cut cut(s, most_groups(matmul), launch.team.size());
    const std::int64_t work = std::min(s.rows, cut.rows) *
                              std::min(s.columns, cut.groups * kGroupColumns) *
                              std::max<std::int64_t>(1, s.depth);
    const SlotOrder order(std::min(slots, cut.count), launch.team.size());
    const std::int64_t each = blocks_of(cut.count, order.count);
    const std::int64_t grain =
        std::max<std::int64_t>(1, kChunkWork / std::max<std::int64_t>(1, work * each));
    parallel(launch.team, order.count, grain, [&](std::int64_t begin, std::int64_t end) {
      StackScratch stack;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t slot = order.slot(i);
        auto* memory = reinterpret_cast<float*>(launch.workspace);
        const FloatScratch scratch(matmul, stack, memory + slot * FloatScratch::floats(matmul));
        const std::int64_t last = cut.count * (slot + 1) / order.count;
        for (std::int64_t task = cut.count * slot / order.count; task < last; ++task) {
          multiply_task(matmul, operands_of(launch), cut.task(s, task), scratch);
        }
      }
    });
  }
};

Prepared prepare_float(const PrepareArgs& args, const MatmulShape& shape) {
  const bool a_dense = shape.a_depth == 1 || shape.a_row == 1;
  const bool b_dense = shape.b_depth == 1 || shape.b_column == 1;
  if (!a_dense || !b_dense) {
    return refuse(fmt::format("matmul: {} and {} must each have an axis of adjacent elements",
                              to_string(args.inputs[0]), to_string(args.inputs[1])));
  }
  const FloatProduct product(FloatMatmul(shape, args.inputs[0].spec.dtype));
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.workspace_bytes = product.workspace_bytes();
  return make_kernel(std::move(traits), [product](const Launch& launch) { product.run(launch); });
}

// ---- f64

}  // namespace

void multiply_part_f64(const MatmulShape& s, const MatmulOperands& operands,
                       const MatmulPart& part) {
  const double* a =
      reinterpret_cast<const double*>(operands.a) + s.a_offset(part.batch) + part.row * s.a_row;
  const double* b = reinterpret_cast<const double*>(operands.b) + s.b_offset(part.batch) +
                    part.column * s.b_column;
  double* out = reinterpret_cast<double*>(operands.out) +
                (part.batch * s.rows + part.row) * s.columns + part.column;
  double terms[kGroupColumns] = {};
  double sums[kRowBlock][kGroupColumns] = {};
  for (std::int64_t k = 0; k < s.depth; ++k) {
    for (std::int64_t c = 0; c < part.columns; ++c) terms[c] = b[k * s.b_depth + c * s.b_column];
    for (std::int64_t r = 0; r < part.rows; ++r) {
      const double x = a[r * s.a_row + k * s.a_depth];
      for (std::int64_t c = 0; c < kGroupColumns; ++c) sums[r][c] += x * terms[c];
    }
  }
  for (std::int64_t r = 0; r < part.rows; ++r) {
    std::copy_n(sums[r], part.columns, out + r * s.columns);
  }
}

namespace {

Prepared prepare_f64(const PrepareArgs& args, const MatmulShape& shape) {
  return make_kernel(whole_operand_traits(args.inputs, args.outputs),
                     [shape](const Launch& launch) {
                       for_each_part(launch.team, shape, kRowBlock, [&](const MatmulPart& part) {
                         multiply_part_f64(shape, operands_of(launch), part);
                       });
                     });
}

}  // namespace

// ---- Shapes

MatmulShape matmul_shape(const PrepareArgs& args) {
  const auto& [a, a_layout] = args.inputs[0];
  const auto& [b, b_layout] = args.inputs[1];
  const Shape& out = args.outputs[0].spec.shape;
  const std::size_t ra = a.shape.size(), rb = b.shape.size(), batch_rank = out.size() - 2;
  MatmulShape s;
  s.rows = a.shape[ra - 2], s.depth = a.shape[ra - 1], s.columns = b.shape[rb - 1];
  // The stride of an axis of extent 1 may be anything, and adjacent is what serves best.
  const auto stride = [](const TensorSpec& spec, const Layout& layout, std::size_t axis) {
    return spec.shape[axis] <= 1 ? 1 : layout.strides[axis];
  };
  s.a_row = stride(a, a_layout, ra - 2), s.a_depth = stride(a, a_layout, ra - 1);
  s.b_depth = stride(b, b_layout, rb - 2), s.b_column = stride(b, b_layout, rb - 1);
  for (std::size_t i = 0; i < batch_rank; ++i) {
    s.batch_shape.push_back(out[i]);
    s.batch *= out[i];
    const auto batch_stride = [&](const TensorSpec& spec, const Layout& layout) {
      const std::size_t missing = out.size() - spec.shape.size();
      if (i < missing || spec.shape[i - missing] == 1) return std::int64_t{0};
      return layout.strides[i - missing];
    };
    s.a_batch.push_back(batch_stride(a, a_layout));
    s.b_batch.push_back(batch_stride(b, b_layout));
  }
  return s;
}

namespace {

Prepared as_kernel(const PrepareArgs& args, const MatmulRun& product) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.workspace_bytes = product.workspace_bytes;
  return make_kernel(std::move(traits), product.run);
}

}  // namespace

Prepared prepare_matmul(const PrepareArgs& args) {
  for (const OperandSpec& operand : args.inputs) {
    if (operand.layout.kind != LayoutKind::strided || operand.spec.shape.size() < 2) {
      return refuse(fmt::format("matmul: {} is not a strided matrix", to_string(operand)));
    }
  }
  const DType dtype = args.inputs[0].spec.dtype;
  const MatmulShape shape = matmul_shape(args);
  if (std::optional<MatmulRun> dots = dot_products(dtype, shape)) return as_kernel(args, *dots);
  if (dtype == DType::f64) return prepare_f64(args, shape);
  if (dtype == DType::complex64) return prepare_complex_matmul(args, shape);
  if (!stored_type(dtype)) {
    return refuse(fmt::format("matmul: operands of {} have no kernel", to_string(dtype)));
  }
  if (std::optional<Run> pairs = pair_matmul(dtype, shape)) {
    return as_kernel(args, {.run = std::move(*pairs)});
  }
  if (std::optional<MatmulRun> library = library_matmul(dtype, shape)) {
    return as_kernel(args, *library);
  }
  return prepare_float(args, shape);
}

}  // namespace heddle::cpu
