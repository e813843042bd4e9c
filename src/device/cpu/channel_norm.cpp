// channel_norm along any axis, and group_norm, for f32, f16 and bf16. Means and variances are sums
// in double.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// Weight and bias of each channel, as floats.
struct Channels {
  BlockSource weight, bias;
  bool has_weight = false, has_bias = false;

  Channels(const PrepareArgs& args, bool weighs, bool shifts)
      : has_weight(weighs), has_bias(shifts) {
    if (has_weight) weight = BlockSource(args.inputs[1]);
    if (has_bias) bias = BlockSource(args.inputs[1 + std::size_t{has_weight}]);
  }
  const float* weights(const Launch& launch, std::int64_t begin, std::int64_t n,
                       BlockBuffer& scratch) const {
    return has_weight ? weight.floats(launch.inputs[1].data, begin, n, scratch) : nullptr;
  }
  const float* biases(const Launch& launch, std::int64_t begin, std::int64_t n,
                      BlockBuffer& scratch) const {
    const std::size_t operand = 1 + std::size_t{has_weight};
    return has_bias ? bias.floats(launch.inputs[operand].data, begin, n, scratch) : nullptr;
  }
};

// ---- Along an axis

struct ChannelNormalizer {
  Lines lines;
  Channels channels;
  float eps = 0;
  BlockSource x;
  BlockSink sink;

  void normalize(const Launch& launch, const Bundle& bundle) const {
    double mean[kWidestBundle] = {}, scale[kWidestBundle] = {};
    const auto count = static_cast<double>(lines.length);
    for_each_row(launch, bundle, [&](std::int64_t, const float* row) {
      for (std::int64_t c = 0; c < bundle.columns; ++c) mean[c] += row[c];
    });
    for (std::int64_t c = 0; c < bundle.columns; ++c) mean[c] /= count;
    for_each_row(launch, bundle, [&](std::int64_t, const float* row) {
      for (std::int64_t c = 0; c < bundle.columns; ++c) {
        scale[c] += (row[c] - mean[c]) * (row[c] - mean[c]);
      }
    });
    for (std::int64_t c = 0; c < bundle.columns; ++c) {
      scale[c] = 1 / std::sqrt(scale[c] / count + static_cast<double>(eps));
    }
    write(launch, bundle, mean, scale);
  }

 private:
  template <class F>
  void for_each_row(const Launch& launch, const Bundle& bundle, const F& f) const {
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < lines.length; ++i) {
      const std::int64_t at = lines.at(bundle.outer, i) + bundle.column;
      f(i, x.floats(launch.inputs[0].data, at, bundle.columns, scratch));
    }
  }

  void write(const Launch& launch, const Bundle& bundle, const double* mean,
             const double* scale) const {
    BlockBuffer weight_scratch, bias_scratch, out_scratch;
    const float *w = nullptr, *b = nullptr;
    std::byte* out = launch.outputs[0].data;
    for_each_row(launch, bundle, [&](std::int64_t i, const float* row) {
      if (i % kBlock == 0) {
        const std::int64_t n = std::min(kBlock, lines.length - i);
        w = channels.weights(launch, i, n, weight_scratch);
        b = channels.biases(launch, i, n, bias_scratch);
      }
      const double factor = w ? static_cast<double>(w[i % kBlock]) : 1;
      const double shift = b ? static_cast<double>(b[i % kBlock]) : 0;
      const std::int64_t at = lines.at(bundle.outer, i) + bundle.column;
      float* to = sink.float_target(out, at, out_scratch);
      for (std::int64_t c = 0; c < bundle.columns; ++c) {
        to[c] = static_cast<float>((row[c] - mean[c]) * scale[c] * factor + shift);
      }
      sink.store(to, out, at, bundle.columns);
    });
  }
};

// ---- In groups

struct GroupNormalizer {
  std::int64_t batch = 0, positions = 1, channels_in_all = 0, groups = 1;
  Channels channels;
  float eps = 0;
  BlockSource x;
  BlockSink sink;
  const RowOps* ops = nullptr;

  std::int64_t width() const { return channels_in_all / groups; }
  /// Groups that a task takes together: narrow ones side by side.
  std::int64_t groups_at_once() const {
    return std::clamp<std::int64_t>(kBundle / std::max<std::int64_t>(1, width()), 1, groups);
  }
  std::int64_t tasks() const { return (groups + groups_at_once() - 1) / groups_at_once(); }

  void run_task(const Launch& launch, std::int64_t image, std::int64_t task) const {
    const std::int64_t first = task * groups_at_once();
    if (width() > kBundle) return normalize(launch, image, first);
    const std::int64_t count = std::min(groups_at_once(), groups - first);
    normalize_side_by_side(launch, {image, first * width(), count * width()});
  }

 private:
  /// Whole groups whose channels make a bundle.
  void normalize_side_by_side(const Launch& launch, const Bundle& bundle) const {
    double mean[kWidestBundle] = {}, scale[kWidestBundle] = {};
    const std::int64_t n = bundle.columns;
    for_each_row(launch, bundle, [&](std::int64_t, const float* row) {
      for (std::int64_t c = 0; c < n; ++c) mean[c] += row[c];
    });
    average_groups(mean, n);
    for_each_row(launch, bundle, [&](std::int64_t, const float* row) {
      for (std::int64_t c = 0; c < n; ++c) scale[c] += (row[c] - mean[c]) * (row[c] - mean[c]);
    });
    average_groups(scale, n);
    for (std::int64_t c = 0; c < n; ++c) {
      scale[c] = 1 / std::sqrt(scale[c] + static_cast<double>(eps));
    }
    BlockBuffer weight_scratch, bias_scratch, out_scratch;
    const float* w = channels.weights(launch, bundle.column, n, weight_scratch);
    const float* b = channels.biases(launch, bundle.column, n, bias_scratch);
    double shift[kWidestBundle];
    for (std::int64_t c = 0; c < n; ++c) {
      if (w) scale[c] *= static_cast<double>(w[c]);
      shift[c] = b ? static_cast<double>(b[c]) : 0;
    }
    std::byte* out = launch.outputs[0].data;
    for_each_row(launch, bundle, [&](std::int64_t at, const float* row) {
      float* to = sink.float_target(out, at, out_scratch);
      for (std::int64_t c = 0; c < n; ++c) {
        to[c] = static_cast<float>((row[c] - mean[c]) * scale[c] + shift[c]);
      }
      sink.store(to, out, at, n);
    });
  }

