#include "device/vulkan/kernel.h"

#include "base/check.h"

namespace heddle::vulkan {

void KernelMaker::add(Launch launch, std::vector<std::byte> params) {
  const std::uint64_t axis = args_.limits.max_groups;
  const std::uint64_t groups = launch.grid.groups;
  require(groups < (std::uint64_t{1} << 32) && groups / axis / axis <= axis, ErrorCode::unsupported,
          "{} workgroups; the device counts {} along each of three axes, and heddle to 2^32",
          groups, axis);
  auto pipeline = args_.pipelines.get(launch.shader, launch.group_size, launch.constants,
                                      launch.operands.size(), params.size());
  dispatches_.push_back({std::move(pipeline), launch.grid, std::move(launch.operands),
                         std::move(params), launch.after_previous});
}

std::string KernelMaker::label() const {
  std::string label(name(args_.op));
  for (const OperandSpec& input : args_.inputs) {
    label += (&input == args_.inputs.data() ? "(" : ", ") + to_string(input.spec);
  }
  if (!args_.inputs.empty()) label += ")";
  return label;
}

}  // namespace heddle::vulkan
