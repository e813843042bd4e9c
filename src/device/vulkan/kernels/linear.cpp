// Linear: rows of f32 activations against weights [out, in] of floats or blocks, a dispatch for
// each weight.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "device/vulkan/kernels/products.h"

namespace heddle::vulkan {

namespace {

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

/// Workgroups of a form: what each computes, and how.
struct Launch {
  std::string_view shader;
  std::uint32_t lanes;
  std::int64_t rows, columns;            // of a workgroup
  std::vector<std::uint32_t> constants;  // after the weights' dtype
};

Launch choose_launch(const Limits& limits, std::int64_t rows) {
  const auto few = std::min<std::int64_t>(
      kMostLaneRows, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows))));
  const auto lane_rows = static_cast<std::uint32_t>(few);
  switch (product_form(limits, rows)) {
    case ProductForm::vector:
      return {
          "linear_vector", vector_lanes(limits), few, kVectorColumns, {lane_rows, kVectorColumns}};
    case ProductForm::tiled: {
      const std::uint32_t tile = tile_lane_rows(rows);
      return {"linear_tiled",
              kTileLanes,
              std::int64_t{tile} * kLaneRowsToTileRows,
              kTileColumns,
              {tile}};
    }
    default: {
      const std::uint32_t lanes = std::min(limits.subgroup_size, limits.max_group_size);
      return {"linear_scalar", lanes, few, lanes, {lane_rows}};
    }
  }
}

void add_weight(KernelMaker& maker, const PrepareArgs& args, std::size_t w, const Rows& rows) {
  const auto& [dtype, shape] = args.inputs[w + 1].spec;
  Launch launch = choose_launch(args.limits, rows.count);
  launch.constants.insert(launch.constants.begin(), static_cast<std::uint32_t>(dtype));
  const std::int64_t column_groups = ceil_div(shape[0], launch.columns);
  const Params params{static_cast<std::uint32_t>(rows.count / rows.per_extent),
                      static_cast<std::uint32_t>(rows.per_extent),
                      static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0]),
                      static_cast<std::uint32_t>(column_groups)};
  maker.dispatch({.shader = launch.shader,
                  .group_size = launch.lanes,
                  .constants = std::move(launch.constants),
                  .grid = make_grid(rows, launch.rows, column_groups),
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
    if (rows.count > 0 && args.inputs[w + 1].spec.shape[0] > 0) add_weight(maker, args, w, rows);
  }
  return maker.finish();
}

}  // namespace heddle::vulkan
