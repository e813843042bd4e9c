// Linear: rows of f32 activations against weights [out, in] of floats or blocks, a dispatch for
// each weight.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "device/vulkan/kernels/products.h"

namespace heddle::vulkan {

namespace {

constexpr std::int64_t kMostIndex = std::numeric_limits<std::int32_t>::max();

struct Params {  // as the shaders have it
  std::uint32_t rows, rows_per_extent, depth, columns, column_groups;
};

struct Rows {
  std::int64_t count = 1, per_extent = 1;
};

Rows rows_of(const Shape& x) {
  Rows rows;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    rows.count *= x[i];
    if (i > 0) rows.per_extent *= x[i];
  }
  return rows;
}

bool has_kernel(DType weight) {
  return weight == DType::f32 || weight == DType::f16 || weight == DType::bf16 || is_block(weight);
}

std::string problem(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  if (!is_contiguous(x)) return fmt::format("linear: x {} must be contiguous", to_string(x));
  for (const OperandSpec& weight : args.inputs.subspan(1)) {
    if (!has_kernel(weight.spec.dtype)) {
      return fmt::format("linear: weights of {} have no kernel", to_string(weight.spec.dtype));
    }
    if (weight.layout.kind != LayoutKind::strided || !is_contiguous(weight)) {
      return fmt::format("linear: weight {} must be contiguous", to_string(weight));
    }
    const Shape& shape = weight.spec.shape;
    if (shape[0] > kMostIndex || shape[1] > kMostIndex) {
      return fmt::format("linear: weight {} has an axis of more than {}", to_string(weight.spec),
                         kMostIndex);
    }
  }
  if (rows_of(x.spec.shape).count > kMostIndex) {
    return fmt::format("linear: x {} has more than {} rows", to_string(x.spec), kMostIndex);
  }
  return {};
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The grid of workgroups that compute `block_rows` rows by `block_columns` columns each, rows
/// outermost, so that an extent cuts it short.
Grid make_grid(const Rows& rows, std::int64_t block_rows, std::int64_t column_groups) {
  Grid grid;
  grid.groups = static_cast<std::uint64_t>(ceil_div(rows.count, block_rows) * column_groups);
  if (rows.per_extent == 1) {
    grid.rows_per_step = static_cast<std::uint32_t>(block_rows);
    grid.groups_per_step = static_cast<std::uint32_t>(column_groups);
  }
  return grid;
}

void add_scalar(KernelMaker& maker, const PrepareArgs& args, std::size_t w, const Rows& rows) {
  const auto& [dtype, shape] = args.inputs[w + 1].spec;
  const std::uint32_t lanes = std::min(args.limits.subgroup_size, args.limits.max_group_size);
  const auto block_rows = static_cast<std::uint32_t>(
      std::min<std::int64_t>(kVectorRows, std::bit_ceil(static_cast<std::uint64_t>(rows.count))));
  const std::int64_t column_groups = ceil_div(shape[0], lanes);
  const Params params{static_cast<std::uint32_t>(rows.count / rows.per_extent),
                      static_cast<std::uint32_t>(rows.per_extent),
                      static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0]),
                      static_cast<std::uint32_t>(column_groups)};
  maker.dispatch({.shader = "linear_scalar",
                  .group_size = lanes,
                  .constants = {static_cast<std::uint32_t>(dtype), block_rows},
                  .grid = make_grid(rows, block_rows, column_groups),
                  .operands = {input(0), input(w + 1), output(w), extent()}},
                 params);
}

}  // namespace

Prepared prepare_linear(const PrepareArgs& args) {
  if (std::string reason = problem(args); !reason.empty()) return refuse(std::move(reason));
  const Rows rows = rows_of(args.inputs[0].spec.shape);
  KernelMaker maker(args);
  maker.traits.honours_extent = args.inputs[0].spec.shape.size() > 1;
  for (std::size_t w = 0; w < args.outputs.size(); ++w) {
    if (rows.count > 0 && args.inputs[w + 1].spec.shape[0] > 0) add_scalar(maker, args, w, rows);
  }
  return maker.finish();
}

}  // namespace heddle::vulkan
