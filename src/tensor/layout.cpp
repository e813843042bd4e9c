#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "heddle/tensor.h"
#include "tensor/format.h"

namespace heddle {

namespace {

constexpr std::int64_t kPanelRows = 16;

std::size_t checked_multiply(std::size_t a, std::size_t b, const TensorSpec& spec) {
  std::size_t product;
  require(!__builtin_mul_overflow(a, b, &product), ErrorCode::invalid_argument,
          "{}: its size in bytes overflows", spec);
  return product;
}

/// Elements from the lowest to the highest that strides can reach, counting both.
std::int64_t strided_extent(const OperandSpec& operand) {
  const auto& [spec, layout] = operand;
  std::int64_t extent = 1;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] == 0) return 0;
    std::int64_t reach;
    const bool overflow = __builtin_mul_overflow(spec.shape[i] - 1, layout.strides[i], &reach) ||
                          reach == std::numeric_limits<std::int64_t>::min() ||
                          __builtin_add_overflow(extent, std::abs(reach), &extent);
    require(!overflow, ErrorCode::invalid_argument, "{}: its strides overflow", operand);
  }
  return extent;
}

}  // namespace

std::string to_string(const TensorSpec& spec) {
  std::string text(to_string(spec.dtype));
  text += to_string(spec.shape);
  return text;
}

std::string_view to_string(LayoutKind kind) noexcept {
  switch (kind) {
    case LayoutKind::strided:
      return "strided";
    case LayoutKind::panel16:
      return "panel16";
  }
  return "unknown";
}

std::string to_string(const OperandSpec& operand) {
  if (operand.layout.kind != LayoutKind::strided) {
    return fmt::format("{} {}", to_string(operand.spec), to_string(operand.layout.kind));
  }
  if (is_contiguous(operand)) return to_string(operand.spec);
  return fmt::format("{} strides {}", to_string(operand.spec), to_string(operand.layout.strides));
}

std::size_t byte_size(const TensorSpec& spec) {
  if (spec.shape.empty()) return row_bytes(spec.dtype, 1);
  const std::int64_t total = elements(spec.shape);
  if (total == 0) return 0;
  const std::size_t row = row_bytes(spec.dtype, spec.shape.back());
  return checked_multiply(row, static_cast<std::size_t>(total / spec.shape.back()), spec);
}

bool is_contiguous(const OperandSpec& operand) noexcept {
  const auto& [spec, layout] = operand;
  if (layout.kind != LayoutKind::strided) return false;
  std::int64_t expected = 1;
  for (std::size_t i = spec.shape.size(); i-- > 0;) {
    if (spec.shape[i] == 0) return true;
    if (spec.shape[i] != 1 && layout.strides[i] != expected) return false;
    expected *= spec.shape[i];
  }
  return true;
}

std::size_t span_bytes(const OperandSpec& operand) {
  if (operand.layout.kind != LayoutKind::strided) {
    return packed_bytes(operand.spec, operand.layout.kind);
  }
  const std::int64_t extent = strided_extent(operand);
  const DTypeInfo& type = info(operand.spec.dtype);
  const std::int64_t blocks = (extent + type.block_elements - 1) / type.block_elements;
  return checked_multiply(static_cast<std::size_t>(blocks),
                          static_cast<std::size_t>(type.block_bytes), operand.spec);
}

std::int64_t first_element(const OperandSpec& operand) noexcept {
  const auto& [spec, layout] = operand;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] == 0) return 0;
    if (spec.shape[i] > 1 && layout.strides[i] < 0)
      first -= (spec.shape[i] - 1) * layout.strides[i];
  }
  return first;
}

bool walks_backwards(const OperandSpec& operand) noexcept {
  return operand.layout.kind == LayoutKind::strided && first_element(operand) != 0;
}

std::size_t packed_bytes(const TensorSpec& spec, LayoutKind kind) {
  require(kind == LayoutKind::panel16 && spec.shape.size() == 2, ErrorCode::invalid_argument,
          "{}: cannot be held as {}", spec, to_string(kind));
  const std::int64_t panels = (spec.shape[0] + kPanelRows - 1) / kPanelRows;
  return byte_size({spec.dtype, {panels * kPanelRows, spec.shape[1]}});
}

}  // namespace heddle
