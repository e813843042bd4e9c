// Matmul: activations against activations, of any strides.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "device/vulkan/kernels/products.h"

namespace heddle::vulkan {

namespace {

constexpr std::size_t kMostBatchAxes = 3;
constexpr std::uint32_t kMatmulRows = 8;  // of a lane of the scalar form, at most

struct Params {  // as the shaders have it
  std::uint32_t rows, depth, columns;
  std::uint32_t row_groups, column_groups;
  std::int32_t a_row, a_depth, b_depth, b_column;
  std::uint32_t batch_axes;
  std::uint32_t batch_sizes[kMostBatchAxes];
  std::int32_t a_batch[kMostBatchAxes], b_batch[kMostBatchAxes];
};

/// Axes that both operands step along together.
struct BatchAxis {
  std::int64_t size, a_stride, b_stride;
};

std::int64_t batch_stride(const OperandSpec& operand, std::size_t out_rank, std::size_t axis) {
  const std::size_t missing = out_rank - operand.spec.shape.size();
  if (axis < missing || operand.spec.shape[axis - missing] == 1) return 0;
  return operand.layout.strides[axis - missing];
}

/// The batch axes, innermost first, joined where both operands allow.
std::vector<BatchAxis> batch_axes(const PrepareArgs& args) {
  const Shape& out = args.outputs[0].spec.shape;
  std::vector<BatchAxis> axes;
  for (std::size_t i = out.size() - 2; i-- > 0;) {
    if (out[i] == 1) continue;
    const BatchAxis axis{out[i], batch_stride(args.inputs[0], out.size(), i),
                         batch_stride(args.inputs[1], out.size(), i)};
    if (!axes.empty()) {
      BatchAxis& inner = axes.back();
      if (axis.a_stride == inner.a_stride * inner.size &&
          axis.b_stride == inner.b_stride * inner.size) {
        inner.size *= axis.size;
        continue;
      }
    }
    axes.push_back(axis);
  }
  return axes;
}

/// The stride of one of the last two axes; that of an axis of extent 1 is never used, and adjacent
/// is what serves best.
std::int64_t matrix_stride(const OperandSpec& operand, std::size_t from_the_end) {
  const std::size_t axis = operand.spec.shape.size() - from_the_end;
  return operand.spec.shape[axis] <= 1 ? 1 : operand.layout.strides[axis];
}

bool fits(std::int64_t stride) {
  return std::abs(stride) <= kMostIndex;
}

std::string problem(const PrepareArgs& args, const std::vector<BatchAxis>& axes) {
  for (const OperandSpec& operand : args.inputs) {
    if (operand.layout.kind != LayoutKind::strided) {
      return fmt::format("matmul: {} is not strided", to_string(operand));
    }
    const bool short_axes = std::ranges::all_of(operand.spec.shape, fits);
    if (!short_axes || !std::ranges::all_of(operand.layout.strides, fits)) {
      return fmt::format("matmul: {} has an axis or a stride of more than {} elements",
                         to_string(operand), kMostIndex);
    }
  }
  if (axes.size() > kMostBatchAxes) {
    return fmt::format("matmul: {} and {} have {} batch axes that cannot be joined; at most {}",
                       to_string(args.inputs[0]), to_string(args.inputs[1]), axes.size(),
                       kMostBatchAxes);
  }
  for (const BatchAxis& axis : axes) {
    if (!fits(axis.size)) {
      return fmt::format("matmul: a batch axis of {} elements is longer than {}", axis.size,
                         kMostIndex);
    }
  }
  const DType dtype = args.inputs[0].spec.dtype;
  if (!is_floating(dtype)) {
    return fmt::format("matmul: operands of {} have no kernel", to_string(dtype));
  }
  if (dtype == DType::f64 && !args.limits.float64) {
    return "matmul: the device has no 64-bit floats";
  }
  if (item_size(dtype) == 2 && !args.limits.storage_16) {
    return fmt::format("matmul: the device cannot store {}, for lack of 16-bit storage",
                       to_string(dtype));
  }
  return {};
}

Params make_params(const PrepareArgs& args, const std::vector<BatchAxis>& axes) {
  const Shape& out = args.outputs[0].spec.shape;
  const auto count = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  const auto stride = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  Params params{};
  params.rows = count(out[out.size() - 2]);
  params.columns = count(out.back());
  params.depth = count(args.inputs[0].spec.shape.back());
  params.a_row = stride(matrix_stride(args.inputs[0], 2));
  params.a_depth = stride(matrix_stride(args.inputs[0], 1));
  params.b_depth = stride(matrix_stride(args.inputs[1], 2));
  params.b_column = stride(matrix_stride(args.inputs[1], 1));
  params.batch_axes = count(static_cast<std::int64_t>(axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    params.batch_sizes[i] = count(axes[i].size);
    params.a_batch[i] = stride(axes[i].a_stride);
    params.b_batch[i] = stride(axes[i].b_stride);
  }
  return params;
}

/// Workgroups of a form: what each computes, and how.
struct Launch {
  std::string_view shader;
  std::uint32_t lanes;
  std::int64_t rows, columns;  // of a workgroup
  std::vector<std::uint32_t> constants;
};

Launch choose_launch(const PrepareArgs& args, const Params& params) {
  const std::uint32_t rows = params.rows;
  const bool dense_a = params.a_depth == 1, dense_b = params.b_depth == 1;
  const DType dtype = args.inputs[0].spec.dtype;
  const auto type = static_cast<std::uint32_t>(dtype);
  const std::uint32_t lanes = scalar_lanes(args.limits);
  if (dtype == DType::f64) return {"matmul_f64", lanes, 1, lanes, {type}};
  if (product_form(args.limits, rows) == ProductForm::tiled) {
    const std::uint32_t lane_rows = tile_lane_rows(rows);
    return {"matmul_tiled",
            kTileLanes,
            lane_rows * kTileRowLanes,
            kTileColumns,
            {type, lane_rows, dense_a, dense_b}};
  }
  const std::uint32_t lane_rows = some_rows(rows, kMatmulRows);
  return {"matmul_scalar", lanes, lane_rows, lanes, {type, lane_rows, dense_a, dense_b}};
}

Address first_address(const OperandSpec& operand, std::size_t index) {
  return input(index,
               static_cast<std::uint64_t>(first_element(operand)) * item_size(operand.spec.dtype));
}

}  // namespace

Prepared prepare_matmul(const PrepareArgs& args) {
  const Shape& out = args.outputs[0].spec.shape;
  const std::vector<BatchAxis> axes = batch_axes(args);
  if (std::string reason = problem(args, axes); !reason.empty()) return refuse(std::move(reason));
  KernelMaker maker(args);
  if (std::ranges::find(out, 0) != out.end()) return maker.finish();
  Params params = make_params(args, axes);
  Launch launch = choose_launch(args, params);
  const std::int64_t row_groups = ceil_div(params.rows, launch.rows);
  const std::int64_t column_groups = ceil_div(params.columns, launch.columns);
  std::uint64_t groups = static_cast<std::uint64_t>(row_groups * column_groups);
  for (const BatchAxis& axis : axes) groups *= static_cast<std::uint64_t>(axis.size);
  if (groups > ~std::uint32_t{0}) {
    return refuse(fmt::format("matmul: {} workgroups are more than a dispatch can count", groups));
  }
  params.row_groups = static_cast<std::uint32_t>(row_groups);
  params.column_groups = static_cast<std::uint32_t>(column_groups);
  maker.dispatch(
      {.shader = launch.shader,
       .group_size = launch.lanes,
       .constants = std::move(launch.constants),
       .grid = {.groups = groups},
       .operands = {first_address(args.inputs[0], 0), first_address(args.inputs[1], 1), output(0)}},
      params);
  return maker.finish();
}

}  // namespace heddle::vulkan
