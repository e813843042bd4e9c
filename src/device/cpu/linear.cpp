// Linear: rows of activations against weights [out, in], packed in panels, row by row, or in
// blocks.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "device/cpu/dwindling.h"
#include "device/cpu/forms.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

// Rows that are computed together share what is made of a block of weights: the more the better, as
// long as every thread finds so many pieces of the whole to do.
constexpr std::int64_t kPiecesOfThread = 8;
// Multiply-adds (16 at a time, a few microseconds) that are worth another thread.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 17;
// A few rows wait for memory, which a thread reads fastest in long runs: with 64 KiB at a time, two
// threads get three quarters of what they get with 512 (measured on Zen 4).
constexpr std::int64_t kRowsThatWait = 8;

struct Weight {
  void (*product)(const ProductJob&);  // of float types
  void (*dots)(const QuantJob&);       // of block types
  std::size_t row_bytes;
  std::int64_t columns;
  std::int64_t first_group;  // of kGroupColumns columns, counted over all weights
};

struct LinearPlan {
  std::int64_t depth = 0, x_stride = 0;
  std::int64_t rows = 0, rows_per_extent = 1;
  std::int64_t groups = 0;
  void (*round)(const float*, std::int64_t, RoundedBlock&) = nullptr;  // if any weight has blocks
  const RoundedProducts* rounded = nullptr;  // if any has none, and HEDDLE_MATMUL asks for it
  std::vector<Weight> weights;

  std::size_t blocks_bytes() const {
    return round ? static_cast<std::size_t>(rows * rounded_blocks(depth)) * sizeof(RoundedBlock)
                 : 0;
  }
  /// Of the rows that `rounded` makes, which follow the blocks.
  std::int64_t rounded_stride() const { return rounded->x_stride(depth); }
  std::size_t workspace_bytes() const {
    const auto floats = static_cast<std::size_t>(rounded ? rows * rounded_stride() : 0);
    return blocks_bytes() + floats * sizeof(float);
  }
  RoundedBlock* blocks(const Launch& launch) const {
    return reinterpret_cast<RoundedBlock*>(launch.workspace);
  }
  float* rounded_rows(const Launch& launch) const {
    return reinterpret_cast<float*>(launch.workspace + blocks_bytes());
  }
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
  if (!stored_type(weight.spec.dtype) && !quant_type(weight.spec.dtype)) {
    return fmt::format("linear: weights of {} have no kernel", to_string(weight.spec.dtype));
  }
  if (weight.layout.kind != LayoutKind::panel16 && !is_contiguous(weight)) {
    return fmt::format("linear: weight {} must be contiguous or packed", to_string(weight));
  }
  return {};
}

Weight make_weight(const OperandSpec& weight, const LinearForms& forms) {
  Weight made{.row_bytes = row_bytes(weight.spec.dtype, weight.spec.shape[1]),
              .columns = weight.spec.shape[0]};
  const bool packed = weight.layout.kind == LayoutKind::panel16;
  if (const auto blocks = quant_type(weight.spec.dtype)) {
    made.dots = packed ? forms.panels->products[*blocks] : forms.blocks->dots[*blocks];
    return made;
  }
  const auto type = static_cast<std::size_t>(*stored_type(weight.spec.dtype));
  if (forms.rounded) {
    made.product = packed ? forms.rounded->panels[type] : forms.rounded->dots[type];
  } else {
    made.product = packed ? forms.exact->panels[type] : forms.exact->dots[type];
  }
  return made;
}

LinearPlan make_plan(const PrepareArgs& args, std::int64_t x_stride) {
  const Shape& x = args.inputs[0].spec.shape;
  LinearPlan plan{.depth = x.back(), .x_stride = x_stride, .rows = 1};
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    plan.rows *= x[i];
    if (i > 0) plan.rows_per_extent *= x[i];
  }
  const LinearForms forms = linear_forms();
  for (const OperandSpec& operand : args.inputs.subspan(1)) {
    Weight weight = make_weight(operand, forms);
    weight.first_group = plan.groups;
    if (weight.dots) plan.round = forms.blocks->round;
    if (weight.product) plan.rounded = forms.rounded;
    plan.weights.push_back(weight);
    plan.groups += (weight.columns + kGroupColumns - 1) / kGroupColumns;
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
  // In panels as row by row, what lies before a group is its columns' rows.
  const std::byte* weights =
      launch.inputs[i + 1].data + static_cast<std::size_t>(column) * weight.row_bytes;
  const std::int64_t columns = std::min(kGroupColumns, weight.columns - column);
  float* out = launch.outputs[i].as<float>() + first_row * weight.columns + column;
  if (weight.dots) {
    const RoundedBlock* x = plan.blocks(launch) + first_row * rounded_blocks(plan.depth);
    return weight.dots({x, rows, weights, plan.depth, columns, out, weight.columns});
  }
  const float* x = plan.rounded ? plan.rounded_rows(launch) : launch.inputs[0].as<float>();
  const std::int64_t x_stride = plan.rounded ? plan.rounded_stride() : plan.x_stride;
  weight.product({
      .x = x + first_row * x_stride,
      .x_stride = x_stride,
      .rows = rows,
      .weights = weights,
      .depth = plan.depth,
      .columns = columns,
      .out = out,
      .out_stride = weight.columns,
  });
}

