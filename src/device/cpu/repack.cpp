// Repack: plain matrices into panels.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

namespace {

struct Matrix {
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

template <class U>
Run pack(const Matrix& matrix) {
  return [matrix](const Launch& launch) {
    const std::int64_t panels = (matrix.rows + kPanel - 1) / kPanel;
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        pack_panel<U>(matrix, launch.inputs[0].as<U>(), p,
                      launch.outputs[0].as<U>() + p * matrix.columns * kPanel);
      }
    };
    parallel(launch.team, panels, row_grain(matrix.columns * kPanel), body);
  };
}

}  // namespace

Prepared prepare_repack(const PrepareArgs& args) {
  const auto& [spec, layout] = args.inputs[0];
  if (std::get<Repack>(args.op).kind != LayoutKind::panel16) {
    return refuse("repack: only panel16 can be made");
  }
  if (layout.kind != LayoutKind::strided || is_block(spec.dtype) || spec.shape.size() != 2) {
    return refuse(fmt::format("repack: {} is not a plain matrix", to_string(args.inputs[0])));
  }
  const Matrix matrix{spec.shape[0], spec.shape[1], layout.strides[0], layout.strides[1]};
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  switch (item_size(spec.dtype)) {
    case 1:
      return make_kernel(std::move(traits), pack<std::uint8_t>(matrix));
    case 2:
      return make_kernel(std::move(traits), pack<std::uint16_t>(matrix));
    case 4:
      return make_kernel(std::move(traits), pack<std::uint32_t>(matrix));
    default:
      return make_kernel(std::move(traits), pack<std::uint64_t>(matrix));
  }
}

}  // namespace heddle::cpu
