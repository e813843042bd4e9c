// Attention over dense operands.
#include <algorithm>
#include <array>
#include <numbers>

#include <fmt/format.h>

#include "device/vulkan/kernel.h"
#include "device/vulkan/kernels/attention_tile.h"
#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

namespace {

constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
using Strides = std::array<std::uint32_t, 3>;

struct AttentionParams {
  std::uint32_t heads, kv_heads, queries, positions, tiles, window;
  float scale;
  Strides q, k, v, out;
  std::array<std::uint32_t, 4> mask;
};

struct Sizes {
  std::int64_t batch, heads, kv_heads, queries, positions, features, value_features;
  std::int64_t group() const { return heads / kv_heads; }
};

Sizes sizes_of(const PrepareArgs& args, const Attention& op) {
  const Shape &q = args.inputs[0].spec.shape, &k = args.inputs[1].spec.shape;
  const std::size_t head = op.sequence_first ? 2 : 1, row = op.sequence_first ? 1 : 2;
  return {q[0], q[head], k[head], q[row], k[row], q[3], args.inputs[2].spec.shape[3]};
}

/// Of a batch entry, a head and a row, whichever order the axes have.
Strides strides_of(const OperandSpec& operand, bool sequence_first) {
  const Dims& strides = operand.layout.strides;
  const auto at = [&](std::size_t axis) {
    return operand.spec.shape[axis] > 1 ? static_cast<std::uint32_t>(strides[axis]) : 0;
  };
  return {at(0), at(sequence_first ? 2 : 1), at(sequence_first ? 1 : 2)};
}

/// Of the mask, broadcast to [batch, heads, queries, positions].
std::array<std::uint32_t, 4> mask_strides(const OperandSpec& mask) {
  std::array<std::uint32_t, 4> strides{};
  const std::size_t missing = 4 - mask.spec.shape.size();
  for (std::size_t axis = missing; axis < 4; ++axis) {
    if (mask.spec.shape[axis - missing] == 1) continue;
    strides[axis] = static_cast<std::uint32_t>(mask.layout.strides[axis - missing]);
  }
  return strides;
}

std::string operand_problem(const OperandSpec& operand) {
  for (std::size_t i = 0; i < operand.spec.shape.size(); ++i) {
    const std::int64_t extent = operand.spec.shape[i], stride = operand.layout.strides[i];
    if (extent > kMost || (extent > 1 && (stride < 0 || stride > kMost))) {
      return fmt::format("attention: extents and strides must lie in [0, {}], of {}", kMost,
                         to_string(operand));
    }
  }
  return {};
}

std::string problem_of(const PrepareArgs& args, const Attention& op) {
  if (op.has_sinks) return "attention: no kernel takes sinks";
  if (std::string why = packed_refusal(args); !why.empty()) return why;
  if (std::string why = narrow_refusal(args, args.outputs[0].spec.dtype); !why.empty()) return why;
  for (const OperandSpec& input : args.inputs) {
    if (std::string why = operand_problem(input); !why.empty()) return why;
  }
  for (const OperandSpec& operand : args.inputs.first(3)) {
    const DType dtype = operand.spec.dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
      return fmt::format("attention: operands of {} have no kernel", to_string(dtype));
    }
    if (operand.spec.shape[3] > 1 && operand.layout.strides[3] != 1) {
      return fmt::format("attention: the features of {} must be adjacent", to_string(operand));
    }
  }
  if (op.mask == Attention::Mask::additive) {
    const DType dtype = args.inputs[3].spec.dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
      return fmt::format("attention: no kernel takes an additive mask of {}", to_string(dtype));
    }
  }
  const Sizes sizes = sizes_of(args, op);
  if (sizes.queries * std::max<std::int64_t>(1, sizes.heads) > kMost) {
    return fmt::format("attention: {} queries of {} heads, at most {} in all", sizes.queries,
                       sizes.heads, kMost);
  }
  if (sizes.positions + sizes.queries > kMost) {
    return fmt::format("attention: {} positions and {} queries, at most {} in all", sizes.positions,
                       sizes.queries, kMost);
  }
  return {};
}

/// Whether every head is some fours of features and begins at a multiple of 8 bytes, if the operand
/// does.
bool in_fours(const OperandSpec& operand, const Strides& strides) {
  const auto even = [](std::int64_t n) { return n % 4 == 0; };
  return even(operand.spec.shape[3]) && std::all_of(strides.begin(), strides.end(), even);
}

AttentionParams params_of(const PrepareArgs& args, const Attention& op, const Sizes& sizes,
                          std::int64_t rows_a_tile) {
  const auto narrow = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  AttentionParams params{};
  params.heads = narrow(sizes.heads), params.kv_heads = narrow(sizes.kv_heads);
  params.queries = narrow(sizes.queries), params.positions = narrow(sizes.positions);
  params.tiles = narrow((sizes.queries * sizes.group() + rows_a_tile - 1) / rows_a_tile);
  params.window = narrow(std::min(op.window, kMost));
  params.scale = static_cast<float>(static_cast<double>(op.scale) * std::numbers::log2e);
  params.q = strides_of(args.inputs[0], op.sequence_first);
  params.k = strides_of(args.inputs[1], op.sequence_first);
  params.v = strides_of(args.inputs[2], op.sequence_first);
  params.out = strides_of(args.outputs[0], op.sequence_first);
  if (args.inputs.size() > 3) params.mask = mask_strides(args.inputs[3]);
  return params;
}

}  // namespace

Prepared prepare_attention(const PrepareArgs& args) {
  const auto& op = std::get<Attention>(args.op);
  if (std::string problem = problem_of(args, op); !problem.empty()) return refuse(problem);
  const Sizes sizes = sizes_of(args, op);
  const AttentionTile tile =
      attention_tile(sizes.features, sizes.value_features,
                     sizes.queries * std::max<std::int64_t>(1, sizes.group()), args.limits);
  if (!tile.problem.empty()) return refuse("attention: " + tile.problem);

  KernelMaker maker(args);
  if (elements(args.outputs[0].spec.shape) == 0) return maker.finish();
  const AttentionParams params = params_of(args, op, sizes, tile.rows());
  const std::uint64_t heads = static_cast<std::uint64_t>(sizes.batch * sizes.kv_heads);
  if (heads > ~std::uint32_t{0} / params.tiles) {
    return refuse(fmt::format("attention: {} tiles of {} heads, at most {} in all", params.tiles,
                              heads, ~std::uint32_t{0}));
  }
  const bool masked = args.inputs.size() > 3;
  const DType mask = masked ? args.inputs[3].spec.dtype : DType::f32;
  maker.dispatch(
      {.shader = "attention",
       .group_size = tile.group_size,
       .constants = {static_cast<std::uint32_t>(sizes.features),
                     static_cast<std::uint32_t>(sizes.value_features),
                     static_cast<std::uint32_t>(args.inputs[0].spec.dtype), tile.row_vectors,
                     tile.lane_positions, in_fours(args.inputs[1], params.k),
                     in_fours(args.inputs[2], params.v), static_cast<std::uint32_t>(op.mask),
                     static_cast<std::uint32_t>(mask)},
       .grid = {.groups = heads * params.tiles},
       .operands = {input(0), input(1), input(2), masked ? input(3) : nothing(), output(0)}},
      params);
  return maker.finish();
}

}  // namespace heddle::vulkan
