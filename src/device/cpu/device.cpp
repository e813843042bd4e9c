// The CPU device: memory, and which family prepares which op.
#include <array>
#include <new>

#include "base/check.h"
#include "base/settings.h"
#include "base/system.h"
#include "device/cpu/forms.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/stream.h"
#include "device/sanitizer.h"
#include "heddle/memory.h"

namespace heddle {
namespace cpu {

namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(Device& device, std::size_t size, MemoryPool::Block block)
      : Buffer(device, size, static_cast<std::byte*>(block.memory())), block_(std::move(block)) {}

 private:
  MemoryPool::Block block_;
};

class ImportedBuffer final : public Buffer {
 public:
  ImportedBuffer(Device& device, std::span<std::byte> memory, std::shared_ptr<const void> owner)
      : Buffer(device, memory.size(), memory.data()), owner_(std::move(owner)) {}

 private:
  std::shared_ptr<const void> owner_;
};

// ---- What there is

/// Which form of the kernels runs, and why no better one.
std::string kernels() {
  const Isa best = processor_isa();
  if (isa() != best) {
    return fmt::format("{}, as HEDDLE_CPU says; the processor has {}", title_of(isa()),
                       title_of(best));
  }
  const std::string_view lacks = what_the_next_needs(best);
  if (lacks.empty()) return fmt::format("{}, the best there are", title_of(best));
  return fmt::format("{}, as the processor or the system lacks {}", title_of(best), lacks);
}

// ---- Memory

/// A quarter of what is left: mapped weights live in the page cache, and other processes in the
/// rest. Nothing under the address sanitizer, which knows more of memory that is really freed.
std::size_t default_cache_limit() {
  return kAddressSanitizer ? 0 : available_memory() / 4;
}

// Large pages are of 2 MiB on x86-64 and most Arm systems.
constexpr std::size_t kLargePage = std::size_t{2} << 20;

bool takes_large_pages(std::size_t bytes) {
  return bytes >= 2 * kLargePage;
}
std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{takes_large_pages(bytes) ? kLargePage : kAlignment};
}

MemoryPool::Source host_memory() {
  return {[](std::size_t bytes) {
            void* memory = ::operator new(bytes, alignment_of(bytes), std::nothrow);
            if (memory && takes_large_pages(bytes)) prefer_large_pages(memory, bytes);
            return memory;
          },
          [](void* memory, std::size_t bytes) { ::operator delete(memory, alignment_of(bytes)); }};
}

MemoryPool::Options host_options() {
  MemoryPool::Options options;
  options.name = "cpu";
  options.addressable = true;
  options.memory_limit = settings().memory_limit;
  const std::optional<std::uint64_t> cache_limit = settings().cache_limit;
  options.cache_limit = cache_limit ? *cache_limit : default_cache_limit();
  return options;
}

// ---- Dispatch

using PrepareFamily = Prepared (*)(const PrepareArgs&);

template <class T, class... Ts>
concept one_of = (std::is_same_v<T, Ts> || ...);

template <class T>
constexpr PrepareFamily family() {
  if constexpr (one_of<T, Contiguous, Reinterpret, Concatenate, SliceUpdate, Arange>) {
    return prepare_copy;
  }
  if constexpr (one_of<T, Cast>) return prepare_cast;
  if constexpr (one_of<T, Unary, Binary, Compare, Select, GatedMultiply>) {
    return prepare_elementwise;
  }
  if constexpr (one_of<T, Fused>) return prepare_fused;
  if constexpr (one_of<T, Reduce, Softmax, CausalSoftmax>) return prepare_reduce;
  if constexpr (one_of<T, Scan>) return prepare_scan;
  if constexpr (one_of<T, ArgReduce>) return prepare_arg_reduce;
  if constexpr (one_of<T, TopK>) return prepare_top_k;
  if constexpr (one_of<T, Sort>) return prepare_sort;
  if constexpr (one_of<T, SearchSorted>) return prepare_search_sorted;
  if constexpr (one_of<T, Gather>) return prepare_gather_slices;
  if constexpr (one_of<T, Scatter>) return prepare_scatter_slices;
  if constexpr (one_of<T, GatherAxis, ScatterAxis>) return prepare_axis_indices;
  if constexpr (one_of<T, Pad>) return prepare_pad;
  if constexpr (one_of<T, Conv, Im2col>) return prepare_conv;
  if constexpr (one_of<T, Pool, Resize>) return prepare_pool;
  if constexpr (one_of<T, GroupedLinear>) return prepare_grouped_linear;
  if constexpr (one_of<T, ChannelNorm, GroupNorm>) return prepare_channel_norm;
  if constexpr (one_of<T, SelectiveScan>) return prepare_selective_scan;
  if constexpr (one_of<T, RmsNorm, AddRmsNorm, LayerNorm>) return prepare_norm;
  if constexpr (one_of<T, GatherRows, WriteRows, Feed>) return prepare_rows;
  if constexpr (one_of<T, Rope, RopeTable, RopeWriteRows, NormRope, NormRopeWriteRows>) {
    return prepare_rope;
  }
  if constexpr (one_of<T, Repack>) return prepare_repack;
  if constexpr (one_of<T, Linear>) return prepare_linear;
  if constexpr (one_of<T, Matmul>) return prepare_matmul;
  if constexpr (one_of<T, Factor>) return prepare_factor;
  if constexpr (one_of<T, Solve>) return prepare_solve;
  if constexpr (one_of<T, Fft>) return prepare_fft;
  if constexpr (one_of<T, Hadamard>) return prepare_hadamard;
  if constexpr (one_of<T, GroupQuantize, GroupDequantize>) return prepare_group_quantize;
  if constexpr (one_of<T, GroupMatmul>) return prepare_group_matmul;
  if constexpr (one_of<T, GatherMatmul, SegmentedMatmul>) return prepare_gather_matmul;
  if constexpr (one_of<T, Fp8>) return prepare_fp8;
  if constexpr (one_of<T, Attention>) return prepare_attention;
  if constexpr (one_of<T, Attend>) return prepare_attend;
  if constexpr (one_of<T, RandomBits>) return prepare_random_bits;
  return nullptr;  // leaves and views: nothing to compute
}

