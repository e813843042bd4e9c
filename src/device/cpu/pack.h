// Plain matrices into panels of 16 rows (LayoutKind::panel16).
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/products.h"

namespace heddle::cpu {

struct Matrix {  // strides in elements
  std::int64_t rows, columns, row_stride, column_stride;
};

/// Panel `panel` of a matrix of elements as wide as U, with zeros for the rows it lacks.
template <class U>
void pack_panel(const Matrix& from, const U* source, std::int64_t panel, U* to) {
  const std::int64_t first = panel * kPanel, rows = std::min(kPanel, from.rows - first);
  if (rows < kPanel) std::fill_n(to, from.columns * kPanel, U{0});
  // A few columns at a time, so that each row's cache line is used up while it is there.
  constexpr std::int64_t kColumns = 64 / sizeof(U);
  for (std::int64_t begin = 0; begin < from.columns; begin += kColumns) {
    const std::int64_t end = std::min(begin + kColumns, from.columns);
    for (std::int64_t r = 0; r < rows; ++r) {
      const U* row = source + (first + r) * from.row_stride;
      for (std::int64_t c = begin; c < end; ++c) to[c * kPanel + r] = row[c * from.column_stride];
    }
  }
}

}  // namespace heddle::cpu
