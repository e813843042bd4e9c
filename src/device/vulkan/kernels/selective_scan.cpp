// A selective state space (Mamba).
#include <fmt/format.h>

#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

namespace {

struct SelectiveScanParams {
  std::uint32_t batch, steps, features, groups;
};

}  // namespace

Prepared prepare_selective_scan(const PrepareArgs& args) {
  const auto& op = std::get<SelectiveScan>(args.op);
  for (const OperandSpec& input : args.inputs) {
    if (is_contiguous(input)) continue;
    return refuse(
        fmt::format("selective_scan: operands must be contiguous, one is {}", to_string(input)));
  }
  constexpr std::int64_t kMostStates = 64;  // a lane holds them all
  const Shape &x = args.inputs[0].spec.shape, &b = args.inputs[3].spec.shape;
  if (b[3] > kMostStates) {
    return refuse(fmt::format("selective_scan: {} states, at most {}", b[3], kMostStates));
  }
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  for (const std::int64_t count : {x[0] * x[2], x[1], b[2]}) {
    if (count > kMost) {
      return refuse(fmt::format("selective_scan: {} of x {}, at most {}", count,
                                to_string(args.inputs[0]), kMost));
    }
  }
  KernelMaker maker(args);
  const std::size_t state = op.has_d ? 6 : 5;
  maker.traits.aliases.push_back({1, state});
  const auto narrow = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  const SelectiveScanParams params{narrow(x[0]), narrow(x[1]), narrow(x[2]), narrow(b[2])};
  const std::uint64_t lanes = std::uint64_t{params.batch} * params.features;
  if (lanes == 0) return maker.finish();
  if (b[3] == 0) return refuse("selective_scan: there are no states");
  const std::uint32_t group = std::max<std::uint32_t>(32, args.limits.subgroup_size);
  maker.dispatch(
      {.shader = "selective_scan",
       .group_size = group,
       .constants = {narrow(b[3]), op.has_d},
       .grid = {.groups = (lanes + group - 1) / group},
       .operands = {input(0), input(1), input(2), input(3), input(4),
                    op.has_d ? input(5) : nothing(), input(state), output(0), output(1)}},
      params);
  return maker.finish();
}

}  // namespace heddle::vulkan
