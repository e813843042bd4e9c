// Windows laid out side by side, convolution, pooling and resizing of channels-last tensors.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "device/vulkan/kernel.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::size_t kAxes = 3;
constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;
using Counts = std::array<std::uint32_t, kAxes>;
using Numbers = std::array<std::int32_t, kAxes>;

struct SpatialParams {  // spatial.glsl's
  std::uint32_t rows, per_row, channels, outputs, groups;
  Counts size, out_size, window;
  Numbers stride, low, kernel_dilation, input_dilation;
};

/// An op's entries for each spatial axis, where it has them.
struct Axes {
  Dims window, stride, low, kernel_dilation, input_dilation;
};

template <class T, class Values>
std::array<T, kAxes> behind(T before, const Values& values) {
  std::array<T, kAxes> all;
  all.fill(before);
  const std::size_t missing = kAxes - values.size();
  for (std::size_t i = 0; i < values.size(); ++i) all[missing + i] = static_cast<T>(values[i]);
  return all;
}

Dims spatial_of(const Shape& shape) {
  return Dims(std::span(shape.begin() + 1, shape.end() - 1));
}

SpatialParams params_of(const PrepareArgs& args, const Axes& axes) {
  const Shape &x = args.inputs[0].spec.shape, &out = args.outputs[0].spec.shape;
  SpatialParams params{};
  params.rows = static_cast<std::uint32_t>(out[0]);
  params.per_row = static_cast<std::uint32_t>(out[0] == 0 ? 0 : elements(out) / out[0]);
  params.channels = static_cast<std::uint32_t>(x.back());
  params.size = behind<std::uint32_t>(1, spatial_of(x));
  params.out_size = behind<std::uint32_t>(1, spatial_of(out));
  params.window = behind<std::uint32_t>(1, axes.window);
  params.stride = behind<std::int32_t>(1, axes.stride);
  params.low = behind<std::int32_t>(0, axes.low);
  params.kernel_dilation = behind<std::int32_t>(1, axes.kernel_dilation);
  params.input_dilation = behind<std::int32_t>(1, axes.input_dilation);
  return params;
}

/// Whether `a` times `b` is at most `most`; none is negative.
bool fits(std::int64_t a, std::int64_t b, std::int64_t most) {
  return b == 0 || a <= most / b;
}

std::string problem_of(const PrepareArgs& args, const Axes& axes) {
  const OperandSpec &x = args.inputs[0], &out = args.outputs[0];
  if (!is_contiguous(x) || is_block(x.spec.dtype)) {
    return fmt::format("{}: the operand must be contiguous and plain, not {}", name(args.op),
                       to_string(x));
  }
  if (std::string why = narrow_refusal(args, out.spec.dtype); !why.empty()) return why;
  if (elements(x.spec.shape) > kMostElements || elements(out.spec.shape) > kMostElements) {
    return fmt::format("{}: {} to {}, of at most {} elements each", name(args.op), to_string(x),
                       to_string(out), kMostElements);
  }
  constexpr std::int64_t kMostPlace = std::int64_t{1} << 29;  // a sum of three is an i32
  for (std::size_t i = 0; i < axes.stride.size(); ++i) {
    const auto dilation = [&](const Dims& of) { return of.empty() ? 1 : of[i]; };
    if (fits(axes.stride[i], out.spec.shape[i + 1], kMostPlace) &&
        fits(axes.window[i], dilation(axes.kernel_dilation), kMostPlace) &&
        std::abs(axes.low[i]) <= kMostPlace && dilation(axes.input_dilation) <= kMostPlace) {
      continue;
    }
    return fmt::format("{}: windows of spatial axis {} reach further than {}", name(args.op), i,
                       kMostPlace);
  }
  return {};
}

/// A lane an element of the output.
Prepared element_kernel(const PrepareArgs& args, const Axes& axes, std::string_view shader,
                        std::vector<std::uint32_t> constants) {
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  const SpatialParams params = params_of(args, axes);
  const std::uint32_t group = walk_group(args.limits);
  if (params.rows == 0 || params.per_row == 0) return maker.finish();
  maker.dispatch({.shader = shader,
                  .group_size = group,
                  .constants = std::move(constants),
                  .grid = grid_of_rows(params.rows, params.per_row, group),
                  .operands = {input(0), output(0), extent()}},
                 params);
  return maker.finish();
}

}  // namespace

Prepared prepare_im2col(const PrepareArgs& args) {
  const auto& op = std::get<Im2col>(args.op);
  const Windows& windows = op.windows;
  const Axes axes{op.window, windows.stride, windows.padding_low, windows.kernel_dilation,
                  windows.input_dilation};
  if (std::string problem = problem_of(args, axes); !problem.empty()) return refuse(problem);
  const auto bytes = static_cast<std::uint32_t>(item_size(args.inputs[0].spec.dtype));
  return element_kernel(args, axes, "im2col", {bytes});
}

