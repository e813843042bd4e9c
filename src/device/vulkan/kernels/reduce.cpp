// Sum, mean, max, min and prod over any axes of operands of any strides.
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "device/vulkan/kernels/softmax.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

// As the shader has them.
constexpr std::uint64_t kSegment = 4096;
constexpr std::uint32_t kLanes = 8;
enum Form : std::uint32_t { kRows, kColumns, kJoin };
struct ReduceParams {
  std::uint32_t outputs, count, segments, leading, outputs_per_leading, kept_rank, reduced_rank;
  std::array<std::uint32_t, kMaxRank> kept_extents;
  std::array<std::int32_t, kMaxRank> kept_strides;
  std::array<std::uint32_t, kMaxRank> reduced_extents;
  std::array<std::int32_t, kMaxRank> reduced_strides;
};

/// Axes in row-major order, merged where strides allow.
struct Axes {
  Dims extents, strides;
  std::uint64_t count = 1;

  void add(std::int64_t extent, std::int64_t stride) {
    count *= static_cast<std::uint64_t>(extent);
    if (extent == 1) return;
    if (!extents.empty() && strides.back() == stride * extent) {
      extents[extents.size() - 1] *= extent;
      strides[strides.size() - 1] = stride;
    } else {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  }
  std::int64_t innermost_stride() const { return extents.empty() ? 0 : strides.back(); }
};

struct SplitAxes {
  Axes kept, reduced;
};

SplitAxes split_axes(const OperandSpec& x, const Dims& axes) {
  SplitAxes split;
  for (std::size_t i = 0, next = 0; i < x.spec.shape.size(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<std::int64_t>(i);
    if (reduced) ++next;
    (reduced ? split.reduced : split.kept).add(x.spec.shape[i], x.layout.strides[i]);
  }
  return split;
}

/// Of which type the accumulators are, as the shader's variants are called.
struct Accumulation {
  std::string_view shader;
  std::uint64_t bytes;
};

Accumulation accumulation_of(ReduceKind kind, DType dtype) {
  const bool whole = is_integer(dtype) || dtype == DType::bool_;
  if (dtype == DType::f64 || (whole && kind == ReduceKind::mean)) return {"reduce_f64", 8};
  if (dtype == DType::complex64) return {"reduce_complex", 8};
  if (dtype == DType::i64 || dtype == DType::u64) return {"reduce_i64", 8};
  return whole ? Accumulation{"reduce_i32", 4} : Accumulation{"reduce_f32", 4};
}

std::string problem_of(const PrepareArgs& args, const Reduce& op, const SplitAxes& axes) {
  if (op.kind == ReduceKind::all || op.kind == ReduceKind::any) {
    return fmt::format("no shader for {}", to_string(op.kind));
  }
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided || is_block(x.spec.dtype)) {
    return fmt::format("{}: its operand must be strided and plain, not {}", to_string(op.kind),
                       to_string(x));
  }
  if (std::string why = narrow_refusal(args, args.outputs[0].spec.dtype); !why.empty()) return why;
  if (accumulation_of(op.kind, x.spec.dtype).shader == "reduce_f64" && !args.limits.float64) {
    return fmt::format("{} of {}: the device has no f64 arithmetic", to_string(op.kind),
                       to_string(x.spec.dtype));
  }
  constexpr std::uint64_t kMostReduced = (std::uint64_t{1} << 31) - 1;
  constexpr std::uint64_t kMostJobs = ~std::uint32_t{0};
  const std::uint64_t segments =
      std::max<std::uint64_t>(1, (axes.reduced.count + kSegment - 1) / kSegment);
  if (axes.reduced.count > kMostReduced) {
    return fmt::format("{}: {} elements in one, at most {}", to_string(op.kind), axes.reduced.count,
                       kMostReduced);
  }
  if (axes.kept.count > kMostJobs / segments) {
    return fmt::format("{}: {} outputs in {} segments, at most {} in all", to_string(op.kind),
                       axes.kept.count, segments, kMostJobs);
  }
  for (const Axes* some : {&axes.kept, &axes.reduced}) {
    for (const std::int64_t stride : some->strides) {
      if (std::abs(stride) > std::numeric_limits<std::int32_t>::max()) {
        return fmt::format("{}: a stride of {} elements, at most {}", to_string(op.kind), stride,
                           std::numeric_limits<std::int32_t>::max());
      }
    }
  }
  return {};
}

/// Workgroups of `units` outputs each, `times` of each, for as many outputs as an extent leaves.
Grid grid_of(const ReduceParams& params, bool cut_short, std::uint64_t units, std::uint64_t times) {
  if (!cut_short) return {.groups = (params.outputs + units - 1) / units * times};
  const std::uint64_t per_leading = params.outputs_per_leading;
  const std::uint64_t rows = units / std::gcd(units, per_leading);
  const std::uint64_t groups = rows * per_leading / units * times;
  return {.groups = (params.leading + rows - 1) / rows * groups,
          .rows_per_step = static_cast<std::uint32_t>(rows),
          .groups_per_step = static_cast<std::uint32_t>(groups)};
}

void copy_axes(const Axes& axes, std::array<std::uint32_t, kMaxRank>& extents,
               std::array<std::int32_t, kMaxRank>& strides) {
  for (std::size_t i = 0; i < axes.extents.size(); ++i) {
    extents[i] = static_cast<std::uint32_t>(axes.extents[i]);
    strides[i] = static_cast<std::int32_t>(axes.strides[i]);
  }
}

ReduceParams params_of(const Shape& shape, const SplitAxes& axes, bool cut_short) {
  ReduceParams params{};
  params.outputs = static_cast<std::uint32_t>(axes.kept.count);
  params.count = static_cast<std::uint32_t>(axes.reduced.count);
  params.segments = std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>((params.count + kSegment - 1) / kSegment));
  params.leading = cut_short ? static_cast<std::uint32_t>(shape[0]) : 1;
  params.outputs_per_leading = params.outputs / params.leading;
  params.kept_rank = static_cast<std::uint32_t>(axes.kept.extents.size());
  params.reduced_rank = static_cast<std::uint32_t>(axes.reduced.extents.size());
  copy_axes(axes.kept, params.kept_extents, params.kept_strides);
  copy_axes(axes.reduced, params.reduced_extents, params.reduced_strides);
  return params;
}

