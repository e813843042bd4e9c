// Programs of element-wise steps, a block at a time: what a step gives waits in the first cache for
// the steps that read it, so that a chain moves as many bytes as its inputs and its result have.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/cpu/affine_chain.h"
#include "device/cpu/block_io.h"
#include "device/cpu/elementwise.h"
#include "device/cpu/parallel.h"
#include "device/cpu/streamed_blocks.h"
#include "device/cpu/types.h"
#include "heddle/op_fused.h"

namespace heddle::cpu {

namespace {

/// Blocks that may be alive at once, inputs that need converting included: 48 KiB of 64-bit
/// elements, 24 of floats.
constexpr std::size_t kRegisters = 12;
constexpr std::size_t kNone = ~std::size_t{0};
/// Inputs of one element, in blocks that are filled once.
constexpr std::size_t kMostNumbers = 32;
/// Values that a program may have.
constexpr std::size_t kMostValues = 96;

/// A block of floats in other sets of a cache than its neighbours are in: where all begin 4 KiB
/// apart, a first cache has room for no more than eight or twelve.
struct Register : BlockBuffer {
  std::byte apart[kBlock * sizeof(float) + kCacheLine];
};

/// One op of a chain that ends in its only reader: with a number, the operand `number`.
struct ChainStep {
  BinaryKind kind;
  std::uint32_t number;
  bool number_first;
};

struct Step {
  BlockFunction function;  // or else:
  std::vector<ChainStep> chain;
  std::array<std::uint32_t, 3> operands{};
  std::size_t operand_count = 0;
  std::uint32_t value = 0;     // the value that it gives
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

/// What a chain does. A sum joins the product before it, if that has none; roundings stay.
class ChainBuilder {
 public:
  /// Room for as many steps as there will be ops.
  explicit ChainBuilder(AffineStep* steps) : steps_(steps) {}

  void append(const ChainStep& op, float number) {
    if (op.kind == BinaryKind::multiply) {
      steps_[count_++] = affine_step(number, kNoAddend);
      has_sum_ = false;
      return;
    }
    const bool subtracts = op.kind == BinaryKind::subtract;
    const bool negates = subtracts && op.number_first;
    if (count_ == 0 || has_sum_ || negates) {
      steps_[count_++] = affine_step(negates ? -1.0f : kNoFactor, kNoAddend);
    }
    steps_[count_ - 1].addends.fill(subtracts && !negates ? -number : number);
    has_sum_ = true;
  }
  std::span<const AffineStep> steps() const { return {steps_, count_}; }

 private:
  AffineStep* steps_;
  std::size_t count_ = 0;
  bool has_sum_ = false;
};

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
    if (sources_.size() + program.steps.size() > kMostValues) return "it has too many values";
    dtypes = value_dtypes(program, dtypes);
    sink_ = BlockSink(output.spec.dtype);
    streaming_sink_ = BlockSink::of_output(output.spec);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const ElementStep& step = program.steps[i];
      BlockFunction function = function_of(step, dtypes, dtypes[inputs.size() + i]);
      if (!function) return "a step is not defined for its dtype: " + to_string(program);
      steps_.push_back({.function = std::move(function),
                        .operands = step.operands,
                        .operand_count = operand_count(step),
                        .value = static_cast<std::uint32_t>(inputs.size() + i)});
    }
    join_chains(program, dtypes);
    is_chain_in_place_ = steps_.size() == 1 && !steps_[0].chain.empty() && sink_.in_place() &&
                         sources_[steps_[0].operands[0]].in_place();
    return assign_registers() ? "" : "its program needs more blocks at once than there are";
  }

  /// Inputs of one element, which all blocks of a launch share: a block of each for steps to read,
  /// and what chains do with it.
  struct Numbers {
    std::array<Register, kMostNumbers> blocks;
    std::array<const void*, kMostValues> values;
    std::array<AffineStep, kMostValues> affine;
    std::array<std::span<const AffineStep>, kMostValues> chains;  // by step
  };