template <std::size_t... I>
constexpr std::array<PrepareFamily, kOpCount> families(std::index_sequence<I...>) {
  return {family<std::variant_alternative_t<I, OpVariant>>()...};
}
constexpr auto kFamilies = families(std::make_index_sequence<kOpCount>());

/// Whether the op's family reads axes backwards. The others have inputs copied first.
bool takes_negative_strides(const Op& op) {
  return std::visit(
      []<class T>(const T&) {
        return one_of<T, Contiguous, Reinterpret, Concatenate, SliceUpdate, Cast, Unary, Binary,
                      Compare, Select, GatedMultiply, Fused, Reduce, Softmax, CausalSoftmax,
                      GroupQuantize, Fp8, Pad>;
      },
      op);
}

void check_outputs(const PrepareArgs& args) {
  std::vector<TensorSpec> specs;
  for (const OperandSpec& input : args.inputs) specs.push_back(input.spec);
  const std::vector<TensorSpec> expected = infer(args.op, specs);
  require(expected.size() == args.outputs.size(), ErrorCode::invalid_argument,
          "{}: it has {} outputs, {} were given", name(args.op), expected.size(),
          args.outputs.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    require(expected[i] == args.outputs[i].spec, ErrorCode::invalid_argument,
            "{}: output {} is {}, {} was given", name(args.op), i, to_string(expected[i]),
            to_string(args.outputs[i].spec));
  }
}

// ---- The device

class CpuDevice final : public Device {
 public:
  std::string_view name() const noexcept override { return "cpu"; }
  std::size_t alignment() const noexcept override { return kAlignment; }
  DeviceInfo describe() const override {
    DeviceInfo info{.hardware = processor_name(),
                    .memory = available_memory(),
                    .details = {{"instructions", std::string(title_of(isa()))},
                                {"kernels", kernels()},
                                {"processors", std::to_string(available_processors())},
                                {"threads", std::to_string(default_threads())}}};
    for (FormInfo& form : describe_forms()) {
      info.details.emplace_back(std::move(form.weights), std::move(form.form));
    }
    return info;
  }

  Prepared prepare(const Op& op, std::span<const OperandSpec> inputs,
                   std::span<const OperandSpec> outputs) override {
    const PrepareFamily prepare_family = kFamilies[op.index()];
    if (!prepare_family) {
      return refuse(
          fmt::format("{} is not computed: the cpu has kernels for what is neither a leaf "
                      "nor a view",
                      heddle::name(op)));
    }
    const PrepareArgs args{op, inputs, outputs};
    check_outputs(args);
    for (const OperandSpec& output : outputs) {
      if (output.layout.kind == LayoutKind::strided && !is_contiguous(output)) {
        return refuse(fmt::format("output {} must be contiguous", to_string(output)));
      }
    }
    for (const OperandSpec& input : inputs) {
      if (walks_backwards(input) && !takes_negative_strides(op)) {
        return refuse(
            fmt::format("{}: {} is walked backwards", heddle::name(op), to_string(input)));
      }
    }
    return prepare_family(args);
  }

  std::optional<LayoutKind> preferred_layout(const Op& op, std::size_t operand,
                                             std::span<const TensorSpec> inputs) const override {
    return preferred_weight_layout(op, operand, inputs);
  }

  Ref<Buffer> allocate(std::size_t bytes, MemoryKind) override {
    return make_ref<PooledBuffer>(*this, bytes, pool_.allocate(bytes));
  }
  MemoryPool* memory() noexcept override { return &pool_; }

  Ref<Buffer> import_host(std::span<std::byte> memory, std::shared_ptr<const void> owner) override {
    return make_ref<ImportedBuffer>(*this, memory, std::move(owner));
  }

  Ref<Stream> default_stream() override { return stream_; }
  Ref<Stream> new_stream() override { return make_stream(*this); }

  std::unique_ptr<Recording> record(std::span<const RecordedStep> steps) override {
    return make_recording(steps);
  }
  std::unique_ptr<BindingTable> make_binding_table(std::size_t slots) override {
    return cpu::make_binding_table(slots);
  }

 private:
  MemoryPool pool_{host_memory(), host_options()};
  Ref<Stream> stream_ = make_stream(*this);
};

}  // namespace
}  // namespace cpu

// Never destroyed: buffers in static variables may outlive every other static.
Device& cpu_device() {
  static Device& device = *new cpu::CpuDevice;
  return device;
}

Ref<Buffer> allocate_host(std::size_t bytes) {
  return cpu_device().allocate(bytes, MemoryKind::host_visible);
}

}  // namespace heddle
