// Matmul: activations against activations.
#include "device/cpu/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "device/cpu/isa.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"
#include "heddle/half.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kRowBlock = kMostTileRows;
// Up to this many rows, copying b costs more than reading it where it lies.
constexpr std::int64_t kRowsWithoutPacking = 12;
constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;

/// Part of one batch element's product, small enough for the caches.
struct Part {
  std::int64_t batch, row, rows, column, columns;
};

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
               body(Part{.batch = i / row_blocks / groups,
                         .row = row,
                         .rows = std::min(row_block, shape.rows - row),
                         .column = column,
                         .columns = std::min(kGroupColumns, shape.columns - column)});
             }
           });
}

// ---- f32, f16 and bf16, with float sums

struct FloatMatmul {
  MatmulShape shape;
  DType dtype;
  std::size_t item_bytes;
  void (*decode)(const std::byte*, std::int64_t, float*);
  const Products* loops;
};

struct FloatScratch {
  alignas(64) float a[kRowBlock * kDepthBlock];
  alignas(64) float b[kGroupColumns * kDepthBlock];
  alignas(64) float line[kPanel * kDepthBlock];
  alignas(64) float out[kRowBlock * kGroupColumns];
};

struct Packed {
  const float* data;
  std::int64_t stride, panel = 0;
};

/// Columns of b as a tile reads them, for terms [k, k + depth).
Packed pack_b(const FloatMatmul& m, const std::byte* b, const Part& part, std::int64_t k,
              std::int64_t depth, FloatScratch& scratch) {
  const MatmulShape& s = m.shape;
  const auto at = [&](std::int64_t term, std::int64_t column) {
    return b + (m.shape.b_offset(part.batch) + (k + term) * s.b_depth +
                (part.column + column) * s.b_column) *
                   static_cast<std::int64_t>(m.item_bytes);
  };
  if (s.b_column == 1) {
    const bool in_place =
        m.dtype == DType::f32 && part.rows <= kRowsWithoutPacking && part.columns % kPanel == 0;
    if (in_place) return {reinterpret_cast<const float*>(at(0, 0)), s.b_depth, kPanel};
    for (std::int64_t i = 0; i < depth; ++i) {
      m.decode(at(i, 0), part.columns, scratch.b + i * kGroupColumns);
    }
    return {scratch.b, kGroupColumns, kPanel};
  }
  for (std::int64_t first = 0; first < part.columns; first += kPanel) {
    const std::int64_t columns = std::min(kPanel, part.columns - first);
    for (std::int64_t c = 0; c < columns; ++c) {
      m.decode(at(0, first + c), depth, scratch.line + c * kDepthBlock);
    }
    std::fill(scratch.line + columns * kDepthBlock, scratch.line + kPanel * kDepthBlock, 0.0f);
    m.loops->to_panel(scratch.line, kDepthBlock, depth, scratch.b + first * kDepthBlock);
  }
  return {scratch.b, kPanel, kPanel * kDepthBlock};
}

/// Rows of a as floats, for terms [k, k + depth).
Packed pack_a(const FloatMatmul& m, const std::byte* a, const Part& part, std::int64_t k,
              std::int64_t depth, FloatScratch& scratch) {
  const MatmulShape& s = m.shape;
  const auto at = [&](std::int64_t row, std::int64_t term) {
    return a +
           (m.shape.a_offset(part.batch) + (part.row + row) * s.a_row + (k + term) * s.a_depth) *
               static_cast<std::int64_t>(m.item_bytes);
  };
  if (s.a_depth == 1) {
    if (m.dtype == DType::f32) return {reinterpret_cast<const float*>(at(0, 0)), s.a_row};
    for (std::int64_t r = 0; r < part.rows; ++r) {
      m.decode(at(r, 0), depth, scratch.a + r * kDepthBlock);
    }
    return {scratch.a, kDepthBlock};
  }
  for (std::int64_t i = 0; i < depth; ++i) {
    m.decode(at(0, i), part.rows, scratch.line);
    for (std::int64_t r = 0; r < part.rows; ++r) scratch.a[r * kDepthBlock + i] = scratch.line[r];
  }
  return {scratch.a, kDepthBlock};
}

template <class T>
void store_halves(const float* from, std::int64_t rows, std::int64_t columns, T* to,
                  std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to[r * stride + c] = static_cast<T>(from[r * kGroupColumns + c]);
    }
  }
}

void multiply_part(const FloatMatmul& m, const Launch& launch, const Part& part,
                   FloatScratch& scratch) {
  const MatmulShape& s = m.shape;
  const std::int64_t offset = (part.batch * s.rows + part.row) * s.columns + part.column;
  const bool direct = m.dtype == DType::f32;
  float* out = direct ? launch.outputs[0].as<float>() + offset : scratch.out;
  std::int64_t k = 0;
  do {  // even a sum of no terms must be written
    const std::int64_t depth = std::min(kDepthBlock, s.depth - k);
    const Packed a = pack_a(m, launch.inputs[0].data, part, k, depth, scratch);
    const Packed b = pack_b(m, launch.inputs[1].data, part, k, depth, scratch);
    m.loops->tile({.x = a.data,
                   .x_stride = a.stride,
                   .rows = part.rows,
                   .w = b.data,
                   .step = b.stride,
                   .panel = b.panel,
                   .depth = depth,
                   .columns = part.columns,
                   .out = out,
                   .out_stride = direct ? s.columns : kGroupColumns,
                   .scales = k > 0 ? kOnes : nullptr});
    k += kDepthBlock;
  } while (k < s.depth);
  if (m.dtype == DType::f16) {
    store_halves(out, part.rows, part.columns, launch.outputs[0].as<f16>() + offset, s.columns);
  } else if (m.dtype == DType::bf16) {
    store_halves(out, part.rows, part.columns, launch.outputs[0].as<bf16>() + offset, s.columns);
  }
}

Prepared prepare_float(const PrepareArgs& args, const MatmulShape& shape) {
  const bool a_dense = shape.a_depth == 1 || shape.a_row == 1;
  const bool b_dense = shape.b_depth == 1 || shape.b_column == 1;
  if (!a_dense || !b_dense) {
    return refuse(fmt::format("matmul: {} and {} must each have an axis of adjacent elements",
                              to_string(args.inputs[0]), to_string(args.inputs[1])));
  }
  const DType dtype = args.inputs[0].spec.dtype;
  const Products& loops = products(isa());
  const FloatMatmul matmul{shape, dtype, item_size(dtype),
                           loops.decode[static_cast<std::size_t>(*stored_type(dtype))], &loops};
  return make_kernel(whole_operand_traits(args.inputs, args.outputs),
                     [matmul](const Launch& launch) {
                       const auto body = [&](const Part& part) {
                         FloatScratch scratch;
                         multiply_part(matmul, launch, part, scratch);
                       };
                       for_each_part(launch.team, matmul.shape, kRowBlock, body);
                     });
}

// ---- f64

void multiply_part_f64(const MatmulShape& s, const Launch& launch, const Part& part) {
  const double* a = launch.inputs[0].as<double>() + s.a_offset(part.batch) + part.row * s.a_row;
  const double* b =
      launch.inputs[1].as<double>() + s.b_offset(part.batch) + part.column * s.b_column;
  double* out =
      launch.outputs[0].as<double>() + (part.batch * s.rows + part.row) * s.columns + part.column;
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

Prepared prepare_f64(const PrepareArgs& args, const MatmulShape& shape) {
  return make_kernel(
      whole_operand_traits(args.inputs, args.outputs), [shape](const Launch& launch) {
        for_each_part(launch.team, shape, kRowBlock,
                      [&](const Part& part) { multiply_part_f64(shape, launch, part); });
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
