// Matmul: activations against activations.
#include "device/cpu/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "device/cpu/isa.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"
#include "heddle/half.h"

namespace heddle::cpu {

FloatMatmul::FloatMatmul(const MatmulShape& s, DType type)
    : shape(s), dtype(type), item_bytes(item_size(type)), loops(&products(isa())) {
  decode = loops->decode[static_cast<std::size_t>(*stored_type(type))];
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

// A task's most rows and columns: b is packed once for so many rows, and a for so many columns. Of
// the depth a pass takes so many blocks, while a tile's sums stay in the first-level cache. What is
// packed takes up to 700 KiB, which second-level caches hold.
constexpr std::int64_t kTaskRows = 4 * kRowBlock;
constexpr std::int64_t kTaskGroups = 4;
constexpr std::int64_t kPassBlocks = 4;
// Tasks that can run at once: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 32;
// Rows that lie a multiple of so many bytes apart share their places in the caches.
constexpr std::int64_t kCrowdedStride = 16384;

std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

bool is_direct(const FloatMatmul& m) {
  return m.dtype == DType::f32;
}
std::int64_t most_groups(const FloatMatmul& m) {
  return std::min(kTaskGroups, blocks_of(m.shape.columns, kGroupColumns));
}
std::int64_t most_pass_blocks(const FloatMatmul& m) {
  return std::clamp<std::int64_t>(blocks_of(m.shape.depth, kDepthBlock), 1, kPassBlocks);
}

MatmulOperands operands_of(const Launch& launch) {
  return {launch.inputs[0].data, launch.inputs[1].data, launch.outputs[0].data};
}

/// A slot's memory, in floats.
struct FloatScratch {
  float *a, *b, *line, *out;
  std::int64_t out_stride, pass_blocks;

  static std::int64_t out_floats(const FloatMatmul& m) {
    if (is_direct(m)) return 0;
    return std::min(kTaskRows, m.shape.rows) * most_groups(m) * kGroupColumns;
  }
  static std::int64_t a_floats(const FloatMatmul& m) {
    return most_pass_blocks(m) * kRowBlock * kDepthBlock;
  }
  static std::int64_t b_floats(const FloatMatmul& m) {
    return most_pass_blocks(m) * most_groups(m) * kGroupColumns * kDepthBlock;
  }
  static std::int64_t floats(const FloatMatmul& m) {
    return a_floats(m) + b_floats(m) + kPanel * kDepthBlock + out_floats(m);
  }
  FloatScratch(const FloatMatmul& m, float* memory)
      : a(memory),
        b(a + a_floats(m)),
        line(b + b_floats(m)),
        out(line + kPanel * kDepthBlock),
        out_stride(most_groups(m) * kGroupColumns),
        pass_blocks(most_pass_blocks(m)) {}
  /// For products of kGroupColumns columns and kRowBlock rows at most.
  explicit FloatScratch(MatmulScratch& one)
      : a(one.a),
        b(one.b),
        line(one.line),
        out(one.out),
        out_stride(kGroupColumns),
        pass_blocks(1) {}
};

struct Packed {
  const float* data;
  std::int64_t stride, panel = 0;
};

/// Columns of b as a tile reads them, for terms [k, k + depth); into `to` unless they can be read
/// where they lie.
Packed pack_b(const FloatMatmul& m, const std::byte* b, const MatmulPart& part, std::int64_t k,
              std::int64_t depth, float* to, float* line) {
  const MatmulShape& s = m.shape;
  const auto at = [&](std::int64_t term, std::int64_t column) {
    return b +
           (s.b_offset(part.batch) + (k + term) * s.b_depth + (part.column + column) * s.b_column) *
               static_cast<std::int64_t>(m.item_bytes);
  };
  if (s.b_column == 1) {
    const bool in_place =
        is_direct(m) && part.rows <= kRowsWithoutPacking && part.columns % kPanel == 0;
    if (in_place) return {reinterpret_cast<const float*>(at(0, 0)), s.b_depth, kPanel};
    for (std::int64_t i = 0; i < depth; ++i) {
      m.decode(at(i, 0), part.columns, to + i * kGroupColumns);
    }
    return {to, kGroupColumns, kPanel};
  }
  for (std::int64_t first = 0; first < part.columns; first += kPanel) {
    const std::int64_t columns = std::min(kPanel, part.columns - first);
    for (std::int64_t c = 0; c < columns; ++c) {
      m.decode(at(0, first + c), depth, line + c * kDepthBlock);
    }
    std::fill(line + columns * kDepthBlock, line + kPanel * kDepthBlock, 0.0f);
    m.loops->to_panel(line, kDepthBlock, depth, to + first * kDepthBlock);
  }
  return {to, kPanel, kPanel * kDepthBlock};
}

/// Rows of a as floats, for terms [k, k + depth); into `to` unless they can be read where they lie.
Packed pack_a(const FloatMatmul& m, const std::byte* a, const MatmulPart& part, std::int64_t k,
              std::int64_t depth, float* to, float* line) {
  const MatmulShape& s = m.shape;
  const auto item = static_cast<std::int64_t>(m.item_bytes);
  const auto at = [&](std::int64_t row, std::int64_t term) {
    return a +
           (s.a_offset(part.batch) + (part.row + row) * s.a_row + (k + term) * s.a_depth) * item;
  };
  if (s.a_depth == 1) {
    const bool crowded = s.a_row * item % kCrowdedStride == 0 && part.rows > kRowsWithoutPacking;
    if (is_direct(m) && !crowded) return {reinterpret_cast<const float*>(at(0, 0)), s.a_row};
    for (std::int64_t r = 0; r < part.rows; ++r) {
      m.decode(at(r, 0), depth, to + r * kDepthBlock);
    }
    return {to, kDepthBlock};
  }
  for (std::int64_t i = 0; i < depth; ++i) {
    m.decode(at(0, i), part.rows, line);
    for (std::int64_t r = 0; r < part.rows; ++r) to[r * kDepthBlock + i] = line[r];
  }
  return {to, kDepthBlock};
}

template <class T>
void store_halves(const float* from, std::int64_t from_stride, const MatmulPart& task, T* to,
                  std::int64_t stride) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    for (std::int64_t c = 0; c < task.columns; ++c) {
      to[r * stride + c] = static_cast<T>(from[r * from_stride + c]);
    }
  }
}

/// Adds terms [begin, end), a pass of them, to all sums of a task.
void multiply_pass(const FloatMatmul& m, const MatmulOperands& operands, const MatmulPart& task,
                   std::int64_t begin, std::int64_t end, float* out, std::int64_t out_stride,
                   const FloatScratch& scratch) {
  Packed groups[kTaskGroups][kPassBlocks], rows_of_a[kPassBlocks];
  const auto for_each_block = [&](const auto& body) {
    std::int64_t k = begin;
    do {  // even a sum of no terms must be written
      body((k - begin) / kDepthBlock, k, std::min(kDepthBlock, end - k));
      k += kDepthBlock;
    } while (k < end);
  };
  for (std::int64_t c = 0; c < task.columns; c += kGroupColumns) {
    MatmulPart group = task;
    group.column += c;
    group.columns = std::min(kGroupColumns, task.columns - c);
    for_each_block([&](std::int64_t block, std::int64_t k, std::int64_t depth) {
      float* to = scratch.b + (c * scratch.pass_blocks + block * kGroupColumns) * kDepthBlock;
      groups[c / kGroupColumns][block] = pack_b(m, operands.b, group, k, depth, to, scratch.line);
    });
  }
  for (std::int64_t r = 0; r < task.rows; r += kRowBlock) {
    MatmulPart rows = task;
    rows.row += r;
    rows.rows = std::min(kRowBlock, task.rows - r);
    for_each_block([&](std::int64_t block, std::int64_t k, std::int64_t depth) {
      rows_of_a[block] = pack_a(m, operands.a, rows, k, depth,
                                scratch.a + block * kRowBlock * kDepthBlock, scratch.line);
    });
    for (std::int64_t c = 0; c < task.columns; c += kGroupColumns) {
      for_each_block([&](std::int64_t block, std::int64_t k, std::int64_t depth) {
        const Packed &a = rows_of_a[block], &b = groups[c / kGroupColumns][block];
        m.loops->tile({.x = a.data,
                       .x_stride = a.stride,
                       .rows = rows.rows,
                       .w = b.data,
                       .step = b.stride,
                       .panel = b.panel,
                       .depth = depth,
                       .columns = std::min(kGroupColumns, task.columns - c),
                       .out = out + r * out_stride + c,
                       .out_stride = out_stride,
                       .scales = k > 0 ? kOnes : nullptr});
      });
    }
  }
}

