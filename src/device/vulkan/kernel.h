// How the Vulkan device holds a kernel: dispatches of shaders, whose operands are addresses.
//
// `prepare_<family>` functions check every precondition and return a kernel or the reason why not;
// device.cpp asks them by a table on the op's index. The shaders' side is shaders/kernel.glsl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/vulkan/limits.h"
#include "heddle/device.h"

namespace heddle::vulkan {

class Pipeline;  // a shader with its constants, compiled (pipelines.h)

/// Compiles shaders, once per name and constants. Thread-safe.
class Pipelines {
 public:
  virtual ~Pipelines() = default;
  /// The shader `name` (a file of shaders/ or a variant named in its CMakeLists.txt), in workgroups
  /// of `group_size` invocations (constant 0), with constants 1, 2, ... (constant 31 is the
  /// subgroup size). On a device without optional features it is the shader's minimal form.
  /// `operands` and `params_bytes` must be what the shader declares. Throws backend naming the
  /// shader.
  virtual std::shared_ptr<const Pipeline> get(std::string_view name, std::uint32_t group_size,
                                              std::span<const std::uint32_t> constants,
                                              std::size_t operands, std::size_t params_bytes) = 0;
};

/// What an address among a dispatch's operands stands for.
struct Address {
  enum class Of : std::uint8_t { nothing, input, output, workspace, extent } of = Of::nothing;
  std::uint32_t index = 0;   // which input or output
  std::uint64_t offset = 0;  // bytes from its start
};
inline Address input(std::size_t index, std::uint64_t offset = 0) {
  return {Address::Of::input, static_cast<std::uint32_t>(index), offset};
}
inline Address output(std::size_t index, std::uint64_t offset = 0) {
  return {Address::Of::output, static_cast<std::uint32_t>(index), offset};
}
inline Address workspace(std::uint64_t offset = 0) {
  return {Address::Of::workspace, 0, offset};
}
/// Address 0 where the launch has no extent.
inline Address extent() {
  return {Address::Of::extent, 0, 0};
}
inline Address nothing() {  // address 0
  return {};
}

/// Workgroups of a dispatch. With `rows_per_step`, only as many as the launch's extent needs:
/// ceil(min(extent, rows) / rows_per_step) * groups_per_step, where `groups` is that for all rows.
struct Grid {
  std::uint64_t groups = 1;
  std::uint32_t rows_per_step = 0, groups_per_step = 0;
};

struct Dispatch {
  std::shared_ptr<const Pipeline> pipeline;
  Grid grid;
  std::vector<Address> operands;
  std::vector<std::byte> params;  // as the shader's struct Params lies (scalar layout)
  /// Reads or overwrites what an earlier dispatch of the same kernel wrote or read.
  bool after_previous = false;
};

class VulkanKernel final : public Kernel {
 public:
  VulkanKernel(KernelTraits traits, std::vector<Dispatch> dispatches, std::string label)
      : Kernel(std::move(traits)), dispatches_(std::move(dispatches)), label_(std::move(label)) {}
  const std::vector<Dispatch>& dispatches() const noexcept { return dispatches_; }
  /// The op and its operands, for errors.
  const std::string& label() const noexcept { return label_; }

 private:
  std::vector<Dispatch> dispatches_;
  std::string label_;
};

struct PrepareArgs {
  const Op& op;
  std::span<const OperandSpec> inputs, outputs;
  const Limits& limits;
  Pipelines& pipelines;
};

inline Prepared refuse(std::string reason) {
  return {nullptr, std::move(reason)};
}

/// Bytes of push constants before the operands, of one operand, and the most that Vulkan promises.
inline constexpr std::size_t kPushHeader = 16, kOperandBytes = 12, kMostPushBytes = 128;
/// Whether a dispatch's operands and parameters lie in a block in memory: its shader says so by
/// defining PARAMS_IN_BLOCK.
constexpr bool in_block(std::size_t operands, std::size_t params_bytes) {
  return kPushHeader + operands * kOperandBytes + params_bytes > kMostPushBytes;
}

/// Puts a kernel together. `params` is a struct of 32-bit members, exactly as the shader has it
/// (none: an empty struct; the shader then declares one unused uint, and so does the caller).
class KernelMaker {
 public:
  explicit KernelMaker(const PrepareArgs& args)
      : traits(whole_operand_traits(args.inputs, args.outputs)), args_(args) {}

  struct Launch {
    std::string_view shader;
    std::uint32_t group_size = 1;
    std::vector<std::uint32_t> constants;
    Grid grid;
    std::vector<Address> operands;
    bool after_previous = false;
  };
  template <class Params>
  void dispatch(Launch launch, const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params> && alignof(Params) == 4);
    std::vector<std::byte> bytes(sizeof params);
    std::memcpy(bytes.data(), &params, sizeof params);
    add(std::move(launch), std::move(bytes));
  }
  Prepared finish() {
    return {std::make_shared<VulkanKernel>(std::move(traits), std::move(dispatches_), label()), {}};
  }

  KernelTraits traits;  // of operands read and written whole, to be changed by the family

 private:
  std::string label() const;
  void add(Launch launch, std::vector<std::byte> params);

  const PrepareArgs& args_;
  std::vector<Dispatch> dispatches_;
};

// The families, in kernels/, one source file each or a few.
Prepared prepare_copy(const PrepareArgs&);  // contiguous, view, concatenate, slice_update, arange
Prepared prepare_cast(const PrepareArgs&);  // cast, dequantising included
Prepared prepare_elementwise(const PrepareArgs&);  // unary, binary, compare, select, gated_multiply
Prepared prepare_rows(const PrepareArgs&);         // gather_rows, write_rows, feed
Prepared prepare_rope(const PrepareArgs&);         // rope, rope_table, rope_write_rows
Prepared prepare_reduce(const PrepareArgs&);       // reduce, softmax
Prepared prepare_norm(const PrepareArgs&);         // rms_norm, add_rms_norm, layer_norm
Prepared prepare_linear(const PrepareArgs&);       // linear, grouped_linear
Prepared prepare_matmul(const PrepareArgs&);       // matmul
Prepared prepare_attention(const PrepareArgs&);    // attention
Prepared prepare_attend(const PrepareArgs&);       // attend
Prepared prepare_scan(const PrepareArgs&);         // scan
Prepared prepare_arg_reduce(const PrepareArgs&);   // arg_reduce
Prepared prepare_top_k(const PrepareArgs&);        // top_k
Prepared prepare_gather_axis(const PrepareArgs&);  // gather_axis
Prepared prepare_scatter_axis(const PrepareArgs&);    // scatter_axis
Prepared prepare_pad(const PrepareArgs&);             // pad
Prepared prepare_channel_norm(const PrepareArgs&);    // channel_norm
Prepared prepare_group_norm(const PrepareArgs&);      // group_norm
Prepared prepare_selective_scan(const PrepareArgs&);  // selective_scan
Prepared prepare_conv(const PrepareArgs&);            // conv
Prepared prepare_im2col(const PrepareArgs&);          // im2col
Prepared prepare_pool(const PrepareArgs&);            // pool
Prepared prepare_resize(const PrepareArgs&);          // resize

}  // namespace heddle::vulkan
