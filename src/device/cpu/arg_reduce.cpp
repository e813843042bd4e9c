// arg_reduce: where the largest or smallest elements along an axis are.
#include <algorithm>
#include <complex>
#include <type_traits>

#include "device/cpu/arg_ops.h"
#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// Whether `a`, which comes later, takes the place of `b`. NaN beats all numbers.
template <bool kLargest, class T>
bool beats(T a, T b) {
  return (kLargest ? a > b : a < b) || (a != a && b == b);
}

template <class T, bool kLargest>
struct Finder {
  Lines lines;
  BlockSource source;

  void run(const Launch& launch) const {
    for_each_bundle(launch, lines, [&](const Bundle& bundle) {
      if (lines.inner == 1) return along(launch, bundle.outer);
      across(launch, bundle);
    });
  }

 private:
  /// One line whose elements lie side by side, dealt out to lanes; of equals, the first wins again
  /// when the lanes meet.
  void along(const Launch& launch, std::int64_t line) const {
    if constexpr (std::is_same_v<T, float>) {
      if (arg_ops().largest) return along_floats(launch, line);
    }
    constexpr std::int64_t kLanes = 16;
    BlockBuffer scratch;
    T best[kLanes];
    std::uint32_t index[kLanes] = {};
    for (std::int64_t i = 0; i < lines.length; i += kBlock) {
      const std::int64_t n = std::min(kBlock, lines.length - i);
      const auto* x =
          static_cast<const T*>(source.load(launch.inputs[0].data, lines.at(line, i), n, scratch));
      if (i == 0) std::fill_n(best, kLanes, x[0]);
      std::int64_t k = 0;
      for (; k + kLanes <= n; k += kLanes) keep_better(x + k, i + k, kLanes, best, index);
      keep_better(x + k, i + k, n - k, best, index);
    }
    std::int64_t first = 0;
    for (std::int64_t l = 1; l < kLanes; ++l) {
      const bool equal = !beats<kLargest>(best[first], best[l]);
      if (beats<kLargest>(best[l], best[first]) || (equal && index[l] < index[first])) first = l;
    }
    launch.outputs[0].as<std::uint32_t>()[line] = index[first];
  }

  /// As they lie, or by blocks, whose extremes are compared.
  void along_floats(const Launch& launch, std::int64_t line) const {
    const FindExtreme find = kLargest ? arg_ops().largest : arg_ops().smallest;
    constexpr std::int64_t kAhead = 4 * kBlock;
    BlockBuffer scratch;
    const std::int64_t most = source.in_place() ? lines.length : kBlock;
    float best = 0;
    std::int64_t where = 0;
    for (std::int64_t i = 0; i < lines.length; i += most) {
      const std::int64_t n = std::min(most, lines.length - i);
      const float* x = source.floats(launch.inputs[0].data, lines.at(line, i), n, scratch);
      const std::int64_t at = find(x, source.in_place() ? x + kAhead : nullptr, n);
      if (i > 0 && !beats<kLargest>(x[at], best)) continue;
      best = x[at];
      where = i + at;
    }
    launch.outputs[0].as<std::uint32_t>()[line] = static_cast<std::uint32_t>(where);
  }

  /// Elements i, i + 1, ... of a line against the best of their lanes.
  static void keep_better(const T* x, std::int64_t i, std::int64_t n, T* best,
                          std::uint32_t* index) {
    for (std::int64_t c = 0; c < n; ++c) {
      const bool better = beats<kLargest>(x[c], best[c]);
      best[c] = better ? x[c] : best[c];
      index[c] = better ? static_cast<std::uint32_t>(i + c) : index[c];
    }
  }

  void across(const Launch& launch, const Bundle& bundle) const {
    BlockBuffer scratch;
    T best[kWidestBundle];
    std::uint32_t index[kWidestBundle] = {};
    for (std::int64_t i = 0; i < lines.length; ++i) {
      const std::int64_t at = lines.at(bundle.outer, i) + bundle.column;
      const auto* x =
          static_cast<const T*>(source.load(launch.inputs[0].data, at, bundle.columns, scratch));
      if (i == 0) std::copy_n(x, bundle.columns, best);
      for (std::int64_t c = 0; c < bundle.columns; ++c) {
        const bool better = beats<kLargest>(x[c], best[c]);
        best[c] = better ? x[c] : best[c];
        index[c] = better ? static_cast<std::uint32_t>(i) : index[c];
      }
    }
    std::copy_n(index, bundle.columns,
                launch.outputs[0].as<std::uint32_t>() + bundle.outer * lines.inner + bundle.column);
  }
};

template <class T, bool kLargest>
Run finder_run(const Lines& lines, const OperandSpec& x) {
  return [finder = Finder<T, kLargest>{lines, BlockSource(x)}](const Launch& launch) {
    finder.run(launch);
  };
}

}  // namespace

Prepared prepare_arg_reduce(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const auto& op = std::get<ArgReduce>(args.op);
  const OperandSpec& x = args.inputs[0];
  const Lines lines(x.spec.shape, op.axis);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = lines.honours_extent();
  Run run = with_compute_type(x.spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      return {};  // infer refuses it
    } else {
      return op.kind == ArgReduceKind::max ? finder_run<T, true>(lines, x)
                                           : finder_run<T, false>(lines, x);
    }
  });
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu
