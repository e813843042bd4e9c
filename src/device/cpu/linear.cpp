// Linear: rows of activations against weights [out, in], packed in panels or row by row.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

namespace {

// Rows that are computed together, so that they share a decoded block of weights in the cache.
constexpr std::int64_t kRowBlock = kMostTileRows;
// Multiply-adds (16 at a time, a few microseconds) that are worth another thread.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;

struct Weight {
  void (*product)(const ProductJob&);
  std::size_t item_bytes;
  std::int64_t columns;
  std::int64_t first_group;  // of kGroupColumns columns, counted over all weights
};

struct LinearPlan {
  std::int64_t depth = 0, x_stride = 0;
  std::int64_t rows = 0, rows_per_extent = 1;
  std::int64_t groups = 0;
  std::vector<Weight> weights;
};

/// Elements between consecutive rows, if the rows along all axes but the last are evenly spaced.
std::optional<std::int64_t> row_stride(const OperandSpec& x) {
  const Shape& shape = x.spec.shape;
  if (std::ranges::find(shape, 0) != shape.end()) return shape.back();
  const Dims& strides = x.layout.strides;
  if (shape.back() > 1 && strides.back() != 1) return std::nullopt;
  std::optional<std::int64_t> stride;
  std::int64_t inner_rows = 1;
  for (std::size_t i = shape.size() - 1; i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!stride) stride = strides[i];
    if (strides[i] != *stride * inner_rows) return std::nullopt;
    inner_rows *= shape[i];
  }
  return stride.value_or(shape.back());
}

std::string weight_problem(const OperandSpec& weight) {
  if (!stored_type(weight.spec.dtype)) {
    return fmt::format("linear: weights of {} have no kernel", to_string(weight.spec.dtype));
  }
  if (weight.layout.kind != LayoutKind::panel16 && !is_contiguous(weight)) {
    return fmt::format("linear: weight {} must be contiguous or packed", to_string(weight));
  }
  return {};
}

LinearPlan make_plan(const PrepareArgs& args, std::int64_t x_stride) {
  const Shape& x = args.inputs[0].spec.shape;
  LinearPlan plan{.depth = x.back(), .x_stride = x_stride, .rows = 1};
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    plan.rows *= x[i];
    if (i > 0) plan.rows_per_extent *= x[i];
  }
  const Products& loops = products(isa());
  for (const OperandSpec& weight : args.inputs.subspan(1)) {
    const auto type = static_cast<std::size_t>(*stored_type(weight.spec.dtype));
    const bool packed = weight.layout.kind == LayoutKind::panel16;
    const std::int64_t columns = weight.spec.shape[0];
    plan.weights.push_back({packed ? loops.panels[type] : loops.dots[type],
                            item_size(weight.spec.dtype), columns, plan.groups});
    plan.groups += (columns + kGroupColumns - 1) / kGroupColumns;
  }
  return plan;
}

/// One group of columns for rows [first_row, first_row + rows).
void run_group(const LinearPlan& plan, const Launch& launch, std::int64_t group,
               std::int64_t first_row, std::int64_t rows) {
  std::size_t i = plan.weights.size() - 1;
  while (plan.weights[i].first_group > group) --i;
  const Weight& weight = plan.weights[i];
  const std::int64_t column = (group - weight.first_group) * kGroupColumns;
  // In panels as row by row, what lies before a group is its columns' depth.
  const auto offset = static_cast<std::size_t>(column * plan.depth) * weight.item_bytes;
  weight.product({
      .x = launch.inputs[0].as<float>() + first_row * plan.x_stride,
      .x_stride = plan.x_stride,
      .rows = rows,
      .weights = launch.inputs[i + 1].data + offset,
      .depth = plan.depth,
      .columns = std::min(kGroupColumns, weight.columns - column),
      .out = launch.outputs[i].as<float>() + first_row * weight.columns + column,
      .out_stride = weight.columns,
  });
}

void run_linear(const LinearPlan& plan, const Launch& launch) {
  std::int64_t rows = plan.rows;
  if (launch.extent >= 0) rows = std::min(rows, launch.extent * plan.rows_per_extent);
  const std::int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  if (blocks == 0) return;
  const std::int64_t rows_a_block = (rows + blocks - 1) / blocks;
  const std::int64_t work = rows_a_block * kGroupColumns * std::max<std::int64_t>(1, plan.depth);
  const std::int64_t grain = std::max<std::int64_t>(1, kChunkWork / work);
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first_row = unit % blocks * rows_a_block;
      const std::int64_t count = std::min(rows_a_block, rows - first_row);
      if (count > 0) run_group(plan, launch, unit / blocks, first_row, count);
    }
  };
  parallel(launch.team, plan.groups * blocks, grain, body);
}

}  // namespace

Prepared prepare_linear(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided) return refuse("linear: x must not be packed");
  const std::optional<std::int64_t> x_stride = row_stride(x);
  if (!x_stride) {
    return refuse(fmt::format("linear: the rows of x {} must be evenly spaced", to_string(x)));
  }
  for (const OperandSpec& weight : args.inputs.subspan(1)) {
    if (std::string problem = weight_problem(weight); !problem.empty()) return refuse(problem);
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = x.spec.shape.size() > 1;
  return make_kernel(std::move(traits), [plan = make_plan(args, *x_stride)](const Launch& launch) {
    run_linear(plan, launch);
  });
}

std::optional<LayoutKind> preferred_weight_layout(const Op& op, std::size_t operand,
                                                  std::span<const TensorSpec> inputs) {
  if (!std::holds_alternative<Linear>(op) || operand == 0 || operand >= inputs.size()) {
    return std::nullopt;
  }
  const TensorSpec& weight = inputs[operand];
  const bool fills_a_panel = weight.shape.size() == 2 && weight.shape[0] >= kPanel;
  return fills_a_panel && stored_type(weight.dtype) ? std::optional(LayoutKind::panel16)
                                                    : std::nullopt;
}

}  // namespace heddle::cpu
