// Repack: matrices into panels.
#include "base/check.h"
#include "device/cpu/kernel.h"
#include "device/cpu/pack.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"
#include "device/cpu/types.h"
#include "tensor/block_panels.h"

namespace heddle::cpu {

namespace {

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

Run pack_blocks(const TensorSpec& spec) {
  return [spec](const Launch& launch) {
    const std::size_t row = row_bytes(spec.dtype, spec.shape[1]);
    const std::int64_t rows = spec.shape[0], panels = (rows + kPanel - 1) / kPanel;
    const std::int64_t blocks = spec.shape[1] / info(spec.dtype).block_elements;
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const std::size_t at = static_cast<std::size_t>(p * kPanel) * row;
        pack_block_panel(spec.dtype, launch.inputs[0].data + at, row,
                         std::min(kPanel, rows - p * kPanel), blocks, launch.outputs[0].data + at);
      }
    };
    parallel(launch.team, panels, row_grain(spec.shape[1] * kPanel), body);
  };
}

}  // namespace

Prepared prepare_repack(const PrepareArgs& args) {
  const auto& [spec, layout] = args.inputs[0];
  if (std::get<Repack>(args.op).kind != LayoutKind::panel16) {
    return refuse("repack: only panel16 can be made");
  }
  if (layout.kind != LayoutKind::strided || spec.shape.size() != 2) {
    return refuse(fmt::format("repack: {} is not a plain matrix", to_string(args.inputs[0])));
  }
  if (is_block(spec.dtype)) {
    if (!is_contiguous(args.inputs[0])) {
      return refuse(fmt::format("repack: {} must be contiguous", to_string(args.inputs[0])));
    }
    return make_kernel(whole_operand_traits(args.inputs, args.outputs), pack_blocks(spec));
  }
  const Matrix matrix{spec.shape[0], spec.shape[1], layout.strides[0], layout.strides[1]};
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  return make_kernel(std::move(traits), with_item_type(item_size(spec.dtype), [&](auto tag) -> Run {
                       return pack<typename decltype(tag)::type>(matrix);
                     }));
}

}  // namespace heddle::cpu
