// Strided operands as every device looks at them.
#pragma once

#include <cstddef>

#include "heddle/tensor.h"

namespace heddle {

/// Strides of an operand stretched to `shape`, which it broadcasts to.
Dims broadcast_strides(const OperandSpec& operand, const Shape& shape);

/// A strided operand as indivisible items: elements, or the blocks of a block type.
struct Items {
  Shape shape;
  Dims strides;
  std::size_t bytes = 0;  // of an item
};
Items as_items(const OperandSpec& operand);

}  // namespace heddle
