// group_matmul: activations against quantised groups, one matrix, batches, or chosen matrices.
//
// Rows of x are put in order once, in the workspace. Then parts of up to 96 rows and 64 columns are
// shared out; rows of neighbours that choose one matrix are computed together.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/group_rows.h"
#include "device/cpu/isa.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kMostRows = kMostTileRows;
static_assert(kMostRows <= kGroupRowsMost);

/// Which matrix of an operand serves an element of the batch, where batch axes broadcast.
struct BatchIndex {
  Shape batch;
  Dims strides;  // in matrices, 0 where the operand is repeated

  BatchIndex() = default;
  BatchIndex(const Shape& all, const Shape& operand) : batch(all), strides(all.size(), 0) {
    const std::size_t own = operand.size() - 2;
    std::int64_t stride = 1;
    for (std::size_t i = own; i-- > 0; stride *= operand[i]) {
      if (operand[i] != 1) strides[all.size() - own + i] = stride;
    }
  }
  std::int64_t at(std::int64_t index) const {
    std::int64_t result = 0;
    for (std::size_t i = batch.size(); i-- > 0; index /= batch[i]) {
      result += index % batch[i] * strides[i];
    }
    return result;
  }
};

struct GroupMatmulPlan {
  GroupOperands w;
  BlockSource x;
  bool transpose, gathers, one_matrix;
  LeadingRows x_rows;
  std::int64_t depth, columns;
  std::int64_t entries, entry_rows;  // products, and rows of each
  std::int64_t x_matrices, w_matrices;
  LeadingRows index_rows{Shape{}};  // with `gathers`
  std::size_t indices = 0;          // operand
  BatchIndex x_batch, w_batch;      // else
  std::int64_t row_floats;          // of x's rows in the workspace
  NarrowFunction narrow;            // null for f32
  std::size_t out_item;
  const Products* loops;

  std::int64_t matrix_rows() const { return transpose ? columns : depth; }
  GroupCode code() const { return static_cast<GroupCode>(w.code); }

  std::int64_t x_of(const Launch& launch, std::int64_t entry) const {
    return gathers ? launch.inputs[indices].as<std::uint32_t>()[entry] : x_batch.at(entry);
  }
  std::int64_t w_of(const Launch& launch, std::int64_t entry) const {
    return gathers ? launch.inputs[indices + 1].as<std::uint32_t>()[entry] : w_batch.at(entry);
  }
};

// ---- Rows of x

void put_row(const GroupMatmulPlan& plan, const Launch& launch, std::int64_t row) {
  auto* to = reinterpret_cast<float*>(launch.workspace) + row * plan.row_floats;
  BlockBuffer scratch;
  for (std::int64_t at = 0; at < plan.depth; at += kBlock) {
    const std::int64_t n = std::min(kBlock, plan.depth - at);
    const float* x = plan.x.floats(launch.inputs[0].data, row * plan.depth + at, n, scratch);
    if (plan.transpose) {
      arrange(plan.code(), plan.w.group_size, plan.depth, x, at, n, to);
    } else {
      std::memcpy(to + at, x, static_cast<std::size_t>(n) * sizeof(float));
    }
  }
}

// ---- Parts

struct Scratch {
  alignas(64) float x[kMostRows * kDepthBlock];
  alignas(64) float w[kDepthBlock * kGroupColumns];
  alignas(64) float out[kMostRows * kGroupColumns];
};

/// Rows that are computed with one matrix, side by side in the output.
struct Rows {
  const float* x[kMostRows];
  std::int64_t count = 0, first_out = 0, matrix = 0;
};

/// x w: blocks of w as floats, row by row, for the tiles that dense products use.
void multiply_plain(const GroupMatmulPlan& plan, const GroupRows& w, const Rows& rows,
                    std::int64_t column, std::int64_t width, Scratch& scratch) {
  std::int64_t k = 0;
  do {  // even a sum of no terms must be written
    const std::int64_t depth = std::min(kDepthBlock, plan.depth - k);
    for (std::int64_t i = 0; i < depth; ++i) {
      float* line = scratch.w + i * kGroupColumns;
      plan.w.loops->decode[plan.w.code](w, k + i, column, width, line);
    }
    for (std::int64_t r = 0; r < rows.count; ++r) {
      std::copy_n(rows.x[r] + k, depth, scratch.x + r * kDepthBlock);
    }
    plan.loops->tile({.x = scratch.x,
                      .x_stride = kDepthBlock,
                      .rows = rows.count,
                      .w = scratch.w,
                      .step = kGroupColumns,
                      .panel = kPanel,
                      .depth = depth,
                      .columns = width,
                      .out = scratch.out,
                      .out_stride = kGroupColumns,
                      .scales = k > 0 ? kOnes : nullptr});
    k += kDepthBlock;
  } while (k < plan.depth);
}