  /// Each group's sum over its columns, by the number of its elements, in all of its columns.
  void average_groups(double* sums, std::int64_t columns) const {
    for (std::int64_t c = 0; c < columns; c += width()) {
      double total = 0;
      for (std::int64_t k = c; k < c + width(); ++k) total += sums[k];
      std::fill_n(sums + c, width(), total / static_cast<double>(positions * width()));
    }
  }

  /// Calls f(first element, values) for every position of the bundle's channels.
  template <class F>
  void for_each_row(const Launch& launch, const Bundle& bundle, const F& f) const {
    BlockBuffer scratch;
    for (std::int64_t p = 0; p < positions; ++p) {
      const std::int64_t at = (bundle.outer * positions + p) * channels_in_all + bundle.column;
      f(at, x.floats(launch.inputs[0].data, at, bundle.columns, scratch));
    }
  }

  void normalize(const Launch& launch, std::int64_t image, std::int64_t group) const {
    const auto count = static_cast<double>(positions * width());
    double sum = 0, squares = 0;
    for_each_block(launch, image, group,
                   [&](std::int64_t, std::int64_t, const float* block, std::int64_t n) {
                     sum += static_cast<double>(ops->sum(block, n));
                   });
    const auto mean = static_cast<float>(sum / count);
    for_each_block(launch, image, group,
                   [&](std::int64_t, std::int64_t, const float* block, std::int64_t n) {
                     squares += static_cast<double>(ops->sum_squared_deviations(block, mean, n));
                   });
    const auto scale =
        static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(eps)));
    BlockBuffer weight_scratch, bias_scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for_each_block(launch, image, group,
                   [&](std::int64_t at, std::int64_t channel, const float* block, std::int64_t n) {
                     float* to = sink.float_target(out, at, out_scratch);
                     ops->normalize(block, mean, scale,
                                    channels.weights(launch, channel, n, weight_scratch),
                                    channels.biases(launch, channel, n, bias_scratch), to, n);
                     sink.store(to, out, at, n);
                   });
  }

  /// Calls f(first element, its channel, values, their number) over the group's elements.
  template <class F>
  void for_each_block(const Launch& launch, std::int64_t image, std::int64_t group,
                      const F& f) const {
    BlockBuffer scratch;
    for (std::int64_t p = 0; p < positions; ++p) {
      for (std::int64_t c = 0; c < width(); c += kBlock) {
        const std::int64_t n = std::min(kBlock, width() - c), channel = group * width() + c;
        const std::int64_t at = (image * positions + p) * channels_in_all + channel;
        f(at, channel, x.floats(launch.inputs[0].data, at, n, scratch), n);
      }
    }
  }
};

Run channel_norm_run(const PrepareArgs& args, const ChannelNorm& op, const Lines& lines) {
  const ChannelNormalizer normalizer{lines, Channels(args, op.has_weight, op.has_bias), op.eps,
                                     BlockSource(args.inputs[0]),
                                     BlockSink(args.outputs[0].spec.dtype)};
  return [normalizer](const Launch& launch) {
    for_each_bundle(launch, normalizer.lines,
                    [&](const Bundle& bundle) { normalizer.normalize(launch, bundle); });
  };
}

Run group_norm_run(const PrepareArgs& args, const GroupNorm& op) {
  const Shape& shape = args.inputs[0].spec.shape;
  std::int64_t positions = 1;
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) positions *= shape[i];
  const GroupNormalizer normalizer{shape[0],
                                   positions,
                                   shape.back(),
                                   op.groups,
                                   Channels(args, op.has_weight, op.has_bias),
                                   op.eps,
                                   BlockSource(args.inputs[0]),
                                   BlockSink(args.outputs[0].spec.dtype),
                                   &row_ops()};
  return [normalizer](const Launch& launch) {
    const std::int64_t tasks = normalizer.tasks();
    const std::int64_t elements =
        normalizer.positions * normalizer.width() * normalizer.groups_at_once();
    parallel(launch.team, rows_that_count(normalizer.batch, launch.extent) * tasks,
             row_grain(elements), [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 normalizer.run_task(launch, i / tasks, i % tasks);
               }
             });
  };
}

}  // namespace

Prepared prepare_channel_norm(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  if (!is_float_like(args.inputs[0].spec.dtype)) {
    return refuse(fmt::format("{}: x must be f32, f16 or bf16, not {}", name(args.op),
                              to_string(args.inputs[0])));
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  allow_in_place(traits, 0, args.outputs[0], args.inputs.first(1));
  if (const auto* op = std::get_if<ChannelNorm>(&args.op)) {
    const Lines lines(args.inputs[0].spec.shape, op->axis);
    traits.honours_extent = lines.honours_extent();
    return make_kernel(std::move(traits), channel_norm_run(args, *op, lines));
  }
  traits.honours_extent = true;
  return make_kernel(std::move(traits), group_norm_run(args, std::get<GroupNorm>(args.op)));
}

}  // namespace heddle::cpu
