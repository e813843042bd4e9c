// group_norm: over all positions and some channels of each batch entry.
#include <fmt/format.h>

#include "device/vulkan/kernels/row_groups.h"

namespace heddle::vulkan {

namespace {

struct GroupNormParams {
  std::uint32_t rows, groups, positions, channels;
  float eps;
};

}  // namespace

Prepared prepare_group_norm(const PrepareArgs& args) {
  const auto& op = std::get<GroupNorm>(args.op);
  const Shape& shape = args.inputs[0].spec.shape;
  const RowCount count(shape);
  if (std::string problem = row_problem(args, count); !problem.empty()) return refuse(problem);
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
  const auto rows = static_cast<std::uint64_t>(shape[0]);
  const auto groups = static_cast<std::uint64_t>(op.groups);
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  allow_rows_in_place(args, maker.traits, 0, 1);
  if (count.empty()) return maker.finish();
  const std::uint64_t positions = count.rows / rows, each = count.width / groups;
  if (positions * each > kMost || rows * groups > kMost) {
    return refuse(fmt::format("group_norm: {} groups of {} elements, at most {} of either",
                              rows * groups, positions * each, kMost));
  }
  const NormParameters parameters(args, 1, op.has_weight, op.has_bias);
  maker.dispatch(
      {.shader = "group_norm",
       .group_size = row_group_size(positions * each, args.limits),
       .constants = {static_cast<std::uint32_t>(args.inputs[0].spec.dtype), parameters.weight_type,
                     parameters.bias_type},
       .grid = {.groups = rows * groups,
                .rows_per_step = 1,
                .groups_per_step = static_cast<std::uint32_t>(groups)},
       .operands = {input(0), parameters.weight, parameters.bias, output(0), extent()}},
      GroupNormParams{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(groups),
                      static_cast<std::uint32_t>(positions),
                      static_cast<std::uint32_t>(count.width), op.eps});
  return maker.finish();
}

}  // namespace heddle::vulkan
