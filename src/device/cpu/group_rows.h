// Operands that hold quantised groups: as the loops of group_loops.h read them.
#pragma once

#include <algorithm>
#include <string>

#include "device/cpu/group_loops.h"
#include "device/cpu/kernel.h"

namespace heddle::cpu {

/// Why operands `first` and later, which hold a matrix in `format`, have no kernel; empty if they
/// have one.
std::string group_rows_refusal(const PrepareArgs& args, std::size_t first,
                               const GroupFormat& format);

struct GroupOperands {
  std::size_t first;  // operand: codes, then scales and perhaps biases
  std::size_t code;   // index of arrays in GroupLoops
  GroupScale scale;
  bool has_biases;
  std::int64_t row_words, groups, group_size;
  const GroupLoops* loops;

  GroupOperands(const PrepareArgs& args, std::size_t first, const GroupFormat& format);

  /// All rows, in their order.
  GroupRows at(const Launch& launch) const;
};

/// `w` from row `row` on.
GroupRows rows_from(const GroupRows& w, std::int64_t row);

/// Rows along all axes but the last, and how many of them one of axis 0 holds.
struct LeadingRows {
  std::int64_t rows = 1, per_leading = 0;

  explicit LeadingRows(const Shape& shape, std::size_t inner = 1) {
    for (std::size_t i = 0; i + inner < shape.size(); ++i) rows *= shape[i];
    if (shape.size() > inner && shape[0] > 0) per_leading = rows / shape[0];
  }
  std::int64_t that_count(std::int64_t extent) const {
    return extent < 0 || per_leading == 0 ? rows : std::min(rows, extent * per_leading);
  }
};

}  // namespace heddle::cpu
