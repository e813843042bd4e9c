// How the CPU device holds a kernel: a function that runs on pointers, made by the family that
// knows the op.
//
// `prepare_<family>` functions check every precondition and return a kernel or the reason why not;
// device.cpp asks them by a table on the op's index.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/team.h"
#include "heddle/device.h"

namespace heddle::cpu {

/// An operand in memory. `bytes` is what the binding holds from `data` on, for operands whose rows
/// are chosen by data (states, which may have grown past their spec).
struct Operand {
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
};

struct Launch {
  std::span<const Operand> inputs, outputs;
  std::byte* workspace = nullptr;
  /// Leading rows (axis 0) that count; negative where all do.
  std::int64_t extent = -1;
  Team& team;
};

/// Runs the kernel; throws Error for what data make impossible (an id out of range). Allocates
/// nothing.
using Run = std::function<void(const Launch&)>;

class CpuKernel final : public Kernel {
 public:
  CpuKernel(KernelTraits traits, Run run) : Kernel(std::move(traits)), run_(std::move(run)) {}
  void run(const Launch& launch) const { run_(launch); }

 private:
  Run run_;
};

struct PrepareArgs {
  const Op& op;
  std::span<const OperandSpec> inputs, outputs;
};

inline Prepared refuse(std::string reason) {
  return {nullptr, std::move(reason)};
}
inline Prepared make_kernel(KernelTraits traits, Run run) {
  return {std::make_shared<CpuKernel>(std::move(traits), std::move(run)), {}};
}

// The families, one source file each (or a few, by processor feature).
Prepared prepare_copy(const PrepareArgs&);  // contiguous, view, concatenate, slice_update, arange
Prepared prepare_cast(const PrepareArgs&);  // cast, dequantising included
Prepared prepare_elementwise(const PrepareArgs&);  // unary, binary, compare, select, gated_multiply
Prepared prepare_fused(const PrepareArgs&);
Prepared prepare_reduce(const PrepareArgs&);          // reduce, softmax, causal_softmax
Prepared prepare_scan(const PrepareArgs&);            // scan
Prepared prepare_arg_reduce(const PrepareArgs&);      // arg_reduce
Prepared prepare_top_k(const PrepareArgs&);           // top_k
Prepared prepare_sort(const PrepareArgs&);            // sort
Prepared prepare_search_sorted(const PrepareArgs&);   // search_sorted
Prepared prepare_gather_slices(const PrepareArgs&);   // gather
Prepared prepare_scatter_slices(const PrepareArgs&);  // scatter
Prepared prepare_axis_indices(const PrepareArgs&);    // gather_axis, scatter_axis
Prepared prepare_pad(const PrepareArgs&);
Prepared prepare_random_bits(const PrepareArgs&);
Prepared prepare_conv(const PrepareArgs&);  // conv, im2col
Prepared prepare_pool(const PrepareArgs&);  // pool, resize
Prepared prepare_grouped_linear(const PrepareArgs&);
Prepared prepare_channel_norm(const PrepareArgs&);  // channel_norm, group_norm
Prepared prepare_selective_scan(const PrepareArgs&);
Prepared prepare_norm(const PrepareArgs&);       // rms_norm, add_rms_norm, layer_norm
Prepared prepare_rows(const PrepareArgs&);       // gather_rows, write_rows, feed
Prepared prepare_rope(const PrepareArgs&);       // rope, rope_table, norm_rope, their writes
Prepared prepare_repack(const PrepareArgs&);     // repack
Prepared prepare_linear(const PrepareArgs&);     // linear, all weight types and layouts
Prepared prepare_matmul(const PrepareArgs&);     // matmul
Prepared prepare_attention(const PrepareArgs&);  // attention
Prepared prepare_factor(const PrepareArgs&);
Prepared prepare_solve(const PrepareArgs&);
Prepared prepare_fft(const PrepareArgs&);
Prepared prepare_hadamard(const PrepareArgs&);
Prepared prepare_group_quantize(const PrepareArgs&);  // group_quantize, group_dequantize
Prepared prepare_group_matmul(const PrepareArgs&);
Prepared prepare_gather_matmul(const PrepareArgs&);  // gather_matmul, segmented_matmul
Prepared prepare_fp8(const PrepareArgs&);
Prepared prepare_attend(const PrepareArgs&);  // attend

/// The packed layout in which the op would best read weight operand `operand`, if any; linear's.
std::optional<LayoutKind> preferred_weight_layout(const Op& op, std::size_t operand,
                                                  std::span<const TensorSpec> inputs);

}  // namespace heddle::cpu
