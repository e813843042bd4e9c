// Rows of conformance tests on Vulkan, and what it has no kernels for.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "device/on_device.h"
#include "device/vulkan/vulkan_device.h"

namespace heddle::test {

namespace {

/// Complex numbers are moved and cast, not computed on.
bool computes_on_complex(const Op& op, DType dtype) {
  return dtype == DType::complex64 &&
         (std::holds_alternative<Unary>(op) || std::holds_alternative<Binary>(op) ||
          std::holds_alternative<Compare>(op));
}

/// Of block types only q8_0 is made, and not from f64.
bool quantises(const Op& op, const std::vector<Tensor>& inputs) {
  if (!writes_state(op) || std::holds_alternative<Feed>(op)) return false;
  const DType to = inputs[0].operand.spec.dtype, from = inputs[1].operand.spec.dtype;
  return is_block(to) && to != from && (to != DType::q8_0 || from == DType::f64);
}

/// Interpolating doubles, convolutions that are lowered, and state spaces of no states or of more
/// than a lane holds.
bool is_beyond_kernels(const Op& op, const std::vector<Tensor>& inputs) {
  if (const auto* resize = std::get_if<Resize>(&op)) {
    return resize->kind == ResizeKind::linear && inputs[0].operand.spec.dtype == DType::f64;
  }
  if (const auto* conv = std::get_if<Conv>(&op)) return conv->groups == 1;
  if (!std::holds_alternative<SelectiveScan>(op)) return false;
  const std::int64_t states = inputs[2].operand.spec.shape[1];
  return states == 0 || states > 64;
}

bool lacks_shader(const Op& op) {
  if (const auto* unary = std::get_if<Unary>(&op)) return unary->kind > UnaryKind::isfinite;
  const auto* reduce = std::get_if<Reduce>(&op);
  return reduce && (reduce->kind == ReduceKind::all || reduce->kind == ReduceKind::any);
}

bool may_refuse(const Op& op, const std::vector<Tensor>& inputs) {
  if (lacks_shader(op)) return true;
  const auto has = [&](const auto& property) { return std::ranges::any_of(inputs, property); };
  const auto packed = [](const Tensor& x) { return x.operand.layout.kind != LayoutKind::strided; };
  const auto strided = [](const Tensor& x) { return !is_contiguous(x.operand); };
  if (has(packed) || quantises(op, inputs) || is_beyond_kernels(op, inputs)) return true;
  if (std::holds_alternative<RopeTable>(op) && has(strided)) return true;
  return !inputs.empty() && computes_on_complex(op, inputs[0].operand.spec.dtype);
}

// ---- The same hardware without optional features

Device* minimal_device() {
  if (!vulkan_device()) return nullptr;
  static const std::unique_ptr<Device> device = own_vulkan_device({.minimal = true});
  return device.get();
}

/// It stores no items of 8 and 16 bits, and knows no doubles, in which integers are averaged.
bool minimal_may_refuse(const Op& op, const std::vector<Tensor>& inputs) {
  const auto lacking = [](const TensorSpec& spec) {
    return info(spec.dtype).block_bytes % 4 != 0 || spec.dtype == DType::f64;
  };
  std::vector<TensorSpec> specs;
  for (const Tensor& input : inputs) specs.push_back(input.operand.spec);
  const bool doubles =
      std::ranges::any_of(specs, [](const TensorSpec& x) { return x.dtype == DType::f64; });
  const auto* arange = std::get_if<Arange>(&op);
  const bool fractions = arange && arange->step != std::trunc(arange->step);
  const auto* reduce = std::get_if<Reduce>(&op);
  const bool divides = reduce && reduce->kind == ReduceKind::mean && !is_floating(specs[0].dtype);
  const bool moves_narrow =
      std::holds_alternative<Reinterpret>(op) && std::ranges::any_of(specs, lacking);
  return may_refuse(op, inputs) || doubles || fractions || divides || moves_narrow ||
         std::ranges::any_of(infer(op, specs), lacking);
}

}  // namespace

std::vector<Subject> subjects() {
  const bool sampled = std::getenv("EVERY_CASE") == nullptr;
  return {{"vulkan", vulkan_device, sampled, 1, may_refuse},
          {"vulkan_minimal", minimal_device, sampled, 1, minimal_may_refuse}};
}

}  // namespace heddle::test