void multiply_task(const FloatMatmul& m, const MatmulOperands& operands, const MatmulPart& task,
                   const FloatScratch& scratch) {
  const MatmulShape& s = m.shape;
  const std::int64_t offset = (task.batch * s.rows + task.row) * s.columns + task.column;
  const std::int64_t stride = is_direct(m) ? s.columns : scratch.out_stride;
  float* out = is_direct(m) ? reinterpret_cast<float*>(operands.out) + offset : scratch.out;
  const std::int64_t pass = scratch.pass_blocks * kDepthBlock;
  std::int64_t k = 0;
  do {
    multiply_pass(m, operands, task, k, std::min(k + pass, s.depth), out, stride, scratch);
    k += pass;
  } while (k < s.depth);
  if (m.dtype == DType::f16) {
    store_halves(out, stride, task, reinterpret_cast<f16*>(operands.out) + offset, s.columns);
  } else if (m.dtype == DType::bf16) {
    store_halves(out, stride, task, reinterpret_cast<bf16*>(operands.out) + offset, s.columns);
  }
}

}  // namespace

void multiply_part(const FloatMatmul& matmul, const MatmulOperands& operands,
                   const MatmulPart& part, MatmulScratch& scratch) {
  multiply_task(matmul, operands, part, FloatScratch(scratch));
}

namespace {

/// Tasks as large as they can be while each of a team's threads has enough of them to end with the
/// others. No result depends on it.
struct Cut {
  std::int64_t rows, groups, row_tasks = 0, column_tasks = 0, count = 0;

  Cut(const FloatMatmul& m, std::int64_t threads) : rows(kTaskRows), groups(most_groups(m)) {
    constexpr std::int64_t kTasksEach = 12;
    set(m.shape);
    while (count < kTasksEach * threads && (rows > kRowBlock || groups > 1)) {
      const bool by_rows = rows / kRowBlock >= groups || groups == 1;
      if (by_rows) {
        rows = blocks_of(rows / kRowBlock, 2) * kRowBlock;
      } else {
        groups = blocks_of(groups, 2);
      }
      set(m.shape);
    }
  }

  MatmulPart task(const MatmulShape& s, std::int64_t i) const {
    const std::int64_t row = i % row_tasks * rows;
    const std::int64_t column = i / row_tasks % column_tasks * groups * kGroupColumns;
    return {.batch = i / row_tasks / column_tasks,
            .row = row,
            .rows = std::min(rows, s.rows - row),
            .column = column,
            .columns = std::min(groups * kGroupColumns, s.columns - column)};
  }

 private:
  void set(const MatmulShape& s) {
    row_tasks = blocks_of(s.rows, rows);
    column_tasks = blocks_of(s.columns, groups * kGroupColumns);
    count = s.batch * row_tasks * column_tasks;
  }
};

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
    const Cut cut(matmul, launch.team.size());
    const std::int64_t work = std::min(s.rows, cut.rows) *
                              std::min(s.columns, cut.groups * kGroupColumns) *
                              std::max<std::int64_t>(1, s.depth);
    const std::int64_t used = std::min(slots, cut.count);
    const std::int64_t each = blocks_of(cut.count, std::max<std::int64_t>(1, used));
    const std::int64_t grain =
        std::max<std::int64_t>(1, kChunkWork / std::max<std::int64_t>(1, work * each));
    parallel(launch.team, used, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        auto* memory = reinterpret_cast<float*>(launch.workspace);
        const FloatScratch scratch(matmul, memory + slot * FloatScratch::floats(matmul));
        for (std::int64_t i = slot; i < cut.count; i += used) {
          multiply_task(matmul, operands_of(launch), cut.task(s, i), scratch);
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

}  // namespace

Prepared prepare_matmul(const PrepareArgs& args) {
  for (const OperandSpec& operand : args.inputs) {
    if (operand.layout.kind != LayoutKind::strided || operand.spec.shape.size() < 2) {
      return refuse(fmt::format("matmul: {} is not a strided matrix", to_string(operand)));
    }
  }
  const DType dtype = args.inputs[0].spec.dtype;
  const MatmulShape shape = matmul_shape(args);
  if (dtype == DType::f64) return prepare_f64(args, shape);
  if (dtype == DType::complex64) return prepare_complex_matmul(args, shape);
  if (!stored_type(dtype)) {
    return refuse(fmt::format("matmul: operands of {} have no kernel", to_string(dtype)));
  }
  if (std::optional<LibraryMatmul> library = library_matmul(dtype, shape)) {
    KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
    traits.workspace_bytes = library->workspace_bytes;
    return make_kernel(std::move(traits), std::move(library->run));
  }
  return prepare_float(args, shape);
}

}  // namespace heddle::cpu
