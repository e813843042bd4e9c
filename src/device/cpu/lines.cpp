#include "device/cpu/lines.h"

#include "base/check.h"
#include "tensor/format.h"

namespace heddle::cpu {

Lines::Lines(const Shape& shape, std::int64_t axis) : length(shape[axis]) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) < axis) outer *= shape[i];
    if (static_cast<std::int64_t>(i) > axis) inner *= shape[i];
  }
  if (axis > 0 && shape[0] > 0) outer_per_row = outer / shape[0];
}

std::string contiguous_refusal(const PrepareArgs& args) {
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const OperandSpec& input = args.inputs[i];
    if (input.layout.kind == LayoutKind::strided && is_contiguous(input)) continue;
    return fmt::format("{}: operand {} must be contiguous, not {}", name(args.op), i, input);
  }
  return {};
}

}  // namespace heddle::cpu
