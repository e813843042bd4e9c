#include "device/strides.h"

namespace heddle {

Dims broadcast_strides(const OperandSpec& operand, const Shape& shape) {
  const Shape& own = operand.spec.shape;
  Dims strides(shape.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t at = shape.size() - own.size() + i;
    strides[at] = own[i] == 1 ? 0 : operand.layout.strides[i];
  }
  return strides;
}

Items as_items(const OperandSpec& operand) {
  const DTypeInfo& type = info(operand.spec.dtype);
  Items items{operand.spec.shape, operand.layout.strides,
              static_cast<std::size_t>(type.block_bytes)};
  if (type.block_elements == 1) return items;
  const std::size_t last = items.shape.size() - 1;
  items.shape[last] /= type.block_elements;
  for (std::size_t i = 0; i < last; ++i) items.strides[i] /= type.block_elements;
  return items;
}

}  // namespace heddle