Prepared prepare_pool(const PrepareArgs& args) {
  const auto& op = std::get<Pool>(args.op);
  const Axes axes{op.windows->window, op.windows->stride, op.windows->padding_low, {}, {}};
  if (std::string problem = problem_of(args, axes); !problem.empty()) return refuse(problem);
  const DType dtype = args.inputs[0].spec.dtype;
  if (dtype == DType::f64 && !args.limits.float64) {
    return refuse("pool: the device has no f64 arithmetic");
  }
  std::string_view shader = "pool_i32";
  if (is_floating(dtype)) shader = dtype == DType::f64 ? "pool_f64" : "pool_f32";
  if (dtype == DType::i64 || dtype == DType::u64) shader = "pool_i64";
  constexpr std::uint32_t kSum = 0, kMax = 2;  // accumulate.glsl's
  return element_kernel(args, axes, shader,
                        {op.kind == PoolKind::mean ? kSum : kMax, static_cast<std::uint32_t>(dtype),
                         static_cast<std::uint32_t>(item_size(dtype)), op.count_padding});
}

Prepared prepare_resize(const PrepareArgs& args) {
  const auto& op = std::get<Resize>(args.op);
  if (std::string problem = problem_of(args, {}); !problem.empty()) return refuse(problem);
  const DType dtype = args.inputs[0].spec.dtype;
  const bool linear = op.kind == ResizeKind::linear;
  if (linear && dtype == DType::f64) return refuse("resize: no linear one of f64");
  return element_kernel(args, {}, "resize",
                        {linear, static_cast<std::uint32_t>(dtype),
                         static_cast<std::uint32_t>(item_size(dtype)), op.align_corners});
}

namespace {

/// Why an im2col and a matmul serve better: matmul has tiles, where conv.comp has a lane an
/// output: without groups they take a quarter of its time (measured on Mesa's lavapipe, 3 by 3 taps
/// of 3 to 256 channels). Their columns must have room.
std::string lowering_reason(const PrepareArgs& args, const Conv& op) {
  constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  const Shape &w = args.inputs[1].spec.shape, &out = args.outputs[0].spec.shape;
  if (op.groups > 1 || elements(out) == 0 || elements(w) == 0) return {};
  const std::int64_t depth = elements(w) / w[0], positions = elements(out) / out.back();
  const auto item = static_cast<std::int64_t>(item_size(args.inputs[0].spec.dtype));
  const auto allowed =
      static_cast<std::int64_t>(std::min<std::uint64_t>(kMostBytes, args.limits.max_allocation));
  if (!fits(depth * item, positions, allowed)) return {};
  return fmt::format("conv: without groups, and with columns of at most {} bytes, it is a product",
                     allowed);
}

}  // namespace

Prepared prepare_conv(const PrepareArgs& args) {
  const auto& op = std::get<Conv>(args.op);
  const OperandSpec& weights = args.inputs[1];
  const Windows& windows = op.windows;
  const Axes axes{spatial_of(weights.spec.shape), windows.stride, windows.padding_low,
                  windows.kernel_dilation, windows.input_dilation};
  if (std::string problem = problem_of(args, axes); !problem.empty()) return refuse(problem);
  if (!is_contiguous(weights) || elements(weights.spec.shape) > kMostElements) {
    return refuse(fmt::format("conv: weights must be contiguous, of at most {} elements, not {}",
                              kMostElements, to_string(weights)));
  }
  if (std::string reason = lowering_reason(args, op); !reason.empty()) return refuse(reason);
  const DType dtype = weights.spec.dtype;
  if (dtype == DType::f64 && !args.limits.float64) {
    return refuse("conv: the device has no f64 arithmetic");
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  SpatialParams params = params_of(args, axes);
  params.outputs = static_cast<std::uint32_t>(weights.spec.shape[0]);
  params.groups = static_cast<std::uint32_t>(op.groups);
  const std::uint32_t group = walk_group(args.limits);
  if (params.rows == 0 || params.per_row == 0) return maker.finish();
  maker.dispatch({.shader = dtype == DType::f64 ? "conv_f64" : "conv",
                  .group_size = group,
                  .constants = {static_cast<std::uint32_t>(dtype), op.flip},
                  .grid = grid_of_rows(params.rows, params.per_row, group),
                  .operands = {input(0), input(1), output(0), extent()}},
                 params);
  return maker.finish();
}

}  // namespace heddle::vulkan
