// What a tensor is (TensorSpec) and how a buffer holds it (Layout).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle {

struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

std::string to_string(const TensorSpec& spec);  // "f16[2, 3]"

/// Bytes of the tensor laid out contiguously, row-major. Throws invalid_argument on overflow or
/// when a block type's rows are not whole blocks.
std::size_t byte_size(const TensorSpec& spec);

enum class LayoutKind : std::uint8_t {
  /// Element (i, j, ...) is i*strides[0] + j*strides[1] + ... elements from the first one. A
  /// negative stride walks its axis from the far end, so that the first element need not lie first:
  /// it is `first_element` elements from the view's start, which is the lowest byte that the
  /// operand touches. A block type's last stride is 1, and its others are whole blocks.
  strided,
  /// For a matrix [out, in] of a plain type: panels of 16 rows, each stored column by column, so
  /// that element (o, i) is at (o/16 * in + i) * 16 + o%16. The last panel is padded with zeros.
  panel16,
};

std::string_view to_string(LayoutKind kind) noexcept;

/// How a buffer holds a tensor. Part of a View and of a plan's specs, never a side table.
struct Layout {
  LayoutKind kind = LayoutKind::strided;
  Dims strides;  // in elements, of either sign; only for `strided`

  static Layout contiguous(const Shape& shape) {
    return {LayoutKind::strided, contiguous_strides(shape)};
  }
  static Layout packed(LayoutKind kind) { return {kind, {}}; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A spec with its layout: what a kernel is prepared for.
struct OperandSpec {
  TensorSpec spec;
  Layout layout;

  static OperandSpec contiguous(TensorSpec spec) {
    Layout layout = Layout::contiguous(spec.shape);
    return {std::move(spec), layout};
  }
  friend bool operator==(const OperandSpec&, const OperandSpec&) = default;
};

std::string to_string(const OperandSpec& operand);

/// Row-major without gaps. Strides of axes of extent 0 or 1 do not matter.
bool is_contiguous(const OperandSpec& operand) noexcept;

/// Bytes from the lowest to one past the highest byte that the operand can touch, whichever way its
/// axes are walked: what must fit in the buffer from its start on. Throws invalid_argument on
/// overflow.
std::size_t span_bytes(const OperandSpec& operand);

/// Elements from the operand's start to element (0, 0, ...); 0 unless a stride is negative. The
/// operand is strided, and its span does not overflow.
std::int64_t first_element(const OperandSpec& operand) noexcept;

/// Whether an axis of more than one element has a negative stride.
bool walks_backwards(const OperandSpec& operand) noexcept;

/// Bytes that a tensor takes in a packed layout (`span_bytes` of it).
std::size_t packed_bytes(const TensorSpec& spec, LayoutKind kind);

}  // namespace heddle
