#include "device/vulkan/kernels/row_groups.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "device/vulkan/kernels/walk.h"

namespace heddle::vulkan {

RowCount::RowCount(const Shape& shape) : has_leading(shape.size() > 1) {
  if (shape.empty()) return;
  width = static_cast<std::uint64_t>(shape.back());
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    rows *= static_cast<std::uint64_t>(shape[i]);
    if (i > 0) per_leading *= static_cast<std::uint64_t>(shape[i]);
  }
}

Grid RowCount::grid() const {
  if (!has_leading) return {.groups = rows};
  return {.groups = rows,
          .rows_per_step = 1,
          .groups_per_step = static_cast<std::uint32_t>(per_leading)};
}

std::string row_problem(const PrepareArgs& args, const RowCount& count, bool also_f64) {
  const auto suits = [&](const OperandSpec& operand) {
    const DType dtype = operand.spec.dtype;
    const bool typed = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
                       (also_f64 && dtype == DType::f64);
    return typed && is_contiguous(operand);
  };
  for (const OperandSpec& input : args.inputs) {
    if (suits(input)) continue;
    return fmt::format("{}: operands must be contiguous, of f32, f16{} bf16{}; one is {}",
                       name(args.op), also_f64 ? "," : " or", also_f64 ? " or f64" : "",
                       to_string(input));
  }
  for (const OperandSpec& output : args.outputs) {
    if (std::string why = narrow_refusal(args, output.spec.dtype); !why.empty()) return why;
  }
  constexpr std::uint64_t kMostWidth = (std::uint64_t{1} << 31) - 1, kMostRows = ~std::uint32_t{0};
  if (count.width > kMostWidth) {
    return fmt::format("{}: rows of {} elements, at most {}", name(args.op), count.width,
                       kMostWidth);
  }
  if (count.rows > kMostRows) {
    return fmt::format("{}: {} rows, at most {}", name(args.op), count.rows, kMostRows);
  }
  return {};
}

std::uint32_t row_group_size(std::uint64_t width, const Limits& limits) {
  constexpr std::uint64_t kElementsEach = 16, kMost = 256;
  const std::uint64_t wanted = std::bit_ceil(std::max<std::uint64_t>(1, width / kElementsEach));
  const std::uint64_t most = std::min<std::uint64_t>(kMost, limits.max_group_size);
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(limits.subgroup_size, std::min(wanted, std::bit_floor(most))));
}

NormParameters::NormParameters(const PrepareArgs& args, std::size_t first, bool has_weight,
                               bool has_bias) {
  std::size_t next = first;
  const auto take = [&](Address& address, std::uint32_t& type) {
    type = static_cast<std::uint32_t>(args.inputs[next].spec.dtype);
    address = input(next++);
  };
  if (has_weight) take(weight, weight_type);
  if (has_bias) take(bias, bias_type);
}

void allow_rows_in_place(const PrepareArgs& args, KernelTraits& traits, std::size_t output,
                         std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (args.inputs[i].spec == args.outputs[output].spec) traits.aliases.push_back({output, i});
  }
}

}  // namespace heddle::vulkan