  /// For a launch of so many elements, of which there are some.
  void load_numbers(const Launch& launch, std::int64_t count, Numbers& numbers) const {
    std::array<float, kMostValues> chained;
    BlockBuffer single;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].uniform()) continue;
      const bool is_single = number_blocks_[i] == kNone;
      const std::int64_t n = is_single ? 1 : std::min(kBlock, count);
      BlockBuffer& room = is_single ? single : numbers.blocks[number_blocks_[i]];
      numbers.values[i] = sources_[i].load(launch.inputs[i].data, 0, n, room);
      if (is_chained_[i]) chained[i] = *static_cast<const float*>(numbers.values[i]);
    }
    AffineStep* next = numbers.affine.data();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      ChainBuilder builder(next);
      for (const ChainStep& op : steps_[s].chain) builder.append(op, chained[op.number]);
      numbers.chains[s] = builder.steps();
      next += builder.steps().size();
    }
  }

  void run(const Launch& launch, const Numbers& numbers, std::int64_t begin,
           std::int64_t end) const {
    Pass pass;
    pass.launch = &launch;
    pass.numbers = &numbers;
    pass.streams = streaming_sink_.streams() && !overwrites_input(launch);
    std::optional<StreamFence> fence;
    if (pass.streams) fence.emplace();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].uniform()) pass.values[i] = numbers.values[i];
    }
    const std::int64_t most = is_chain_in_place_ ? end - begin : kBlock;
    for (std::int64_t at = begin; at < end; at += most) {
      const std::int64_t n = std::min(most, end - at);
      for (const std::size_t i : arrays_) pass.values[i] = load(i, at, n, pass);
      block(at, n, pass);
    }
  }

 private:
  /// Some blocks of a launch, one after another.
  struct Pass {
    const Launch* launch;
    const Numbers* numbers;
    bool streams;
    std::array<Register, kRegisters> registers;
    Register result;
    std::array<const void*, kMostValues> values;
  };

  const void* load(std::size_t i, std::int64_t at, std::int64_t n, Pass& pass) const {
    const std::byte* base = pass.launch->inputs[i].data;
    if (sources_[i].in_place()) return sources_[i].at(base, at);
    return sources_[i].load(base, at, n, pass.registers[input_registers_[i]]);
  }

  /// As step s begins: a part of what later blocks read, so that memory is busy all the time.
  void fetch_share(std::size_t s, std::int64_t at, std::int64_t n, const Pass& pass) const {
    const auto share = [&](std::size_t steps) {
      return n * static_cast<std::int64_t>(steps) / static_cast<std::int64_t>(steps_.size());
    };
    const std::int64_t from = share(s), to = share(s + 1);
    for (const std::size_t i : arrays_) {
      fetch_ahead(sources_[i], pass.launch->inputs[i].data, at + from, to - from);
    }
  }

  void block(std::int64_t at, std::int64_t n, Pass& pass) const {
    std::byte* out = pass.launch->outputs[0].data;
    const BlockSink& sink = pass.streams ? streaming_sink_ : sink_;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      if (pass.streams && !is_chain_in_place_) fetch_share(s, at, n, pass);
      std::array<const void*, 3> in{};
      for (std::size_t i = 0; i < step.operand_count; ++i) in[i] = pass.values[step.operands[i]];
      const bool is_last = step.result == kNone;
      void* target =
          is_last ? sink.target(out, at, pass.result) : pass.registers[step.result].bytes;
      if (step.chain.empty()) {
        step.function(in.data(), target, n);
      } else if (is_last && pass.streams && sink_.in_place()) {
        return affine_chain_streamed(static_cast<const float*>(in[0]), pass.numbers->chains[s],
                                     sink_.float_target(out, at, pass.result), n);
      } else {
        affine_chain(static_cast<const float*>(in[0]), pass.numbers->chains[s],
                     static_cast<float*>(target), n);
      }
      pass.values[step.value] = target;
    }
    sink.store(pass.values[steps_.back().value], out, at, n);
  }

  // ---- Chains

  /// How `step` is one of a chain that goes on from its operand `from`, if it can be.
  std::optional<ChainStep> as_chain_step(const ElementStep& step, const std::vector<DType>& dtypes,
                                         std::size_t from) const {
    const auto* op = std::get_if<Binary>(&step.op);
    const bool kind_suits =
        op && (op->kind == BinaryKind::add || op->kind == BinaryKind::subtract ||
               op->kind == BinaryKind::multiply);
    const std::uint32_t number = step.operands[1 - from];
    if (!kind_suits || compute_dtype(dtypes[number]) != DType::f32) return std::nullopt;
    if (number >= sources_.size() || !sources_[number].uniform()) return std::nullopt;
    return ChainStep{op->kind, number, from == 1};
  }

  /// Joins steps with numbers into chains, where one is all that reads the other.
  void join_chains(const ElementProgram& program, const std::vector<DType>& dtypes) {
    std::vector<int> readers(sources_.size() + program.steps.size(), 0);
    for (const Step& step : steps_) {
      for (std::size_t i = 0; i < step.operand_count; ++i) ++readers[step.operands[i]];
    }
    std::vector<Step> joined;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      std::optional<ChainStep> link;
      std::size_t from = 0;
      for (; from < 2 && !link; ++from) link = as_chain_step(program.steps[s], dtypes, from);
      if (!link) {
        joined.push_back(std::move(steps_[s]));
        continue;
      }
      const std::uint32_t begin = program.steps[s].operands[from - 1];
      const bool goes_on = !joined.empty() && !joined.back().chain.empty() &&
                           joined.back().value == begin && readers[begin] == 1;
      if (!goes_on) joined.push_back({.operands = {begin}, .operand_count = 1});
      joined.back().chain.push_back(*link);
      joined.back().value = steps_[s].value;
    }
    // One op alone is done by its function.
    for (Step& step : joined) {
      if (step.chain.size() == 1) step = std::move(steps_[step.value - sources_.size()]);
    }
    steps_ = std::move(joined);
    find_chained();
  }

  void find_chained() {
    is_chained_.assign(sources_.size(), false);
    for (const Step& step : steps_) {
      for (const ChainStep& op : step.chain) is_chained_[op.number] = true;
    }
  }

  // ---- Registers

  /// Inputs that are not read where they lie keep a register throughout; steps share the rest, each
  /// from where its value is made to where it is last read.
  bool assign_registers() {
    std::vector<std::size_t> last_read(kMostValues, 0);
    std::vector<bool> is_operand(kMostValues, false);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (std::size_t i = 0; i < steps_[s].operand_count; ++i) {
        last_read[steps_[s].operands[i]] = s;
        is_operand[steps_[s].operands[i]] = true;
      }
    }
    std::vector<std::size_t> free;
    for (std::size_t r = kRegisters; r-- > 0;) free.push_back(r);
    if (!place_inputs(is_operand, free)) return false;
    for (std::size_t s = 0; s + 1 < steps_.size(); ++s) {
      if (free.empty()) return false;
      steps_[s].result = free.back();
      free.pop_back();
      for (std::size_t made = 0; made < s; ++made) {
        if (last_read[steps_[made].value] == s) free.push_back(steps_[made].result);
      }
    }
    return true;
  }

  bool place_inputs(const std::vector<bool>& is_operand, std::vector<std::size_t>& free) {
    std::size_t numbers = 0;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const bool uniform = sources_[i].uniform();
      if (!uniform) arrays_.push_back(i);
      const bool needs_register = !uniform && !sources_[i].in_place();
      if (needs_register && free.empty()) return false;
      input_registers_.push_back(needs_register ? free.back() : kNone);
      if (needs_register) free.pop_back();
      const bool needs_block = uniform && is_operand[i] && !sources_[i].in_place();
      if (needs_block && numbers == kMostNumbers) return false;
      number_blocks_.push_back(needs_block ? numbers++ : kNone);
    }
    return true;
  }

  std::vector<BlockSource> sources_;
  std::vector<std::size_t> arrays_;  // inputs of more than one element
  // By input:
  std::vector<std::size_t> input_registers_, number_blocks_;
  std::vector<bool> is_chained_;
  std::vector<Step> steps_;
  bool is_chain_in_place_ = false;  // so that blocks may be of any length
  BlockSink sink_, streaming_sink_;
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
    if (count == 0) return;
    FusedKernel::Numbers numbers;
    kernel.load_numbers(launch, count, numbers);
    parallel(launch.team, count, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      kernel.run(launch, numbers, begin, end);
    });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu
