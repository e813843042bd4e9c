// rms_norm, add_rms_norm and layer_norm over the last axis, for f32, f16 and bf16.
#include <array>
#include <cmath>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/math_ops.h"
#include "device/cpu/parallel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// A row of an operand of floats, loaded a block at a time.
struct Row {
  const BlockSource& source;
  const std::byte* base;
  std::int64_t begin, length;
  std::int64_t target;  // where its first element goes
  /// What the next row is made of, to be fetched meanwhile; null for nothing.
  std::array<const std::byte*, 2> next{};

  const float* block(std::int64_t at, std::int64_t n, BlockBuffer& scratch) const {
    return source.floats(base, begin + at, n, scratch);
  }
};

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

template <class SumBlock>
float sum_row(const Row& row, const SumBlock& sum_block) {
  BlockBuffer scratch;
  Pairwise<float> sum;
  for (std::int64_t at = 0; at < row.length; at += kBlock) {
    const std::int64_t n = std::min(kBlock, row.length - at);
    for (const std::byte* next : row.next) {
      if (next) prefetch_later(next + at * kFloat, n * kFloat);
    }
    sum.add(sum_block(row.block(at, n, scratch), n));
  }
  return sum.total();
}

/// How rows are scaled and shifted, and where the result goes.
struct Normalizer {
  BlockSource weight, bias;
  bool has_weight = false, has_bias = false;
  BlockSink sink;
  std::int64_t length = 0;
  float eps = 0;
  const RowOps* ops = nullptr;

  struct Operands {
    const std::byte *weight, *bias;
    std::byte* out;
  };

  void rms(const Row& row, const Operands& at) const {
    const float squares = sum_row(row, ops->sum_squares);
    const float mean_square = squares / static_cast<float>(length);
    apply(row, 0.0f, 1.0f / std::sqrt(mean_square + eps), at);
  }

  void layer(const Row& row, const Operands& at) const {
    Row again = row;
    again.next = {};
    const float mean = sum_row(row, ops->sum) / static_cast<float>(length);
    const float squares = sum_row(again, [&](const float* x, std::int64_t n) {
      return ops->sum_squared_deviations(x, mean, n);
    });
    apply(row, mean, 1.0f / std::sqrt(squares / static_cast<float>(length) + eps), at);
  }

 private:
  void apply(const Row& row, float mean, float scale, const Operands& operands) const {
    BlockBuffer x_scratch, weight_scratch, bias_scratch, out_scratch;
    for (std::int64_t at = 0; at < length; at += kBlock) {
      const std::int64_t n = std::min(kBlock, length - at);
      const float* x = row.block(at, n, x_scratch);
      const float* w = has_weight ? weight.floats(operands.weight, at, n, weight_scratch) : nullptr;
      const float* b = has_bias ? bias.floats(operands.bias, at, n, bias_scratch) : nullptr;
      float* out = sink.float_target(operands.out, row.target + at, out_scratch);
      if (row.next[0] && sink.in_place()) prefetch_for_write(out + length, n * kFloat);
      ops->normalize(x, mean, scale, w, b, out, n);
      sink.store(out, operands.out, row.target + at, n);
    }
  }
};

Normalizer make_normalizer(const PrepareArgs& args, std::size_t first_parameter, float eps,
                           bool has_weight, bool has_bias) {
  Normalizer normalizer;
  std::size_t next = first_parameter;
  if (has_weight) normalizer.weight = BlockSource(args.inputs[next++]);
  if (has_bias) normalizer.bias = BlockSource(args.inputs[next++]);
  normalizer.has_weight = has_weight;
  normalizer.has_bias = has_bias;
  normalizer.sink = BlockSink::of_output(args.outputs.back().spec);
  normalizer.length = args.inputs[0].spec.shape.back();
  normalizer.eps = eps;
  normalizer.ops = &row_ops();
  return normalizer;
}

Normalizer::Operands parameters(const Normalizer& normalizer, const Launch& launch,
                                std::size_t first, std::byte* out) {
  Normalizer::Operands at{nullptr, nullptr, out};
  if (normalizer.has_weight) at.weight = launch.inputs[first++].data;
  if (normalizer.has_bias) at.bias = launch.inputs[first].data;
  return at;
}

std::string refusal(const PrepareArgs& args) {
  for (const OperandSpec& input : args.inputs) {
    if (input.layout.kind != LayoutKind::strided || !is_float_like(input.spec.dtype)) {
      return fmt::format("{}: operands must be strided f32, f16 or bf16, one is {}", name(args.op),
                         to_string(input));
    }
  }
  return {};
}

/// Rows along all axes but the last, and how many of them one of axis 0 holds.
struct RowCount {
  std::int64_t rows, per_leading_row;
  explicit RowCount(const Shape& shape) {
    const std::int64_t leading = shape.size() > 1 ? shape[0] : 1;
    rows = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    per_leading_row = leading == 0 ? 0 : rows / leading;
  }
  std::int64_t that_count(std::int64_t extent) const {
    return extent < 0 ? rows : std::min(rows, extent * per_leading_row);
  }
};

KernelTraits norm_traits(const PrepareArgs& args) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = args.inputs[0].spec.shape.size() > 1;
  return traits;
}

template <class NormalizeRow>
Prepared prepare_single(const PrepareArgs& args, const Normalizer& normalizer,
                        NormalizeRow normalize_row) {
  KernelTraits traits = norm_traits(args);
  allow_in_place(traits, 0, args.outputs[0], args.inputs.first(1));
  const RowCount count(args.inputs[0].spec.shape);
  auto run = [normalizer, count, normalize_row,
              x = BlockSource(args.inputs[0])](const Launch& launch) {
    const auto at = parameters(normalizer, launch, 1, launch.outputs[0].data);
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      const StreamFence fence;
      const std::byte* base = launch.inputs[0].data;
      const std::int64_t length = normalizer.length;
      for (std::int64_t r = begin; r < end; ++r) {
        const std::byte* next = x.in_place() ? x.at(base, (r + 1) * length) : nullptr;
        (normalizer.*normalize_row)({x, base, r * length, length, r * length, {next}}, at);
      }
    };
    parallel(launch.team, count.that_count(launch.extent), row_grain(normalizer.length), rows);
  };
  return make_kernel(std::move(traits), std::move(run));
}

/// a + b, in the outputs' dtype, and the norm of what was stored: the same bits as the two ops
/// give.
struct AddThenNorm {
  /// Elements of a row whose sums wait beside the output that they are streamed to.
  static constexpr std::int64_t kLongestWaiting = 4096;

  Normalizer normalizer;
  BlockSource a, b, sum_source;
  BlockSink sum_sink, streaming_sink;
  FloatBinary add = nullptr;

  void row(const Launch& launch, const Normalizer::Operands& at, std::int64_t r) const {
    const std::int64_t length = normalizer.length, begin = r * length;
    std::byte* sums = launch.outputs[0].data;
    const bool waits = streaming_sink.streams() && sum_sink.in_place() && length <= kLongestWaiting;
    if (!waits) {
      add_up(launch, begin, sums, begin);
      return normalizer.rms({sum_source, sums, begin, length, begin, next_row(launch, begin)}, at);
    }
    alignas(64) std::byte waiting[kLongestWaiting * sizeof(float)];
    add_up(launch, begin, waiting, 0);
    normalizer.rms({sum_source, waiting, 0, length, begin, next_row(launch, begin)}, at);
    for (std::int64_t i = 0; i < length; i += kBlock) {
      BlockBuffer unused;
      streaming_sink.store(sum_source.load(waiting, i, kBlock, unused), sums, begin + i,
                           std::min(kBlock, length - i));
    }
  }

 private:
  /// The row's sums, to element `target` of `sums` and on.
  void add_up(const Launch& launch, std::int64_t begin, std::byte* sums,
              std::int64_t target) const {
    BlockBuffer a_scratch, b_scratch, sum_scratch;
    for (std::int64_t i = 0; i < normalizer.length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, normalizer.length - i);
      float* sum = sum_sink.float_target(sums, target + i, sum_scratch);
      add(a.floats(launch.inputs[0].data, begin + i, n, a_scratch),
          b.floats(launch.inputs[1].data, begin + i, n, b_scratch), sum, n);
      sum_sink.store(sum, sums, target + i, n);
    }
  }

  std::array<const std::byte*, 2> next_row(const Launch& launch, std::int64_t begin) const {
    if (!a.in_place() || !b.in_place()) return {};
    const std::int64_t next = begin + normalizer.length;
    return {a.at(launch.inputs[0].data, next), b.at(launch.inputs[1].data, next)};
  }
};

Prepared prepare_add(const PrepareArgs& args, const AddRmsNorm& op) {
  if (args.outputs[0].spec.dtype != args.outputs[1].spec.dtype) {
    return refuse("add_rms_norm: its outputs must have one dtype");
  }
  KernelTraits traits = norm_traits(args);
  allow_in_place(traits, 0, args.outputs[0], args.inputs.first(2));
  allow_in_place(traits, 1, args.outputs[1], args.inputs.first(2));
  const RowCount count(args.outputs[0].spec.shape);
  const Shape& shape = args.outputs[0].spec.shape;
  const AddThenNorm kernel{make_normalizer(args, 2, op.eps, op.has_weight, op.has_bias),
                           BlockSource(args.inputs[0], shape),
                           BlockSource(args.inputs[1], shape),
                           BlockSource(args.outputs[0]),
                           BlockSink(args.outputs[0].spec.dtype),
                           BlockSink::of_output(args.outputs[0].spec),
                           float_binary(BinaryKind::add)};
  auto run = [kernel, count](const Launch& launch) {
    const auto at = parameters(kernel.normalizer, launch, 2, launch.outputs[1].data);
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      const StreamFence fence;
      for (std::int64_t r = begin; r < end; ++r) kernel.row(launch, at, r);
    };
    parallel(launch.team, count.that_count(launch.extent), row_grain(kernel.normalizer.length),
             rows);
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_norm(const PrepareArgs& args) {
  if (std::string reason = refusal(args); !reason.empty()) return refuse(std::move(reason));
  if (const auto* op = std::get_if<RmsNorm>(&args.op)) {
    return prepare_single(args, make_normalizer(args, 1, op->eps, op->has_weight, op->has_bias),
                          &Normalizer::rms);
  }
  if (const auto* op = std::get_if<LayerNorm>(&args.op)) {
    return prepare_single(args, make_normalizer(args, 1, op->eps, op->has_weight, op->has_bias),
                          &Normalizer::layer);
  }
  return prepare_add(args, std::get<AddRmsNorm>(args.op));
}

}  // namespace heddle::cpu
