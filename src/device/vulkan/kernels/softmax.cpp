#include "device/vulkan/kernels/softmax.h"

#include "device/vulkan/kernels/row_groups.h"

namespace heddle::vulkan {

namespace {

struct SoftmaxParams {
  std::uint32_t rows, width, rows_per_leading;
};

}  // namespace

Prepared prepare_softmax(const PrepareArgs& args) {
  const RowCount count(args.inputs[0].spec.shape);
  const DType dtype = args.inputs[0].spec.dtype;
  if (std::string problem = row_problem(args, count, true); !problem.empty()) {
    return refuse(problem);
  }
  if (dtype == DType::f64 && !args.limits.float64) {
    return refuse("softmax: the device has no f64 arithmetic");
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = count.has_leading;
  allow_rows_in_place(args, maker.traits, 0, 1);
  if (count.empty()) return maker.finish();

  KernelMaker::Launch launch{.shader = "softmax_f64",
                             .group_size = row_group_size(count.width, args.limits),
                             .constants = {},
                             .grid = count.grid(),
                             .operands = {input(0), output(0), count.extent_operand()}};
  if (dtype != DType::f64) {
    launch.shader = "softmax";
    launch.constants = {static_cast<std::uint32_t>(dtype)};
  }
  maker.dispatch(std::move(launch), SoftmaxParams{static_cast<std::uint32_t>(count.rows),
                                                  static_cast<std::uint32_t>(count.width),
                                                  static_cast<std::uint32_t>(count.per_leading)});
  return maker.finish();
}

}  // namespace heddle::vulkan
