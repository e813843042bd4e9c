// Which loops serve weights in panels of each block type, and how many rows.
#pragma once

#include "device/cpu/quant_panel_few.h"

namespace heddle::cpu::HEDDLE_SIMD {

inline void no_depth(const QuantJob& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    for (std::int64_t column = 0; column < job.columns; column += kPanelColumns) {
      store_columns(job.out + row * job.out_stride + column, job.columns - column, zeros());
    }
  }
}

template <class T, class ManyRows>
void panel_products(const QuantJob& job) {
  if (job.depth == 0) return no_depth(job);
  if constexpr (kFewRows > 0) {
    if (job.rows == 1) return few_rows<T, 1>(job);
    if (job.rows == 2) return few_rows<T, 2>(job);
    if (job.rows <= 2 * kFewRows) return few_rows<T, kFewRows>(job);
  }
  ManyRows::template run<T>(job);
}

/// ManyRows::run<T>(job): for more rows than take codes straight from panels.
template <class ManyRows>
constexpr QuantPanelLoops panel_loops() {
  return {{
      panel_products<PanelQ40, ManyRows>,
      panel_products<PanelQ41, ManyRows>,
      panel_products<PanelQ50, ManyRows>,
      panel_products<PanelQ51, ManyRows>,
      panel_products<PanelQ80, ManyRows>,
      panel_products<PanelQ2K, ManyRows>,
      panel_products<PanelQ3K, ManyRows>,
      panel_products<PanelQ4K, ManyRows>,
      panel_products<PanelQ5K, ManyRows>,
      panel_products<PanelQ6K, ManyRows>,
      panel_products<PanelIq4Nl, ManyRows>,
      panel_products<PanelIq4Xs, ManyRows>,
  }};
}

}  // namespace heddle::cpu::HEDDLE_SIMD
