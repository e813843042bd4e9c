// Pad: what lies around a tensor.
#include <array>

#include <fmt/format.h>

#include "device/vulkan/kernel.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

struct PadParams {
  std::uint32_t count, rank;
  std::array<std::uint32_t, kMaxRank> extents, low, x_extents;
};

}  // namespace

Prepared prepare_pad(const PrepareArgs& args) {
  const auto& op = std::get<Pad>(args.op);
  for (const OperandSpec& input : args.inputs) {
    if (is_contiguous(input) && !is_block(input.spec.dtype)) continue;
    return refuse(
        fmt::format("pad: operands must be contiguous and plain, one is {}", to_string(input)));
  }
  const TensorSpec &x = args.inputs[0].spec, &out = args.outputs[0].spec;
  if (std::string why = narrow_refusal(args, out.dtype); !why.empty()) return refuse(why);
  constexpr std::int64_t kMost = ~std::uint32_t{0};
  if (elements(out.shape) > kMost) {
    return refuse(fmt::format("pad: {} elements, at most {}", elements(out.shape), kMost));
  }
  KernelMaker maker(args);
  PadParams params{};
  params.count = static_cast<std::uint32_t>(elements(out.shape));
  if (params.count == 0) return maker.finish();
  params.rank = static_cast<std::uint32_t>(out.shape.size());
  for (std::size_t i = 0; i < out.shape.size(); ++i) {
    params.extents[i] = static_cast<std::uint32_t>(out.shape[i]);
    params.low[i] = static_cast<std::uint32_t>(op.low[i]);
    params.x_extents[i] = static_cast<std::uint32_t>(x.shape[i]);
  }
  const bool nearest = op.mode == Pad::Mode::edge;
  const std::uint32_t group = walk_group(args.limits);
  maker.dispatch({.shader = "pad",
                  .group_size = group,
                  .constants = {static_cast<std::uint32_t>(item_size(x.dtype)), nearest},
                  .grid = {.groups = (std::uint64_t{params.count} + group - 1) / group},
                  .operands = {input(0), nearest ? nothing() : input(1), output(0)}},
                 params);
  return maker.finish();
}

}  // namespace heddle::vulkan