/// The first `rows` rows of x, once for all weights of block types.
void round_to_blocks(const LinearPlan& plan, const Launch& launch, std::int64_t rows) {
  const std::int64_t blocks = rounded_blocks(plan.depth);
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    RoundedBlock* rounded = plan.blocks(launch);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * kRoundedElements;
      plan.round(launch.inputs[0].as<float>() + i / blocks * plan.x_stride + first,
                 std::min<std::int64_t>(kRoundedElements, plan.depth - first), rounded[i]);
    }
  };
  parallel(launch.team, rows * blocks, row_grain(kRoundedElements), body);
}

/// And for all others, where they are rounded.
void round_to_bf16(const LinearPlan& plan, const Launch& launch, std::int64_t rows) {
  parallel(launch.team, rows, row_grain(plan.depth), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      plan.rounded->round(launch.inputs[0].as<float>() + r * plan.x_stride, plan.depth,
                          plan.rounded_rows(launch) + r * plan.rounded_stride());
    }
  });
}

/// Into how many blocks the rows are cut.
std::int64_t row_blocks(const LinearPlan& plan, std::int64_t rows, int threads) {
  const auto blocks_of = [rows](std::int64_t most) { return (rows + most - 1) / most; };
  const std::int64_t groups = std::max<std::int64_t>(1, plan.groups);
  const std::int64_t wanted = (kPiecesOfThread * threads + groups - 1) / groups;
  return std::clamp(wanted, blocks_of(kMostPanelRows), blocks_of(kMostTileRows));
}

/// Groups of columns for that many rows that are worth another thread.
std::int64_t least_groups(const LinearPlan& plan, std::int64_t rows) {
  const std::int64_t work = rows * kGroupColumns * std::max<std::int64_t>(1, plan.depth);
  return std::max<std::int64_t>(1, kChunkWork / work);
}

void run_few_rows(const LinearPlan& plan, const Launch& launch, std::int64_t rows) {
  const Dwindling share(plan.groups, least_groups(plan, rows), launch.team.size());
  parallel(launch.team, share.chunks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const Dwindling::Range range = share.range(chunk);
      for (std::int64_t group = range.begin; group < range.end; ++group) {
        run_group(plan, launch, group, 0, rows);
      }
    }
  });
}

void run_linear(const LinearPlan& plan, const Launch& launch) {
  std::int64_t rows = plan.rows;
  if (launch.extent >= 0) rows = std::min(rows, launch.extent * plan.rows_per_extent);
  if (rows == 0) return;
  if (plan.round) round_to_blocks(plan, launch, rows);
  if (plan.rounded) round_to_bf16(plan, launch, rows);
  if (rows <= kRowsThatWait) return run_few_rows(plan, launch, rows);
  const std::int64_t blocks = row_blocks(plan, rows, launch.team.size());
  const std::int64_t rows_a_block = (rows + blocks - 1) / blocks;
  const auto body = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first_row = unit % blocks * rows_a_block;
      const std::int64_t count = std::min(rows_a_block, rows - first_row);
      if (count > 0) run_group(plan, launch, unit / blocks, first_row, count);
    }
  };
  parallel(launch.team, plan.groups * blocks, least_groups(plan, rows_a_block), body);
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
  LinearPlan plan = make_plan(args, *x_stride);
  traits.workspace_bytes = plan.workspace_bytes();
  return make_kernel(std::move(traits),
                     [plan = std::move(plan)](const Launch& launch) { run_linear(plan, launch); });
}

std::optional<LayoutKind> preferred_weight_layout(const Op& op, std::size_t operand,
                                                  std::span<const TensorSpec> inputs) {
  if (!std::holds_alternative<Linear>(op) || operand == 0 || operand >= inputs.size()) {
    return std::nullopt;
  }
  const TensorSpec& weight = inputs[operand];
  const bool fills_a_panel = weight.shape.size() == 2 && weight.shape[0] >= kPanel;
  const bool has_kernel = stored_type(weight.dtype) || quant_type(weight.dtype);
  return fills_a_panel && has_kernel ? std::optional(LayoutKind::panel16) : std::nullopt;
}

}  // namespace heddle::cpu
