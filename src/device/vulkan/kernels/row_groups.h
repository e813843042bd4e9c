// What kernels that give a workgroup to each row have in common.
#pragma once

#include <cstdint>
#include <string>

#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

/// Rows along all axes but the last, and how many of them one of axis 0 holds.
struct RowCount {
  std::uint64_t rows = 1, per_leading = 1, width = 1;
  bool has_leading = false;  // whether axis 0 counts rows, so that an extent may cut them short

  explicit RowCount(const Shape& shape);
  bool empty() const { return rows == 0 || width == 0; }
  /// A workgroup a row, of those that an extent leaves.
  Grid grid() const;
  Address extent_operand() const { return has_leading ? extent() : nothing(); }
};

/// Why rows of operands of these specs cannot have a kernel, or nothing: all must be contiguous,
/// of f32, f16 or bf16 (`also` f64), rows shorter than 2^31 and fewer than 2^32.
std::string row_problem(const PrepareArgs& args, const RowCount& count, bool also_f64 = false);

/// Invocations for a row of `width` elements: a subgroup, or more where each would have more than
/// 16 elements to go through. Of the row's own length and the device alone (rule 17).
std::uint32_t row_group_size(std::uint64_t width, const Limits& limits);

/// The weight and the bias of a norm, those that it has, from input `first` on.
struct NormParameters {
  static constexpr std::uint32_t kNone = 255;  // no dtype; the shaders' kNone
  Address weight, bias;
  std::uint32_t weight_type = kNone, bias_type = kNone;

  NormParameters(const PrepareArgs& args, std::size_t first, bool has_weight, bool has_bias);
};

/// Output `output` may be written over each of the first `count` inputs that lies just so.
void allow_rows_in_place(const PrepareArgs& args, KernelTraits& traits, std::size_t output,
                         std::size_t count);

}  // namespace heddle::vulkan
