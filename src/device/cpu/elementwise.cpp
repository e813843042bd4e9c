#include "device/cpu/elementwise.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/parallel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::size_t kMostOperands = 3;
/// Elements between what is computed and what is fetched meanwhile.
constexpr std::int64_t kAhead = 4 * kStreamedAtOnce;

/// A block function with where its operands come from and where its result goes.
struct Elementwise {
  BlockFunction function;
  std::array<BlockSource, kMostOperands> sources;
  std::size_t operands = 0;
  BlockSink sink;
  std::int64_t item = 0;  // of the output
  bool in_place = true;   // elements are computed as they lie

  void chunk(const Launch& launch, std::int64_t begin, std::int64_t end) const {
    if (!in_place || (sink.streams() && !overwrites(launch))) return blocks(launch, begin, end);
    std::array<const void*, kMostOperands> in{};
    for (std::size_t i = 0; i < operands; ++i) in[i] = sources[i].at(launch.inputs[i].data, begin);
    function(in.data(), launch.outputs[0].data + begin * item, end - begin);
  }

 private:
  /// What was just read is in a cache already.
  bool overwrites(const Launch& launch) const {
    return std::ranges::any_of(
        launch.inputs, [&](const Operand& input) { return input.data == launch.outputs[0].data; });
  }

  void blocks(const Launch& launch, std::int64_t begin, std::int64_t end) const {
    const StreamFence fence;
    std::array<BlockBuffer, kMostOperands> scratch;
    std::array<const void*, kMostOperands> in{};
    BlockBuffer out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::size_t i = 0; i < operands; ++i) {
      if (!sources[i].uniform()) continue;
      const std::int64_t n = std::min(kBlock, end - begin);
      in[i] = sources[i].load(launch.inputs[i].data, begin, n, scratch[i]);
    }
    const std::int64_t step = sink.streams() ? kStreamedAtOnce : kBlock;
    for (std::int64_t at = begin; at < end; at += step) {
      const std::int64_t n = std::min(step, end - at);
      for (std::size_t i = 0; i < operands; ++i) {
        if (sources[i].uniform()) continue;
        in[i] = sources[i].load(launch.inputs[i].data, at, n, scratch[i]);
        if (!sources[i].in_place()) continue;
        const std::byte* next = sources[i].at(launch.inputs[i].data, at + kAhead);
        prefetch_later(next, sources[i].at(next, n) - next);
      }
      void* target = sink.target(out, at, out_scratch);
      function(in.data(), target, n);
      sink.store(target, out, at, n);
    }
  }
};

}  // namespace

Prepared make_elementwise(const PrepareArgs& args, BlockFunction function) {
  const OperandSpec& output = args.outputs[0];
  const Shape& shape = output.spec.shape;
  Elementwise kernel;
  kernel.function = std::move(function);
  kernel.operands = args.inputs.size();
  kernel.sink = BlockSink::of_output(output.spec);
  kernel.item = static_cast<std::int64_t>(item_size(output.spec.dtype));
  kernel.in_place = !is_half(output.spec.dtype);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    kernel.sources[i] = BlockSource(args.inputs[i], shape);
    kernel.in_place = kernel.in_place && kernel.sources[i].in_place();
  }

  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !shape.empty();
  allow_in_place(traits, 0, output, args.inputs);
  const std::int64_t total = elements(shape);
  const std::int64_t per_row = shape.empty() || shape[0] == 0 ? 0 : total / shape[0];
  auto run = [kernel = std::move(kernel), total, per_row](const Launch& launch) {
    const std::int64_t count = launch.extent < 0 ? total : std::min(total, launch.extent * per_row);
    parallel(launch.team, count, kGrainElements,
             [&](std::int64_t begin, std::int64_t end) { kernel.chunk(launch, begin, end); });
  };
  return make_kernel(std::move(traits), std::move(run));
}

namespace {

// ---- Select

/// Chooses by item size: values are only moved. By masks, since a compiler may not read what it
/// might not choose, and so vectorises no condition.
template <class T>
void select_items(const void* const* in, void* out, std::int64_t n) {
  const auto* condition = static_cast<const std::uint8_t*>(in[0]);
  const auto* a = static_cast<const T*>(in[1]);
  const auto* b = static_cast<const T*>(in[2]);
  auto* y = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto mask = static_cast<T>(-static_cast<T>(condition[i] != 0));
    y[i] = static_cast<T>(b[i] ^ ((a[i] ^ b[i]) & mask));
  }
}

}  // namespace

BlockFunction select_block(std::size_t item) {
  switch (item) {
    case 1:
      return select_items<std::uint8_t>;
    case 2:
      return select_items<std::uint16_t>;
    case 4:
      return select_items<std::uint32_t>;
    default:
      return select_items<std::uint64_t>;
  }
}