void multiply(const GroupMatmulPlan& plan, const Launch& launch, const Rows& rows,
              std::int64_t column, Scratch& scratch) {
  const GroupRows all = plan.w.at(launch);
  const std::int64_t width = std::min(kGroupColumns, plan.columns - column);
  const std::int64_t first = rows.matrix * plan.matrix_rows();
  if (plan.transpose) {
    plan.w.loops->dots[plan.w.code]({.w = rows_from(all, first + column),
                                     .depth = plan.depth,
                                     .columns = width,
                                     .x = rows.x,
                                     .rows = rows.count,
                                     .out = scratch.out,
                                     .out_stride = kGroupColumns});
  } else {
    multiply_plain(plan, rows_from(all, first), rows, column, width, scratch);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const std::int64_t at = (rows.first_out + r) * plan.columns + column;
    std::byte* to = launch.outputs[0].data + at * static_cast<std::int64_t>(plan.out_item);
    const float* from = scratch.out + r * kGroupColumns;
    if (plan.narrow) {
      plan.narrow(from, to, width);
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(width) * sizeof(float));
    }
  }
}

/// Up to kMostRows rows: some of one product, or all of several products that follow each other.
struct Part {
  std::int64_t entry, entries, row, rows;
};

struct Parts {
  std::int64_t entries, entry_rows;
  std::int64_t per_entry, together;

  Parts(std::int64_t e, std::int64_t rows)
      : entries(e),
        entry_rows(rows),
        per_entry((rows + kMostRows - 1) / kMostRows),
        together(std::max<std::int64_t>(1, kMostRows / std::max<std::int64_t>(1, rows))) {}

  std::int64_t count() const {
    if (entry_rows == 0) return 0;
    return per_entry > 1 ? entries * per_entry : (entries + together - 1) / together;
  }
  Part at(std::int64_t index) const {
    if (per_entry > 1) {
      const std::int64_t row = index % per_entry * kMostRows;
      return {index / per_entry, 1, row, std::min(kMostRows, entry_rows - row)};
    }
    const std::int64_t entry = index * together;
    return {entry, std::min(together, entries - entry), 0, entry_rows};
  }
};

void run_part(const GroupMatmulPlan& plan, const Launch& launch, const Part& part,
              std::int64_t column, Scratch& scratch) {
  const auto* x = reinterpret_cast<const float*>(launch.workspace);
  Rows rows;
  for (std::int64_t e = part.entry; e < part.entry + part.entries; ++e) {
    const std::int64_t matrix = plan.one_matrix ? 0 : plan.w_of(launch, e);
    if (rows.count > 0 && matrix != rows.matrix) {
      multiply(plan, launch, rows, column, scratch);
      rows.count = 0;
    }
    if (rows.count == 0) {
      rows.matrix = matrix;
      rows.first_out = e * plan.entry_rows + part.row;
    }
    const std::int64_t first =
        (plan.one_matrix ? 0 : plan.x_of(launch, e)) * plan.entry_rows + part.row;
    for (std::int64_t r = 0; r < part.rows; ++r) {
      rows.x[rows.count++] = x + (first + r) * plan.row_floats;
    }
  }
  if (rows.count > 0) multiply(plan, launch, rows, column, scratch);
}

void check_indices(const GroupMatmulPlan& plan, const Launch& launch, std::int64_t entries) {
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::int64_t x = plan.x_of(launch, e), w = plan.w_of(launch, e);
    require(x < plan.x_matrices, ErrorCode::invalid_argument,
            "group_matmul: index {} of x for product {} is outside [0, {})", x, e, plan.x_matrices);
    require(w < plan.w_matrices, ErrorCode::invalid_argument,
            "group_matmul: index {} of w for product {} is outside [0, {})", w, e, plan.w_matrices);
  }
}

void run_group_matmul(const GroupMatmulPlan& plan, const Launch& launch) {
  std::int64_t entries = plan.entries, rows = plan.entry_rows;
  std::int64_t x_rows = plan.x_rows.rows;
  if (plan.gathers) {
    entries = plan.index_rows.that_count(launch.extent);
    check_indices(plan, launch, entries);
  } else if (plan.one_matrix) {
    x_rows = rows = plan.x_rows.that_count(launch.extent);
  }
  parallel(launch.team, x_rows, row_grain(2 * plan.depth),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t r = begin; r < end; ++r) put_row(plan, launch, r);
           });
  const Parts parts(entries, rows);
  const std::int64_t count = parts.count();
  const std::int64_t groups = (plan.columns + kGroupColumns - 1) / kGroupColumns;
  const std::int64_t work = kGroupColumns * plan.depth / 8 * std::min(rows * entries, kMostRows);
  parallel(launch.team, count * groups, row_grain(work), [&](std::int64_t begin, std::int64_t end) {
    Scratch scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      run_part(plan, launch, parts.at(i % count), i / count * kGroupColumns, scratch);
    }
  });
}

// ---- Preparing

std::string refusal(const PrepareArgs& args, const GroupMatmul& op) {
  if (std::string why = group_rows_refusal(args, 1, op.format); !why.empty()) return why;
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided) {
    return fmt::format("group_matmul: x must be strided, not {}", to_string(x));
  }
  if (!op.gathers) return {};
  for (const OperandSpec& indices : args.inputs.last(2)) {
    if (indices.layout.kind == LayoutKind::strided && is_contiguous(indices)) continue;
    return fmt::format("group_matmul: indices must be contiguous, not {}", to_string(indices));
  }
  return {};
}

GroupMatmulPlan make_plan(const PrepareArgs& args, const GroupMatmul& op) {
  const Shape &x = args.inputs[0].spec.shape, &codes = args.inputs[1].spec.shape;
  const Shape& out = args.outputs[0].spec.shape;
  const DType dtype = args.outputs[0].spec.dtype;
  const GroupOperands w(args, 1, op.format);
  GroupMatmulPlan plan{.w = w,
                       .x = BlockSource(args.inputs[0]),
                       .transpose = op.transpose,
                       .gathers = op.gathers,
                       .one_matrix = codes.size() == 2,
                       .x_rows = LeadingRows(x),
                       .depth = x.back(),
                       .columns = out.back(),
                       .entries = 1,
                       .entry_rows = 0,
                       .x_matrices = x[0],
                       .w_matrices = codes[0],
                       .x_batch = {},
                       .w_batch = {},
                       .row_floats = 0,
                       .narrow = dtype == DType::f32 ? nullptr : narrow_function(dtype),
                       .out_item = item_size(dtype),
                       .loops = &products(isa())};
  plan.row_floats =
      op.transpose ? arranged_floats(plan.code(), plan.depth, op.format.group_size) : plan.depth;
  if (plan.one_matrix) {
    plan.entry_rows = plan.x_rows.rows;
    return plan;
  }
  plan.entry_rows = x[x.size() - 2];
  Shape batch = out;
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  plan.entries = elements(batch);
  if (op.gathers) {
    plan.indices = args.inputs.size() - 2;
    plan.index_rows = LeadingRows(batch, 0);
  } else {
    plan.x_batch = BatchIndex(batch, x);
    plan.w_batch = BatchIndex(batch, codes);
  }
  return plan;
}

}  // namespace

Prepared prepare_group_matmul(const PrepareArgs& args) {
  const auto& op = std::get<GroupMatmul>(args.op);
  if (std::string why = refusal(args, op); !why.empty()) return refuse(std::move(why));
  const GroupMatmulPlan plan = make_plan(args, op);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = (plan.one_matrix && args.inputs[0].spec.shape.size() > 1) ||
                          (op.gathers && !args.inputs.back().spec.shape.empty());
  traits.workspace_bytes =
      static_cast<std::size_t>(plan.x_rows.rows * plan.row_floats) * sizeof(float);
  return make_kernel(std::move(traits),
                     [plan](const Launch& launch) { run_group_matmul(plan, launch); });
}

}  // namespace heddle::cpu
