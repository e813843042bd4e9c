// Linear: rows of f32 activations against weights [out, in] of floats or blocks. Two weights of a
// type share a dispatch, which is as many as push constants hold. GroupedLinear takes the form for
// few rows, a row at a time.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "device/vulkan/kernels/products.h"

namespace heddle::vulkan {

namespace {

struct Params {  // as the shaders have it
  std::uint32_t rows, rows_per_extent, depth;
  std::uint32_t columns[2];
  std::uint32_t first_column_groups, column_groups;
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

/// Workgroups of a form: what each computes, and how.
struct Launch {
  std::string_view shader;
  std::uint32_t lanes;
  std::int64_t rows, columns;            // of a workgroup
  std::vector<std::uint32_t> constants;  // after the weights' dtype
};

std::string_view scalar_shader(DType weight) {
  if (!is_block(weight)) return "linear_scalar_plain";
  return info(weight).block_elements == kUnitElements ? "linear_scalar_small"
                                                      : "linear_scalar_super";
}

Launch choose_launch(const Limits& limits, DType weight, std::int64_t rows, std::int64_t columns,
                     std::int64_t depth) {
  switch (product_form(limits, rows)) {
    case ProductForm::vector: {
      const std::uint32_t lane_rows = some_rows(rows, kVectorRows);
      return {"linear_vector",
              vector_lanes(limits),
              lane_rows,
              kVectorColumns,
              {lane_rows, kVectorColumns}};
    }
    case ProductForm::tiled: {
      const std::uint32_t lane_rows = tile_lane_rows(rows);
      return {"linear_tiled", kTileLanes, lane_rows * kTileRowLanes, kTileColumns, {lane_rows}};
    }
    case ProductForm::scalar:
      break;
  }
  const LaneBlock block = scalar_block(limits, rows, columns);
  const std::uint32_t lanes = scalar_lanes(limits);
  const bool whole = depth % kUnitElements == 0;
  return {scalar_shader(weight),
          lanes,
          block.rows,
          std::int64_t{lanes} * block.columns,
          {block.rows, block.columns, whole}};
}

/// The grid of workgroups, rows outermost, so that an extent cuts it short.
Grid make_grid(const Rows& rows, std::int64_t group_rows, std::int64_t column_groups) {
  Grid grid;
  grid.groups = static_cast<std::uint64_t>(ceil_div(rows.count, group_rows) * column_groups);
  if (rows.per_extent == 1) {
    grid.rows_per_step = static_cast<std::uint32_t>(group_rows);
    grid.groups_per_step = static_cast<std::uint32_t>(column_groups);
  }
  return grid;
}

/// Adds weight `first`, and `second` with it, of the same dtype, unless that is nothing. Says why
/// not if that cannot be.
std::string add_weights(KernelMaker& maker, const PrepareArgs& args, const Rows& rows,
                        std::size_t first, std::optional<std::size_t> second) {
  const auto columns_of = [&](std::size_t w) { return args.inputs[w + 1].spec.shape[0]; };
  const std::int64_t depth = args.inputs[0].spec.shape.back();
  const std::int64_t columns[] = {columns_of(first), second ? columns_of(*second) : 0};
  const DType dtype = args.inputs[first + 1].spec.dtype;
  Launch launch = choose_launch(args.limits, dtype, rows.count, columns[0] + columns[1], depth);
  launch.constants.insert(launch.constants.begin(), static_cast<std::uint32_t>(dtype));
  const std::int64_t groups[] = {ceil_div(columns[0], launch.columns),
                                 ceil_div(columns[1], launch.columns)};
  const Grid grid = make_grid(rows, launch.rows, groups[0] + groups[1]);
  if (grid.groups > ~std::uint32_t{0}) {
    return fmt::format("linear: {} workgroups are more than a dispatch can count", grid.groups);
  }
  const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  const Params params{.rows = word(rows.count / rows.per_extent),
                      .rows_per_extent = word(rows.per_extent),
                      .depth = word(depth),
                      .columns = {word(columns[0]), word(columns[1])},
                      .first_column_groups = word(groups[0]),
                      .column_groups = word(groups[0] + groups[1])};
  maker.dispatch({.shader = launch.shader,
                  .group_size = launch.lanes,
                  .constants = std::move(launch.constants),
                  .grid = grid,
                  .operands = {input(0), input(first + 1), second ? input(*second + 1) : nothing(),
                               output(first), second ? output(*second) : nothing(), extent()}},
                 params);
  return {};
}

struct GroupedParams {
  Params params;
  std::uint32_t experts;
};

std::string grouped_problem(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind == LayoutKind::strided && is_contiguous(input)) continue;
    return fmt::format("grouped_linear: operands must be contiguous, one is {}", to_string(input));
  }
  const TensorSpec &x = args.inputs[0].spec, &weights = args.inputs[1].spec;
  if (!has_kernel(weights.dtype)) {
    return fmt::format("grouped_linear: weights of {} have no kernel", to_string(weights.dtype));
  }
  for (const std::int64_t extent : {x.shape[0], x.shape[1], weights.shape[0], weights.shape[1]}) {
    if (extent <= kMostIndex) continue;
    return fmt::format("grouped_linear: an axis of {}, at most {}", extent, kMostIndex);
  }
  if (x.shape[0] * ceil_div(weights.shape[1], kVectorColumns) > ~std::uint32_t{0}) {
    return fmt::format("grouped_linear: {} by {} are more workgroups than a dispatch can count",
                       to_string(x), to_string(weights));
  }
  return {};
}

Prepared prepare_grouped(const PrepareArgs& args) {
  if (std::string reason = grouped_problem(args); !reason.empty()) return refuse(reason);
  const TensorSpec &x = args.inputs[0].spec, &weights = args.inputs[1].spec;
  const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  const std::int64_t rows = x.shape[0], columns = weights.shape[1];
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  if (rows == 0 || columns == 0) return maker.finish();
  const std::uint32_t groups = word(ceil_div(columns, kVectorColumns));
  maker.dispatch({.shader = "grouped_linear",
                  .group_size = vector_lanes(args.limits),
                  .constants = {static_cast<std::uint32_t>(weights.dtype), 1, kVectorColumns},
                  .grid = make_grid({.count = rows}, 1, groups),
                  .operands = {input(0), input(1), input(2), output(0), nothing(), extent()}},
                 GroupedParams{.params = {.rows = word(rows),
                                          .rows_per_extent = 1,
                                          .depth = word(x.shape[1]),
                                          .columns = {word(columns), 0},
                                          .first_column_groups = groups,
                                          .column_groups = groups},
                               .experts = word(weights.shape[0])});
  return maker.finish();
}

}  // namespace

Prepared prepare_linear(const PrepareArgs& args) {
  if (std::holds_alternative<GroupedLinear>(args.op)) return prepare_grouped(args);
  if (std::string reason = problem(args); !reason.empty()) return refuse(std::move(reason));
  const Rows rows = rows_of(args.inputs[0].spec.shape);
  KernelMaker maker(args);
  maker.traits.honours_extent = args.inputs[0].spec.shape.size() > 1;
  std::vector<std::size_t> left;
  for (std::size_t w = 0; w < args.outputs.size(); ++w) {
    if (rows.count > 0 && args.inputs[w + 1].spec.shape[0] > 0) left.push_back(w);
  }
  while (!left.empty()) {
    const std::size_t first = left.front();
    left.erase(left.begin());
    const auto like_first = std::ranges::find_if(left, [&](std::size_t w) {
      return args.inputs[w + 1].spec.dtype == args.inputs[first + 1].spec.dtype;
    });
    std::optional<std::size_t> second;
    if (like_first != left.end()) second = *like_first, left.erase(like_first);
    std::string reason = add_weights(maker, args, rows, first, second);
    if (!reason.empty()) return refuse(std::move(reason));
  }
  return maker.finish();
}

}  // namespace heddle::vulkan
