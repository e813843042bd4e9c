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
  BlockSource x;
  BlockSink sink;
  RowLengths lengths;
  const RowOps* ops;

  void row(const std::byte* in, std::byte* out, std::int64_t r) const {
    const std::int64_t begin = r * lengths.length, length = lengths.of(r);
    const float shift = largest(in, begin, length);
    const float sum = exponentials(in, out, begin, length, shift);
    // A row of -inf sums to 0 and gives zeros; NaN anywhere makes the sum NaN.
    const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    BlockBuffer x_scratch, scratch;
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      float* target = sink.float_target(out, begin + i, scratch);
      if (!sink.in_place()) {
        ops->exp_sum(x.floats(in, begin + i, n, x_scratch), shift, target, n);
      }
      ops->scale(target, factor, target, n);
      sink.store(target, out, begin + i, n);
    }
    for (std::int64_t i = length; i < lengths.length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, lengths.length - i);
      float* target = sink.float_target(out, begin + i, scratch);
      std::fill_n(target, n, 0.0f);
      sink.store(target, out, begin + i, n);
    }
  }

 private:
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

  /// The sum of e^(x - shift), leaving the terms in `out` where it holds floats.
  float exponentials(const std::byte* in, std::byte* out, std::int64_t begin, std::int64_t length,
                     float shift) const {
    BlockBuffer x_scratch, scratch;
    Pairwise<float> sum;
    for (std::int64_t i = 0; i < length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, length - i);
      const float* from = x.floats(in, begin + i, n, x_scratch);
      if (x.in_place() && sink.in_place()) {  // of the next row, while this one is computed
        prefetch(from + length, n * static_cast<int>(sizeof(float)));
        prefetch_for_write(sink.float_target(out, begin + i + length, scratch),
                           n * static_cast<int>(sizeof(float)));
      }
      sum.add(ops->exp_sum(from, shift, sink.float_target(out, begin + i, scratch), n));
    }
    return sum.total();
  }
};

struct DoubleSoftmaxRows {
  BlockSource x;
  BlockSink sink;
  RowLengths lengths;

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
    parallel(launch.team, count, row_grain(kernel.lengths.length * kExpCost),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t r = begin; r < end; ++r) {
                 kernel.row(launch.inputs[0].data, launch.outputs[0].data, r);
               }
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
  const BlockSink sink(args.outputs[0].spec.dtype);
  if (x.spec.dtype == DType::f64) {
    return make_softmax(args, DoubleSoftmaxRows{BlockSource(x), sink, lengths});
  }
  return make_softmax(args, SoftmaxRows{BlockSource(x), sink, lengths, &row_ops()});
}

}  // namespace heddle::cpu