/// Outputs that are adjacent in memory are loaded side by side, if what each reduces is not.
bool by_columns(const SplitAxes& axes) {
  return std::abs(axes.kept.innermost_stride()) == 1 && axes.kept.extents.back() >= kLanes &&
         std::abs(axes.reduced.innermost_stride()) != 1;
}

}  // namespace

Prepared prepare_reduce(const PrepareArgs& args) {
  if (std::holds_alternative<Softmax>(args.op)) return prepare_softmax(args);
  const auto& op = std::get<Reduce>(args.op);
  const OperandSpec& x = args.inputs[0];
  const Shape& shape = x.spec.shape;
  const SplitAxes axes = split_axes(x, op.axes);
  if (std::string problem = problem_of(args, op, axes); !problem.empty()) return refuse(problem);

  KernelMaker maker(args);
  const bool cut_short = !shape.empty() && (op.axes.empty() || op.axes[0] != 0);
  maker.traits.honours_extent = cut_short;
  if (axes.kept.count == 0) return maker.finish();
  const ReduceParams params = params_of(shape, axes, cut_short);
  const Accumulation accumulation = accumulation_of(op.kind, x.spec.dtype);
  if (params.segments > 1) {
    maker.traits.workspace_bytes = axes.kept.count * params.segments * accumulation.bytes;
  }
  const std::uint32_t group_size = std::max(kLanes, args.limits.subgroup_size);
  const auto dispatch = [&](Form form, const Grid& grid) {
    const std::size_t item = item_size(x.spec.dtype);
    const auto first = static_cast<std::uint64_t>(first_element(x)) * item;
    maker.dispatch(
        {.shader = accumulation.shader,
         .group_size = group_size,
         .constants = {static_cast<std::uint32_t>(op.kind),
                       static_cast<std::uint32_t>(x.spec.dtype), form, params.reduced_rank <= 1},
         .grid = grid,
         .operands = {input(0, first), output(0), params.segments > 1 ? workspace() : nothing(),
                      cut_short ? extent() : nothing()},
         .after_previous = form == kJoin},
        params);
  };
  if (by_columns(axes)) {
    dispatch(kColumns, grid_of(params, cut_short, group_size, params.segments));
  } else {
    const std::uint64_t jobs = group_size / kLanes;
    ReduceParams of_jobs = params;  // a job is a segment of an output
    of_jobs.outputs *= params.segments;
    of_jobs.outputs_per_leading *= params.segments;
    dispatch(kRows, grid_of(of_jobs, cut_short, jobs, 1));
  }
  if (params.segments > 1) dispatch(kJoin, grid_of(params, cut_short, group_size, 1));
  return maker.finish();
}

}  // namespace heddle::vulkan
