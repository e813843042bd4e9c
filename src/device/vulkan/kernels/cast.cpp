// Conversion between plain dtypes, and from block types.
#include "base/check.h"
#include "device/strides.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::size_t kNumbers = 15;  // that the shader has room for

std::string refusal(const PrepareArgs& args, DType from, DType to) {
  if (std::string packed = packed_refusal(args); !packed.empty()) return packed;
  if (is_block(to)) return fmt::format("cast: to the block type {}", to_string(to));
  if ((from == DType::f64 || to == DType::f64) && !args.limits.float64) {
    return fmt::format("cast: from {} to {}, on a device without 64-bit floats", to_string(from),
                       to_string(to));
  }
  return narrow_refusal(args, to);
}

}  // namespace

Prepared prepare_cast(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  const DType from = x.spec.dtype, to = std::get<Cast>(args.op).dtype;
  if (std::string reason = refusal(args, from, to); !reason.empty()) return refuse(reason);
  const Items items = as_items(x);
  Walk walk = make_walk("cast", items.shape, std::span(&items.strides, 1), kNumbers);
  const auto per_item = static_cast<std::uint32_t>(info(from).block_elements);
  walk.share_items(per_item);
  if (!walk.refusal.empty()) return refuse(walk.refusal);

  KernelMaker maker(args);
  maker.traits.honours_extent = !x.spec.shape.empty();
  const bool same_size = items.bytes == item_size(to) && !is_block(from);
  if (same_size && is_contiguous(x)) maker.traits.aliases.push_back({0, 0, false});
  if (walk.count() == 0) return maker.finish();
  const bool doubles = from == DType::f64 || to == DType::f64;
  maker.dispatch({doubles ? "cast_f64" : "cast",
                  walk_group(args.limits),
                  {walk.rank(), static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to),
                   per_item, static_cast<std::uint32_t>(items.bytes)},
                  grid_of(walk, maker.traits.honours_extent, args.limits),
                  {input(0, walk.first[0] * items.bytes), output(0),
                   maker.traits.honours_extent ? extent() : nothing()}},
                 walk_params<kNumbers>(walk));
  return maker.finish();
}

}  // namespace heddle::vulkan
