#include "device/cpu/group_rows.h"

#include <fmt/format.h>

#include "device/cpu/products.h"

namespace heddle::cpu {

namespace {

GroupScale group_scale(const GroupFormat& format, DType scales) {
  if (format.mode == QuantMode::nvfp4) return GroupScale::e4m3;
  if (format.mode != QuantMode::affine) return GroupScale::e8m0;
  return static_cast<GroupScale>(*stored_type(scales));
}

std::size_t scale_bytes(GroupScale scale) {
  switch (scale) {
    case GroupScale::f32:
      return 4;
    case GroupScale::f16:
    case GroupScale::bf16:
      return 2;
    case GroupScale::e8m0:
    case GroupScale::e4m3:
      break;
  }
  return 1;
}

}  // namespace

std::string group_rows_refusal(const PrepareArgs& args, std::size_t first,
                               const GroupFormat& format) {
  const std::size_t count = format.mode == QuantMode::affine ? 3 : 2;
  for (const OperandSpec& operand : args.inputs.subspan(first, count)) {
    if (operand.layout.kind == LayoutKind::strided && is_contiguous(operand)) continue;
    return fmt::format("{}: codes, scales and biases must be contiguous, not {}", name(args.op),
                       to_string(operand));
  }
  return {};
}

GroupOperands::GroupOperands(const PrepareArgs& args, std::size_t first_operand,
                             const GroupFormat& format)
    : first(first_operand),
      code(static_cast<std::size_t>(group_code(format))),
      scale(group_scale(format, args.inputs[first + 1].spec.dtype)),
      has_biases(format.mode == QuantMode::affine),
      row_words(args.inputs[first].spec.shape.back()),
      groups(args.inputs[first + 1].spec.shape.back()),
      group_size(format.group_size),
      loops(&group_loops(isa())) {}

GroupRows GroupOperands::at(const Launch& launch) const {
  return {launch.inputs[first].as<const std::uint32_t>(),
          row_words,
          launch.inputs[first + 1].data,
          has_biases ? launch.inputs[first + 2].data : nullptr,
          scale,
          groups,
          group_size};
}

GroupRows rows_from(const GroupRows& w, std::int64_t row) {
  const std::int64_t skipped = row * w.groups * static_cast<std::int64_t>(scale_bytes(w.scale));
  GroupRows rest = w;
  rest.codes += row * w.row_words;
  rest.scales += skipped;
  if (rest.biases) rest.biases += skipped;
  return rest;
}

}  // namespace heddle::cpu
