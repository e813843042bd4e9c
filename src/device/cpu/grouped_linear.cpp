// Linear with weights that each row chooses for itself: a mixture's experts.
//
// Rows are computed by the loops that serve linear on weights as they lie (products' and quant's
// dots), so that they get the same bits. Neighbours of one expert share its reading.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/forms.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kTokensAtOnce = kMostTileRows;

struct GroupedPlan {
  std::int64_t tokens = 0, depth = 0, columns = 0, experts = 0;
  std::size_t row_bytes = 0;
  void (*product)(const ProductJob&) = nullptr;                        // of float types
  void (*dots)(const QuantJob&) = nullptr;                             // of block types
  void (*round)(const float*, std::int64_t, RoundedBlock&) = nullptr;  // with `dots`
  const RoundedProducts* rounded = nullptr;  // with `product`, where HEDDLE_MATMUL asks for it

  std::size_t workspace_bytes() const {
    if (rounded) return static_cast<std::size_t>(tokens * rounded->x_stride(depth)) * sizeof(float);
    return dots ? static_cast<std::size_t>(tokens * rounded_blocks(depth)) * sizeof(RoundedBlock)
                : 0;
  }

  void run(const Launch& launch) const {
    const std::int64_t count = launch.extent < 0 ? tokens : std::min(tokens, launch.extent);
    if (dots) round_to_blocks(launch, count);
    if (rounded) round_to_bf16(launch, count);
    const std::int64_t chunks = (count + kTokensAtOnce - 1) / kTokensAtOnce;
    const std::int64_t groups = (columns + kGroupColumns - 1) / kGroupColumns;
    parallel(launch.team, groups * chunks, row_grain(kGroupColumns * depth / 8),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t first = i % chunks * kTokensAtOnce;
                 compute(launch, first, std::min(count, first + kTokensAtOnce),
                         i / chunks * kGroupColumns);
               }
             });
  }

 private:
  void round_to_bf16(const Launch& launch, std::int64_t count) const {
    parallel(launch.team, count, row_grain(depth), [&](std::int64_t begin, std::int64_t end) {
      auto* rows = reinterpret_cast<float*>(launch.workspace);
      for (std::int64_t t = begin; t < end; ++t) {
        rounded->round(launch.inputs[0].as<float>() + t * depth, depth,
                       rows + t * rounded->x_stride(depth));
      }
    });
  }

  void round_to_blocks(const Launch& launch, std::int64_t count) const {
    const std::int64_t blocks = rounded_blocks(depth);
    parallel(launch.team, count * blocks, row_grain(kRoundedElements),
             [&](std::int64_t begin, std::int64_t end) {
               auto* to = reinterpret_cast<RoundedBlock*>(launch.workspace);
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t first = i % blocks * kRoundedElements;
                 round(launch.inputs[0].as<float>() + i / blocks * depth + first,
                       std::min<std::int64_t>(kRoundedElements, depth - first), to[i]);
               }
             });
  }

  /// A group of columns of tokens [begin, end), by runs of one expert.
  void compute(const Launch& launch, std::int64_t begin, std::int64_t end,
               std::int64_t column) const {
    const auto* expert = launch.inputs[2].as<std::int32_t>();
    for (std::int64_t t = begin; t < end;) {
      std::int64_t next = t + 1;
      while (next < end && expert[next] == expert[t]) ++next;
      require(expert[t] >= -1 && expert[t] < experts, ErrorCode::invalid_argument,
              "grouped_linear: expert {} of row {} is outside [-1, {})", expert[t], t, experts);
      compute_run(launch, t, next - t, expert[t], column);
      t = next;
    }
  }

  void compute_run(const Launch& launch, std::int64_t first, std::int64_t rows, std::int64_t expert,
                   std::int64_t column) const {
    const std::int64_t width = std::min(kGroupColumns, columns - column);
    float* out = launch.outputs[0].as<float>() + first * columns + column;
    if (expert < 0) {
      for (std::int64_t r = 0; r < rows; ++r) std::fill_n(out + r * columns, width, 0.0f);
      return;
    }
    const std::byte* weights =
        launch.inputs[1].data + static_cast<std::size_t>(expert * columns + column) * row_bytes;
    if (dots) {
      const auto* x =
          reinterpret_cast<const RoundedBlock*>(launch.workspace) + first * rounded_blocks(depth);
      return dots({x, rows, weights, depth, width, out, columns});
    }
    const std::int64_t x_stride = rounded ? rounded->x_stride(depth) : depth;
    const float* x =
        rounded ? reinterpret_cast<const float*>(launch.workspace) : launch.inputs[0].as<float>();
    product({.x = x + first * x_stride,
             .x_stride = x_stride,
             .rows = rows,
             .weights = weights,
             .depth = depth,
             .columns = width,
             .out = out,
             .out_stride = columns});
  }
};

}  // namespace

Prepared prepare_grouped_linear(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const TensorSpec &x = args.inputs[0].spec, &weights = args.inputs[1].spec;
  GroupedPlan plan{.tokens = x.shape[0],
                   .depth = x.shape[1],
                   .columns = weights.shape[1],
                   .experts = weights.shape[0],
                   .row_bytes = row_bytes(weights.dtype, weights.shape[2])};
  const LinearForms forms = linear_forms();
  if (const auto stored = stored_type(weights.dtype)) {
    const auto type = static_cast<std::size_t>(*stored);
    plan.rounded = forms.rounded;
    plan.product = forms.rounded ? forms.rounded->dots[type] : forms.exact->dots[type];
  } else if (const auto blocks = quant_type(weights.dtype)) {
    plan.dots = forms.blocks->dots[*blocks];
    plan.round = forms.blocks->round;
  } else {
    return refuse(
        fmt::format("grouped_linear: weights of {} have no kernel", to_string(weights.dtype)));
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  traits.workspace_bytes = plan.workspace_bytes();
  return make_kernel(std::move(traits), [plan](const Launch& launch) { plan.run(launch); });
}

}  // namespace heddle::cpu
