#include "device/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/parallel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// How much of each row counts: all, or in causal softmax a beginning, behind which are zeros.
struct RowLengths {
  std::int64_t length, queries = 0;

  std::int64_t of(std::int64_t row) const {
    if (queries == 0) return length;
    return std::clamp<std::int64_t>(length - queries + row % queries + 1, 0, length);
  }
};

struct SoftmaxRows {
  /// Terms that wait for their sum beside an output that they cannot wait in; those of longer rows
  /// are computed twice.
  static constexpr std::int64_t kLongestWaiting = 4096;

  BlockSource x;
  BlockSink sink;
  RowLengths lengths;
  const RowOps* ops;

  /// Streamed rows are best computed many at a time.
  std::int64_t fewest_rows() const { return sink.streams() ? 16 : 1; }

  void rows(const std::byte* in, std::byte* out, std::int64_t begin, std::int64_t end) const {
    const StreamFence fence;
    if (sink.streams() && lengths.queries == 0) return streamed_rows(in, out, begin, end);
    for (std::int64_t r = begin; r < end; ++r) row(in, out, r);
  }

 private:
  void row(const std::byte* in, std::byte* out, std::int64_t r) const {
    const std::int64_t begin = r * lengths.length, length = lengths.of(r);
    if (lengths.length <= kBlock && x.in_place() && sink.in_place()) {
      return short_row(in, out, begin, length);
    }
    const float shift = largest(in, begin, length);
    alignas(64) float waiting[kLongestWaiting];
    const bool waits = !sink.in_place() && length <= kLongestWaiting;
    float* terms = waits ? waiting : nullptr;
    if (sink.in_place()) terms = reinterpret_cast<float*>(out) + begin;
    const float sum = exponentials(in, terms, begin, length, shift, [](std::int64_t) {});
    // A row of -inf sums to 0 and gives zeros; NaN anywhere makes the sum NaN.
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    BlockBuffer x_scratch, scratch;
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      float* target = sink.float_target(out, begin + i, scratch);
      if (!terms) ops->exp_sum(x.floats(in, begin + i, n, x_scratch), shift, target, n);
      ops->scale(terms ? terms + i : target, factor, target, n);
      sink.store(target, out, begin + i, n);
    }
    for (std::int64_t i = length; i < lengths.length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, lengths.length - i);
      float* target = sink.float_target(out, begin + i, scratch);
      std::fill_n(target, n, 0.0f);
      sink.store(target, out, begin + i, n);
    }
  }

  void short_row(const std::byte* in, std::byte* out, std::int64_t begin,
                 std::int64_t length) const {
    const auto* from = reinterpret_cast<const float*>(in) + begin;
    auto* to = reinterpret_cast<float*>(out) + begin;
    const std::int64_t bytes = lengths.length * static_cast<std::int64_t>(sizeof(float));
    prefetch_later(from + lengths.length, bytes);  // the next row, while this one is computed
    prefetch_for_write(to + lengths.length, bytes);
    ops->softmax(from, length, to, lengths.length);
  }

  /// A row whose terms wait to be scaled.
  struct Waiting {
    alignas(64) float terms[kLongestWaiting];
    std::int64_t begin = -1;
    float factor = 0;
  };

  /// Each row is scaled and streamed by blocks while the next one is computed, which keeps memory
  /// as busy as the processor.
  void streamed_rows(const std::byte* in, std::byte* out, std::int64_t first,
                     std::int64_t last) const {
    Waiting waiting[2];
    const std::int64_t length = lengths.length;
    for (std::int64_t r = first; r < last; ++r) {
      Waiting &row = waiting[r % 2], &before = waiting[(r + 1) % 2];
      row.begin = r * length;
      const float shift = largest(in, row.begin, length);
      const float sum = exponentials(in, row.terms, row.begin, length, shift,
                                     [&](std::int64_t i) { finish(before, out, i); });
      row.factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    }
    for (std::int64_t i = 0; i < length; i += kBlock) finish(waiting[(last + 1) % 2], out, i);
  }

  /// The block at i of a row that waits, if there is one.
  void finish(const Waiting& row, std::byte* out, std::int64_t i) const {
    if (row.begin < 0) return;
    const std::int64_t n = std::min(kBlock, lengths.length - i);
    BlockBuffer scratch;
    float* target = sink.float_target(out, row.begin + i, scratch);
    ops->scale(row.terms + i, row.factor, target, n);
    sink.store(target, out, row.begin + i, n);
  }

  /// The row's largest element, or 0 if it is -inf or NaN.
  float largest(const std::byte* in, std::int64_t begin, std::int64_t length) const {
    BlockBuffer scratch;
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      const float block = ops->max(x.floats(in, begin + i, n, scratch), n);
      if (block > max) max = block;
    }
    return max > -std::numeric_limits<float>::infinity() ? max : 0.0f;
  }

  /// The sum of e^(x - shift), leaving the terms in `terms`, if that is not null. After each block,
  /// at i, other(i) is called.
  template <class Other>
  float exponentials(const std::byte* in, float* terms, std::int64_t begin, std::int64_t length,
                     float shift, const Other& other) const {
    constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
    BlockBuffer x_scratch, scratch;
    Pairwise<float> sum;
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      const float* from = x.floats(in, begin + i, n, x_scratch);
      float* to = terms ? terms + i : scratch.floats();
      if (x.in_place()) {  // of the next row, while this one is computed
        prefetch_later(from + length, n * kFloat);
        if (sink.in_place()) prefetch_for_write(to + length, n * kFloat);
      }
      sum.add(ops->exp_sum(from, shift, to, n));
      other(i);
    }
    return sum.total();
  }
};

struct DoubleSoftmaxRows {
  BlockSource x;
  RowLengths lengths;

  static std::int64_t fewest_rows() { return 1; }

  void rows(const std::byte* in, std::byte* out, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t r = begin; r < end; ++r) row(in, out, r);
  }

 private:
  void row(const std::byte* in, std::byte* out, std::int64_t r) const {
    const std::int64_t begin = r * lengths.length, length = lengths.of(r);
    auto* y = reinterpret_cast<double*>(out) + begin;
    BlockBuffer scratch;
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    double max = kLowest;
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      const auto* from = static_cast<const double*>(x.load(in, begin + i, n, scratch));
      for (std::int64_t k = 0; k < n; ++k) {
        y[i + k] = from[k];
        if (from[k] > max) max = from[k];
      }
    }
    const double shift = max > kLowest ? max : 0.0;
    Pairwise<double> sum;
    for (std::int64_t i = 0; i < length; ++i) sum.add(y[i] = std::exp(y[i] - shift));
    const double total = sum.total();
    for (std::int64_t i = 0; i < length; ++i) y[i] = total == 0.0 ? 0.0 : y[i] / total;
    std::fill(y + length, y + lengths.length, 0.0);
  }
};

template <class Rows>
Prepared make_softmax(const PrepareArgs& args, const Rows& kernel) {
  const Shape& shape = args.inputs[0].spec.shape;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const std::int64_t per_leading = shape.size() > 1 && shape[0] > 0 ? rows / shape[0] : 0;

  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = shape.size() > 1;
  allow_in_place(traits, 0, args.outputs[0], args.inputs);
  auto run = [kernel, rows, per_leading](const Launch& launch) {
    const std::int64_t count =
        launch.extent < 0 ? rows : std::min(rows, launch.extent * per_leading);
    constexpr std::int64_t kExpCost = 4;  // against an addition
    const std::int64_t grain = row_grain(kernel.lengths.length * kExpCost);
    parallel(launch.team, count, std::max(grain, kernel.fewest_rows()),
             [&](std::int64_t begin, std::int64_t end) {
               kernel.rows(launch.inputs[0].data, launch.outputs[0].data, begin, end);
             });
  };
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_softmax(const PrepareArgs& args) {
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided || !is_floating(x.spec.dtype)) {
    return refuse(fmt::format("{}: needs a strided operand of a floating dtype, not {}",
                              name(args.op), to_string(x)));
  }
  const Shape& shape = x.spec.shape;
  RowLengths lengths{shape.empty() ? 1 : shape.back()};
  if (std::holds_alternative<CausalSoftmax>(args.op)) lengths.queries = shape[shape.size() - 2];
  if (x.spec.dtype == DType::f64) {
    return make_softmax(args, DoubleSoftmaxRows{BlockSource(x), lengths});
  }
  const TensorSpec& output = args.outputs[0].spec;
  // Long rows' terms wait in the output.
  const BlockSink sink = lengths.length <= SoftmaxRows::kLongestWaiting
                             ? BlockSink::of_output(output)
                             : BlockSink(output.dtype);
  return make_softmax(args, SoftmaxRows{BlockSource(x), sink, lengths, &row_ops()});
}

}  // namespace heddle::cpu
