// selective_scan.
#include <fmt/format.h>

#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

struct ScanParams {
  std::uint32_t batch, steps, features, groups, width;
};

}  // namespace

Prepared prepare_selective_scan(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (is_contiguous(input)) continue;
    return refuse(
        fmt::format("selective_scan: operands must be contiguous, one is {}", to_string(input)));
  }
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  const Shape &x = args.inputs[0].spec.shape, &b = args.inputs[3].spec.shape;
  const bool has_d = std::get<SelectiveScan>(args.op).has_d;
  for (const std::int64_t extent : {x[0], x[1], x[2], b[2], b[3]}) {
    if (extent <= kMost) continue;
    return refuse(fmt::format("selective_scan: an extent of {}, at most {}", extent, kMost));
  }
  if (x[0] * x[2] > kMost) {
    return refuse(fmt::format("selective_scan: {} batch entries of {} features; at most {} in all",
                              x[0], x[2], kMost));
  }
  const auto number = [](std::int64_t extent) { return static_cast<std::uint32_t>(extent); };
  const std::size_t state = 5 + std::size_t{has_d};
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  maker.traits.aliases = {{0, 0, false}, {0, 1, false}, {1, state, false}};
  if (x[0] * x[2] == 0) return maker.finish();
  const std::uint32_t group = walk_group(args.limits);
  maker.dispatch(
      {.shader = "selective_scan",
       .group_size = group,
       .constants = {has_d},
       .grid = grid_of_rows(number(x[0]), number(x[2]), group),
       .operands = {input(0), input(1), input(2), input(3), input(4), has_d ? input(5) : nothing(),
                    input(state), output(0), output(1), extent()}},
      ScanParams{number(x[0]), number(x[1]), number(x[2]), number(b[2]), number(b[3])});
  return maker.finish();
}

}  // namespace heddle::vulkan
