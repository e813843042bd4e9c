// Arrays over memory that is not heddle's.
#pragma once

#include <cstddef>
#include <memory>

#include "heddle/array.h"

namespace heddle {

/// An array over memory that `owner` keeps: `first` is its first element, and strides are in
/// elements, of either sign. Throws invalid_argument, naming what, if the memory is null or not
/// aligned to the dtype, or strides overflow.
Array array_over(const std::byte* first, OperandSpec operand, std::shared_ptr<const void> owner);

/// The multiple of bytes at which elements (or blocks) must lie.
std::size_t alignment_of(DType dtype) noexcept;

/// The array's value, evaluated, where the host reads it: as it lies in the host's own memory, else
/// in a row-major copy. Throws invalid_argument for packed layouts.
View host_view(const Array& array);
/// The same, row-major in any case.
View row_major_view(const Array& array);

}  // namespace heddle
