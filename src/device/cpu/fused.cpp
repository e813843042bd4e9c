// Programs of element-wise steps, a block at a time: what a step gives waits in the first cache for
// the steps that read it, so that a chain moves as many bytes as its inputs and its result have.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/elementwise.h"
#include "device/cpu/parallel.h"
#include "device/cpu/types.h"
#include "heddle/op_fused.h"

namespace heddle::cpu {

namespace {

/// Blocks that may be alive at once, inputs that need converting included: 48 KiB of 64-bit
/// elements, 24 of floats.
constexpr std::size_t kRegisters = 12;
constexpr std::size_t kNone = kRegisters;

struct Step {
  BlockFunction function;
  std::array<std::uint32_t, 3> operands{};
  std::size_t operand_count = 0;
  std::size_t result = kNone;  // a register; kNone: the output
};

BlockFunction function_of(const ElementStep& step, const std::vector<DType>& dtypes, DType result) {
  const DType first = compute_dtype(dtypes[step.operands[0]]);
  if (const auto* op = std::get_if<Unary>(&step.op)) {
    return unary_block(op->kind, first, compute_dtype(result));
  }
  if (const auto* op = std::get_if<Binary>(&step.op)) return binary_block(op->kind, first);
  if (const auto* op = std::get_if<Compare>(&step.op)) return compare_block(op->kind, first);
  if (std::holds_alternative<Select>(step.op)) {
    return select_block(item_size(compute_dtype(dtypes[step.operands[1]])));
  }
  return conversion_block(first, result);
}

class FusedKernel {
 public:
  /// The reason why not, if it cannot be.
  std::string build(const ElementProgram& program, std::span<const OperandSpec> inputs,
                    const OperandSpec& output) {
    std::vector<DType> dtypes;
    for (const OperandSpec& input : inputs) {
      dtypes.push_back(input.spec.dtype);
      sources_.emplace_back(input, output.spec.shape);
    }
    dtypes = value_dtypes(program, dtypes);
    sink_ = BlockSink(output.spec.dtype);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const ElementStep& step = program.steps[i];
      BlockFunction function = function_of(step, dtypes, dtypes[inputs.size() + i]);
      if (!function) return "a step is not defined for its dtype: " + to_string(program);
      steps_.push_back({std::move(function), step.operands, operand_count(step), kNone});
    }
    return assign_registers()
               ? ""
               : "its program needs more than " + std::to_string(kRegisters) + " blocks at once";
  }

  void run(const Launch& launch, std::int64_t begin, std::int64_t end) const {
    std::array<BlockBuffer, kRegisters> registers;
    std::array<const void*, kMostValues> values;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].uniform()) continue;
      values[i] = load(launch, i, begin, std::min(kBlock, end - begin), registers);
    }
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t n = std::min(kBlock, end - at);
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        if (!sources_[i].uniform()) values[i] = load(launch, i, at, n, registers);
      }
      block(launch.outputs[0].data, at, n, registers, values);
    }
  }

  /// Values that a program may have.
  static constexpr std::size_t kMostValues = 96;
  std::size_t values() const { return sources_.size() + steps_.size(); }

 private:
  using Registers = std::array<BlockBuffer, kRegisters>;
  using Values = std::array<const void*, kMostValues>;

  const void* load(const Launch& launch, std::size_t i, std::int64_t at, std::int64_t n,
                   Registers& registers) const {
    const std::byte* base = launch.inputs[i].data;
    if (sources_[i].in_place()) return sources_[i].at(base, at);
    return sources_[i].load(base, at, n, registers[input_registers_[i]]);
  }

  void block(std::byte* out, std::int64_t at, std::int64_t n, Registers& registers,
             Values& values) const {
    BlockBuffer narrow;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      std::array<const void*, 3> in{};
      for (std::size_t i = 0; i < step.operand_count; ++i) in[i] = values[step.operands[i]];
      void* target =
          step.result == kNone ? sink_.target(out, at, narrow) : registers[step.result].bytes;
      step.function(in.data(), target, n);
      values[sources_.size() + s] = target;
    }
    sink_.store(values[values_last()], out, at, n);
  }
  std::size_t values_last() const { return sources_.size() + steps_.size() - 1; }

  /// Inputs that are not read where they lie keep a register throughout; steps share the rest, each
  /// from where its value is made to where it is last read.
  bool assign_registers() {
    std::vector<std::size_t> free;
    for (std::size_t r = kRegisters; r-- > 0;) free.push_back(r);
    for (const BlockSource& source : sources_) {
      if (!source.in_place() && free.empty()) return false;
      input_registers_.push_back(source.in_place() ? kNone : free.back());
      if (!source.in_place()) free.pop_back();
    }
    std::vector<std::size_t> last_read(sources_.size() + steps_.size(), 0);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (std::size_t i = 0; i < steps_[s].operand_count; ++i) {
        last_read[steps_[s].operands[i]] = s;
      }
    }
    for (std::size_t s = 0; s + 1 < steps_.size(); ++s) {
      if (free.empty()) return false;
      steps_[s].result = free.back();
      free.pop_back();
      for (std::size_t made = 0; made < s; ++made) {
        const bool over = last_read[sources_.size() + made] == s;
        if (over) free.push_back(steps_[made].result);
      }
    }
    return values() <= kMostValues;
  }

  std::vector<BlockSource> sources_;
  std::vector<std::size_t> input_registers_;
  std::vector<Step> steps_;
  BlockSink sink_;
};

}  // namespace

Prepared prepare_fused(const PrepareArgs& args) {
  const OperandSpec& output = args.outputs[0];
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind != LayoutKind::strided) {
      return refuse(fmt::format("fused: operands must be strided, one is {}", to_string(input)));
    }
  }
  FusedKernel kernel;
  const std::string reason = kernel.build(*std::get<Fused>(args.op).program, args.inputs, output);
  if (!reason.empty()) return refuse("fused: " + reason);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !output.spec.shape.empty();
  allow_in_place(traits, 0, output, args.inputs);
  const std::int64_t total = elements(output.spec.shape);
  const Shape& shape = output.spec.shape;
  const std::int64_t per_row = shape.empty() || shape[0] == 0 ? 0 : total / shape[0];
  auto run = [kernel = std::move(kernel), total, per_row](const Launch& launch) {
    const std::int64_t count = launch.extent < 0 ? total : std::min(total, launch.extent * per_row);
    parallel(launch.team, count, kGrainElements,
             [&](std::int64_t begin, std::int64_t end) { kernel.run(launch, begin, end); });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu
