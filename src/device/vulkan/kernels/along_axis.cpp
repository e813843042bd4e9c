// Ops along an axis: scans, extremes' places, the largest, and elements chosen by indices.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "device/vulkan/kernel.h"
#include "device/vulkan/kernels/row_groups.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint64_t kMostElements = ~std::uint32_t{0};

std::uint32_t narrow(std::uint64_t n) {
  return static_cast<std::uint32_t>(n);
}
std::uint32_t number_of(DType dtype) {
  return static_cast<std::uint32_t>(dtype);
}

struct LineParams {  // lines.glsl's
  std::uint32_t rows, per_row, extent, inner, more;
};

/// The lines of x along an axis.
struct Lines {
  std::uint64_t extent = 1, inner = 1, count = 1, leading = 1;
  bool has_leading = false;  // axis 0 counts rows, which an extent may cut short

  Lines(const Shape& shape, std::int64_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto n = static_cast<std::uint64_t>(shape[i]);
      const auto at = static_cast<std::int64_t>(i);
      if (at == axis) extent = n;
      if (at > axis) inner *= n;
      if (at != axis) count *= n;
    }
    has_leading = axis > 0;
    if (has_leading) leading = static_cast<std::uint64_t>(shape[0]);
  }

  Address extent_operand() const { return has_leading ? vulkan::extent() : nothing(); }
  /// For `items` in all, lines or elements.
  LineParams params(std::uint64_t items, std::uint64_t more = 0) const {
    return {narrow(leading), narrow(leading == 0 ? 0 : items / leading), narrow(extent),
            narrow(inner), narrow(more)};
  }
  Grid grid(std::uint64_t items, std::uint32_t a_group) const {
    if (has_leading && leading > 0) {
      return grid_of_rows(narrow(leading), narrow(items / leading), a_group);
    }
    return {.groups = (items + a_group - 1) / a_group};
  }
};

/// Why operands cannot be taken as they are, or nothing.
std::string problem_of(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (!is_contiguous(input) || is_block(input.spec.dtype)) {
      return fmt::format("{}: operands must be contiguous and plain, one is {}", name(args.op),
                         to_string(input));
    }
  }
  for (const auto operands : {args.inputs, args.outputs}) {
    for (const OperandSpec& operand : operands) {
      if (static_cast<std::uint64_t>(elements(operand.spec.shape)) <= kMostElements) continue;
      return fmt::format("{}: {} elements, at most {}", name(args.op), elements(operand.spec.shape),
                         kMostElements);
    }
  }
  for (const OperandSpec& output : args.outputs) {
    if (std::string why = narrow_refusal(args, output.spec.dtype); !why.empty()) return why;
  }
  return {};
}

std::string_view accumulation_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::complex64:
      return "complex";
    case DType::i64:
    case DType::u64:
      return "i64";
    default:
      return "i32";
  }
}

// As accumulate.glsl counts them, and what shaders add to that.
enum Combination : std::uint32_t { kSum, kMean, kMax, kMin, kProd, kLogAddExp, kReplace };

Combination combination_of(ScanKind kind) {
  switch (kind) {
    case ScanKind::sum:
      return kSum;
    case ScanKind::prod:
      return kProd;
    case ScanKind::max:
      return kMax;
    case ScanKind::min:
      return kMin;
    case ScanKind::logaddexp:
      return kLogAddExp;
  }
  return kSum;
}

Combination combination_of(ScatterKind kind) {
  switch (kind) {
    case ScatterKind::none:
      return kReplace;
    case ScatterKind::sum:
      return kSum;
    case ScatterKind::prod:
      return kProd;
    case ScatterKind::max:
      return kMax;
    case ScatterKind::min:
      return kMin;
  }
  return kReplace;
}

/// Lanes that share a line of `extent` elements, of which each has `each` at least: of the line's
/// own length alone (rule 17).
std::uint32_t pieces_of(std::uint64_t extent, std::uint64_t each, std::uint32_t most) {
  return narrow(std::bit_floor(std::clamp<std::uint64_t>(extent / each, 1, most)));
}

std::uint32_t line_group(const Limits& limits) {
  constexpr std::uint32_t kLanes = 32;
  return std::max(kLanes, limits.subgroup_size);
}

}  // namespace

Prepared prepare_scan(const PrepareArgs& args) {
  const auto& op = std::get<Scan>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  const TensorSpec& x = args.inputs[0].spec;
  if (x.dtype == DType::f64 && !args.limits.float64) {
    return refuse("scan: the device has no f64 arithmetic");
  }
  const Lines lines(x.shape, op.axis);
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  if (args.outputs[0].spec.dtype == x.dtype) maker.traits.aliases.push_back({0, 0});
  if (lines.count * lines.extent == 0) return maker.finish();
  constexpr std::uint64_t kEach = 64;
  const std::uint32_t group = line_group(args.limits);
  const std::uint32_t pieces = pieces_of(lines.extent, kEach, 32);
  const bool rounds = op.kind != ScanKind::max && op.kind != ScanKind::min;
  const bool wide = rounds && is_floating(x.dtype) && args.limits.float64;
  const std::string shader = fmt::format("scan_{}", accumulation_of(wide ? DType::f64 : x.dtype));
  maker.dispatch(
      {.shader = shader,
       .group_size = group,
       .constants = {combination_of(op.kind), number_of(x.dtype), pieces, op.reverse, op.exclusive},
       .grid = lines.grid(lines.count, group / pieces),
       .operands = {input(0), output(0), lines.extent_operand()}},
      lines.params(lines.count));
  return maker.finish();
}

