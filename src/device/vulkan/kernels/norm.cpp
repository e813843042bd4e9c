// rms_norm, add_rms_norm and layer_norm over the last axis, for f32, f16 and bf16.
#include "device/vulkan/kernels/row_groups.h"

namespace heddle::vulkan {

namespace {

struct NormParams {
  std::uint32_t rows, width, rows_per_leading;
  float eps;
};

enum NormKind : std::uint32_t { kRms, kAddRms, kLayer };

struct Norm {
  NormKind kind;
  float eps;
  bool has_weight, has_bias;
  std::size_t first_parameter;  // among the inputs
};

Norm norm_of(const Op& op) {
  if (const auto* rms = std::get_if<RmsNorm>(&op)) {
    return {kRms, rms->eps, rms->has_weight, rms->has_bias, 1};
  }
  if (const auto* layer = std::get_if<LayerNorm>(&op)) {
    return {kLayer, layer->eps, layer->has_weight, layer->has_bias, 1};
  }
  const auto& add = std::get<AddRmsNorm>(op);
  return {kAddRms, add.eps, add.has_weight, add.has_bias, 2};
}

}  // namespace

Prepared prepare_norm(const PrepareArgs& args) {
  const Norm norm = norm_of(args.op);
  const RowCount count(args.inputs[0].spec.shape);
  if (std::string problem = row_problem(args, count); !problem.empty()) return refuse(problem);
  KernelMaker maker(args);
  maker.traits.honours_extent = count.has_leading;
  allow_rows_in_place(args, maker.traits, 0, norm.first_parameter);
  if (norm.kind == kAddRms) allow_rows_in_place(args, maker.traits, 1, norm.first_parameter);
  if (count.empty()) return maker.finish();

  const NormParameters parameters(args, norm.first_parameter, norm.has_weight, norm.has_bias);
  const bool adds = norm.kind == kAddRms;
  maker.dispatch(
      {.shader = "norm",
       .group_size = row_group_size(count.width, args.limits),
       .constants = {norm.kind, static_cast<std::uint32_t>(args.inputs[0].spec.dtype),
                     parameters.weight_type, parameters.bias_type},
       .grid = count.grid(),
       .operands = {input(0), adds ? input(1) : nothing(), parameters.weight, parameters.bias,
                    output(adds ? 1 : 0), adds ? output(0) : nothing(), count.extent_operand()}},
      NormParams{static_cast<std::uint32_t>(count.rows), static_cast<std::uint32_t>(count.width),
                 static_cast<std::uint32_t>(count.per_leading), norm.eps});
  return maker.finish();
}

}  // namespace heddle::vulkan