namespace {

/// A kernel whose function takes half types as they are, which no one needs to widen.
Prepared make_on_bits(const PrepareArgs& args, BlockFunction function) {
  const auto as_bits = [](std::span<const OperandSpec> operands) {
    std::vector<OperandSpec> bits(operands.begin(), operands.end());
    for (OperandSpec& operand : bits) {
      if (is_half(operand.spec.dtype)) operand.spec.dtype = DType::u16;
    }
    return bits;
  };
  const std::vector<OperandSpec> inputs = as_bits(args.inputs), outputs = as_bits(args.outputs);
  return make_elementwise({args.op, inputs, outputs}, std::move(function));
}

// ---- Half types in one pass

template <class T>
BlockFunction block_of(UnaryMap<T> map) {
  if (!map) return {};
  return [map](const void* const* in, void* out, std::int64_t n) {
    map(static_cast<const T*>(in[0]), static_cast<T*>(out), n);
  };
}

template <class T>
BlockFunction block_of(BinaryMap<T> map) {
  if (!map) return {};
  return [map](const void* const* in, void* out, std::int64_t n) {
    map(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<T*>(out), n);
  };
}

template <class T>
BlockFunction block_of(CompareMap<T> map) {
  if (!map) return {};
  return [map](const void* const* in, void* out, std::int64_t n) {
    map(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<bool*>(out), n);
  };
}

/// Empty where nothing reads and writes halves as they are.
BlockFunction half_function(const PrepareArgs& args) {
  const DType dtype = args.inputs[0].spec.dtype;
  if (!is_half(dtype)) return {};
  const bool f16s = dtype == DType::f16;
  if (const auto* op = std::get_if<Unary>(&args.op)) {
    return f16s ? block_of(f16_unary(op->kind)) : block_of(bf16_unary(op->kind));
  }
  if (const auto* op = std::get_if<Binary>(&args.op)) {
    return f16s ? block_of(f16_binary(op->kind)) : block_of(bf16_binary(op->kind));
  }
  if (const auto* op = std::get_if<Compare>(&args.op)) {
    return f16s ? block_of(f16_compare(op->kind)) : block_of(bf16_compare(op->kind));
  }
  return {};
}

// ---- The others

BlockFunction gated_function(UnaryKind activation, DType dtype) {
  if (dtype == DType::f32) {
    const FloatBinary fast = float_gated(activation);
    if (!fast) return {};
    return [fast](const void* const* in, void* out, std::int64_t n) {
      fast(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]),
           static_cast<float*>(out), n);
    };
  }
  if (dtype != DType::f64) return {};
  BlockFunction act = unary_block(activation, dtype, dtype);
  if (!act || !float_gated(activation)) return {};
  return [act = std::move(act)](const void* const* in, void* out, std::int64_t n) {
    double gate[kBlock];
    const auto* up = static_cast<const double*>(in[1]);
    auto* y = static_cast<double*>(out);
    for (std::int64_t at = 0; at < n; at += kBlock) {
      const std::int64_t m = std::min(kBlock, n - at);
      const void* from = static_cast<const double*>(in[0]) + at;
      act(&from, gate, m);
      for (std::int64_t i = 0; i < m; ++i) y[at + i] = gate[i] * up[at + i];
    }
  };
}

BlockFunction function_of(const PrepareArgs& args) {
  const DType dtype = compute_dtype(args.inputs[0].spec.dtype);
  if (const auto* op = std::get_if<Unary>(&args.op)) {
    return unary_block(op->kind, dtype, compute_dtype(args.outputs[0].spec.dtype));
  }
  if (const auto* op = std::get_if<Binary>(&args.op)) return binary_block(op->kind, dtype);
  if (const auto* op = std::get_if<Compare>(&args.op)) return compare_block(op->kind, dtype);
  return gated_function(std::get<GatedMultiply>(args.op).activation, dtype);
}

}  // namespace

Prepared prepare_elementwise(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind != LayoutKind::strided || is_block(input.spec.dtype)) {
      return refuse(fmt::format("{}: operands must be strided and of a plain dtype, one is {}",
                                name(args.op), to_string(input)));
    }
  }
  if (std::holds_alternative<Select>(args.op)) {
    return make_on_bits(args, select_block(item_size(args.outputs[0].spec.dtype)));
  }
  if (BlockFunction halves = half_function(args)) return make_on_bits(args, std::move(halves));
  BlockFunction function = function_of(args);
  if (!function) {
    return refuse(fmt::format("{} of {} is not defined", name(args.op),
                              to_string(args.inputs[0].spec.dtype)));
  }
  return make_elementwise(args, std::move(function));
}

}  // namespace heddle::cpu