Prepared prepare_arg_reduce(const PrepareArgs& args) {
  const auto& op = std::get<ArgReduce>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  const TensorSpec& x = args.inputs[0].spec;
  const Lines lines(x.shape, op.axis);
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  if (lines.count == 0) return maker.finish();
  constexpr std::uint64_t kEach = 16;
  const std::uint32_t group = line_group(args.limits);
  const std::uint32_t pieces = pieces_of(lines.extent, kEach, group);
  maker.dispatch({.shader = "arg_reduce",
                  .group_size = group,
                  .constants = {op.kind == ArgReduceKind::min, number_of(x.dtype), pieces},
                  .grid = lines.grid(lines.count, group / pieces),
                  .operands = {input(0), output(0), lines.extent_operand()}},
                 lines.params(lines.count));
  return maker.finish();
}

Prepared prepare_top_k(const PrepareArgs& args) {
  const auto& op = std::get<TopK>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  const TensorSpec& x = args.inputs[0].spec;
  const Lines lines(x.shape, static_cast<std::int64_t>(x.shape.size()) - 1);
  // Every one of the k largest is looked for along the whole row.
  constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 31;
  const auto k = static_cast<std::uint64_t>(op.k);
  if (k > 0 && lines.extent > kMostLooks / k) {
    return refuse(fmt::format("top_k: the {} largest of {} elements; the product may be {}", k,
                              lines.extent, kMostLooks));
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  if (lines.count * k == 0) return maker.finish();
  maker.dispatch({.shader = "top_k",
                  .group_size = line_group(args.limits),
                  .constants = {number_of(x.dtype)},
                  .grid = lines.grid(lines.count, 1),
                  .operands = {input(0), output(0), output(1), lines.extent_operand()}},
                 lines.params(lines.count, k));
  return maker.finish();
}

Prepared prepare_gather_axis(const PrepareArgs& args) {
  const auto& op = std::get<GatherAxis>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  const TensorSpec &x = args.inputs[0].spec, &indices = args.inputs[1].spec;
  const Lines lines(x.shape, op.axis);
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  const auto count = static_cast<std::uint64_t>(elements(indices.shape));
  if (count == 0) return maker.finish();
  const std::uint32_t group = walk_group(args.limits);
  const auto chosen = static_cast<std::uint64_t>(indices.shape[static_cast<std::size_t>(op.axis)]);
  maker.dispatch({.shader = "gather_axis",
                  .group_size = group,
                  .constants = {narrow(item_size(x.dtype)), number_of(indices.dtype)},
                  .grid = lines.grid(count, group),
                  .operands = {input(0), input(1), output(0), lines.extent_operand()}},
                 lines.params(count, chosen));
  return maker.finish();
}

Prepared prepare_scatter_axis(const PrepareArgs& args) {
  const auto& op = std::get<ScatterAxis>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  const TensorSpec &x = args.inputs[0].spec, &indices = args.inputs[1].spec;
  if (x.dtype == DType::f64 && !args.limits.float64) {
    return refuse("scatter_axis: the device has no f64 arithmetic");
  }
  const Lines lines(x.shape, op.axis);
  const std::uint64_t count = lines.count * lines.extent;
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  maker.traits.aliases.push_back({0, 0});
  const std::uint32_t group = walk_group(args.limits);
  const auto updates = static_cast<std::uint64_t>(indices.shape[static_cast<std::size_t>(op.axis)]);
  const std::string shader = fmt::format("scatter_{}", accumulation_of(x.dtype));
  const auto dispatch = [&](bool copies, std::uint64_t items) {
    if (items == 0) return;
    maker.dispatch({.shader = shader,
                    .group_size = group,
                    .constants = {combination_of(op.kind), number_of(x.dtype),
                                  number_of(indices.dtype), copies},
                    .grid = lines.grid(items, group),
                    .operands = {input(0), input(1), input(2), output(0), lines.extent_operand()},
                    .after_previous = !copies},
                   lines.params(items, updates));
  };
  dispatch(true, count);
  dispatch(false, updates == 0 ? 0 : lines.count);
  return maker.finish();
}

Prepared prepare_channel_norm(const PrepareArgs& args) {
  const auto& op = std::get<ChannelNorm>(args.op);
  if (std::string problem = problem_of(args); !problem.empty()) return refuse(problem);
  for (const OperandSpec& input : args.inputs) {
    const DType dtype = input.spec.dtype;
    if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) continue;
    return refuse(fmt::format("channel_norm: operands must be f32, f16 or bf16, one is {}",
                              to_string(input)));
  }
  const Lines lines(args.inputs[0].spec.shape, op.axis);
  KernelMaker maker(args);
  maker.traits.honours_extent = lines.has_leading;
  maker.traits.aliases.push_back({0, 0});
  if (lines.count * lines.extent == 0) return maker.finish();
  const NormParameters parameters(args, 1, op.has_weight, op.has_bias);
  constexpr std::uint64_t kEach = 16;
  const std::uint32_t group = line_group(args.limits);
  const std::uint32_t pieces = pieces_of(lines.extent, kEach, group);
  maker.dispatch({.shader = "channel_norm",
                  .group_size = group,
                  .constants = {number_of(args.inputs[0].spec.dtype), parameters.weight_type,
                                parameters.bias_type, pieces},
                  .grid = lines.grid(lines.count, group / pieces),
                  .operands = {input(0), parameters.weight, parameters.bias, output(0),
                               lines.extent_operand()}},
                 lines.params(lines.count, std::bit_cast<std::uint32_t>(op.eps)));
  return maker.finish();
}

}  // namespace heddle::vulkan
