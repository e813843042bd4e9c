// channel_norm and group_norm, for f32, f16 and bf16.
#include <algorithm>

#include <fmt/format.h>

#include "device/vulkan/kernels/row_groups.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::uint32_t kNoOperand = 255;
constexpr std::uint64_t kMostBlock = (std::uint64_t{1} << 31) - 1, kMostLines = ~std::uint32_t{0};

/// Weight and bias, which follow x among the inputs.
struct Parameters {
  Address operands[2] = {nothing(), nothing()};
  std::uint32_t types[2] = {kNoOperand, kNoOperand};

  Parameters(const PrepareArgs& args, bool has_weight, bool has_bias) {
    std::size_t next = 1;
    for (const int i : {0, 1}) {
      if (!(i == 0 ? has_weight : has_bias)) continue;
      types[i] = static_cast<std::uint32_t>(args.inputs[next].spec.dtype);
      operands[i] = input(next++);
    }
  }
};

std::uint64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::uint64_t count = 1;
  for (std::size_t i = first; i < last; ++i) count *= static_cast<std::uint64_t>(shape[i]);
  return count;
}

/// `block`: elements that a shader counts with 32 bits, and reads around one address.
std::string size_refusal(const PrepareArgs& args, std::uint64_t block, std::uint64_t lines) {
  if (block <= kMostBlock && lines <= kMostLines) return {};
  return fmt::format("{}: {} lines, in blocks of {} elements; at most {} and {}", name(args.op),
                     lines, block, kMostLines, kMostBlock);
}

struct ChannelParams {
  std::uint32_t outer, channels, inner, outer_per_leading;
  float eps;
};

Prepared prepare_lines(const PrepareArgs& args, const ChannelNorm& op) {
  const Shape& shape = args.inputs[0].spec.shape;
  const auto axis = static_cast<std::size_t>(op.axis);
  const std::uint64_t outer = product(shape, 0, axis), length = product(shape, axis, axis + 1),
                      inner = product(shape, axis + 1, shape.size());
  const std::uint64_t lines = outer * inner;
  if (std::string why = size_refusal(args, length * inner, lines); !why.empty()) return refuse(why);
  KernelMaker maker(args);
  const bool honours = maker.traits.honours_extent = axis > 0;
  allow_rows_in_place(args, maker.traits, 0, 1);
  if (lines * length == 0) return maker.finish();
  const Parameters parameters(args, op.has_weight, op.has_bias);
  const std::uint64_t per_leading = honours ? outer / static_cast<std::uint64_t>(shape[0]) : 0;
  const std::uint32_t group = walk_group(args.limits);
  Grid grid{.groups = (lines + group - 1) / group};
  if (honours) {
    grid = grid_of_rows(static_cast<std::uint32_t>(shape[0]),
                        static_cast<std::uint32_t>(per_leading * inner), group);
  }
  maker.dispatch(
      {.shader = "channel_norm",
       .group_size = group,
       .constants = {static_cast<std::uint32_t>(args.inputs[0].spec.dtype), parameters.types[0],
                     parameters.types[1]},
       .grid = grid,
       .operands = {input(0), parameters.operands[0], parameters.operands[1], output(0),
                    honours ? extent() : nothing()}},
      ChannelParams{static_cast<std::uint32_t>(outer), static_cast<std::uint32_t>(length),
                    static_cast<std::uint32_t>(inner), static_cast<std::uint32_t>(per_leading),
                    op.eps});
  return maker.finish();
}

struct GroupParams {
  std::uint32_t batch, positions, channels, groups;
  float eps;
};

Prepared prepare_groups(const PrepareArgs& args, const GroupNorm& op) {
  const Shape& shape = args.inputs[0].spec.shape;
  const std::uint64_t batch = product(shape, 0, 1), positions = product(shape, 1, shape.size() - 1),
                      channels = product(shape, shape.size() - 1, shape.size());
  const auto groups = static_cast<std::uint64_t>(op.groups);
  if (std::string why = size_refusal(args, positions * channels, batch * groups); !why.empty()) {
    return refuse(why);
  }
  KernelMaker maker(args);
  maker.traits.honours_extent = true;
  allow_rows_in_place(args, maker.traits, 0, 1);
  if (batch * positions * channels == 0) return maker.finish();
  const Parameters parameters(args, op.has_weight, op.has_bias);
  maker.dispatch(
      {.shader = "group_norm",
       .group_size = row_group_size(positions * channels / groups, args.limits),
       .constants = {static_cast<std::uint32_t>(args.inputs[0].spec.dtype), parameters.types[0],
                     parameters.types[1]},
       .grid = {.groups = batch * groups,
                .rows_per_step = 1,
                .groups_per_step = static_cast<std::uint32_t>(groups)},
       .operands = {input(0), parameters.operands[0], parameters.operands[1], output(0), extent()}},
      GroupParams{static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(positions),
                  static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(groups),
                  op.eps});
  return maker.finish();
}

}  // namespace

Prepared prepare_channel_norm(const PrepareArgs& args) {
  if (std::string why = row_problem(args, RowCount(args.inputs[0].spec.shape)); !why.empty()) {
    return refuse(why);
  }
  if (const auto* op = std::get_if<ChannelNorm>(&args.op)) return prepare_lines(args, *op);
  return prepare_groups(args, std::get<GroupNorm>(args.op));
}

}  // namespace heddle::vulkan
