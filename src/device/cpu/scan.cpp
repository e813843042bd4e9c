// Cumulative sums, products, extremes and log-sums along an axis.
//
// A long line is scanned in chunks, whose borders depend on its length only: first their totals,
// then each chunk from what is before it.
#include <complex>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/types.h"
#include "device/cpu/wide_math.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kChunk = 16384;

/// Where floats are added or multiplied, rounding is left to the end.
template <class Kind, class T>
struct ScanAccumulator {
  using type = T;
};
template <class Kind>
struct ScanAccumulator<Kind, float> {
  static constexpr bool kExact = std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>;
  using type = std::conditional_t<kExact, float, double>;
};
template <class Kind>
struct ScanAccumulator<Kind, std::complex<float>> {
  using type = std::complex<double>;
};
template <>
struct ScanAccumulator<Sum, bool> {
  using type = std::int32_t;
};

template <class Kind, class T>
struct Scanner {
  using A = typename ScanAccumulator<Kind, T>::type;
  using Out = std::conditional_t<std::is_same_v<T, bool> && !std::is_same_v<A, bool>, A, T>;

  Lines lines;
  bool reverse = false, exclusive = false;
  BlockSource source;
  BlockSink sink;

  std::int64_t chunks() const {
    return lines.length > 2 * kChunk ? (lines.length + kChunk - 1) / kChunk : 1;
  }
  std::size_t workspace_bytes() const {
    return chunks() == 1 ? 0 : static_cast<std::size_t>(chunks() * lines.count()) * sizeof(A);
  }

  void run(const Launch& launch) const {
    auto* totals = reinterpret_cast<A*>(launch.workspace);
    if (chunks() > 1) {
      for_each_chunk(launch, [&](const Bundle& bundle, std::int64_t chunk) {
        A sums[kWidestBundle];
        std::fill_n(sums, bundle.columns, Kind::template identity<A>());
        walk<false>(launch, bundle, chunk, sums);
        std::copy_n(sums, bundle.columns, totals + total_of(bundle, chunk));
      });
      add_up(totals);
    }
    for_each_chunk(launch, [&](const Bundle& bundle, std::int64_t chunk) {
      A sums[kWidestBundle];
      if (chunks() == 1) {
        std::fill_n(sums, bundle.columns, Kind::template identity<A>());
      } else {
        std::copy_n(totals + total_of(bundle, chunk), bundle.columns, sums);
      }
      walk<true>(launch, bundle, chunk, sums);
    });
  }

 private:
  template <class Body>
  void for_each_chunk(const Launch& launch, const Body& body) const {
    const std::int64_t work =
        std::min(lines.length, kChunk) * std::min(lines.bundle_width(), lines.inner);
    parallel(launch.team, lines.bundles_that_count(launch.extent) * chunks(), row_grain(work),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 body(bundle_of(lines, i / chunks()), i % chunks());
               }
             });
  }

  std::int64_t total_of(const Bundle& bundle, std::int64_t chunk) const {
    return chunk * lines.count() + bundle.outer * lines.inner + bundle.column;
  }

  /// Chunks' totals become what is before each chunk.
  void add_up(A* totals) const {
    for (std::int64_t line = 0; line < lines.count(); ++line) {
      A before = Kind::template identity<A>();
      for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
        A& total = totals[chunk * lines.count() + line];
        const A with = Kind()(before, total);
        total = before;
        before = with;
      }
    }
  }

  template <bool kWrites>
  void walk(const Launch& launch, const Bundle& bundle, std::int64_t chunk, A* sums) const {
    const std::int64_t begin = chunk * kChunk;
    const std::int64_t end = chunk + 1 == chunks() ? lines.length : begin + kChunk;
    if (lines.inner == 1) return along<kWrites>(launch, bundle.outer, begin, end, *sums);
    BlockBuffer scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at =
          lines.at(bundle.outer, reverse ? lines.length - 1 - i : i) + bundle.column;
      fetch_ahead<kWrites>(launch, at, bundle.columns);
      const auto* x =
          static_cast<const T*>(source.load(launch.inputs[0].data, at, bundle.columns, scratch));
      Out* y = kWrites ? static_cast<Out*>(sink.target(out, at, out_scratch)) : nullptr;
      row<kWrites>(x, bundle.columns, sums, y);
      if (kWrites) sink.store(y, out, at, bundle.columns);
    }
  }

  /// What the walk comes to some elements later, for which each line lies in another page.
  template <bool kWrites>
  void fetch_ahead(const Launch& launch, std::int64_t at, std::int64_t columns) const {
    constexpr std::int64_t kAhead = 8;
    if (!source.in_place() || !sink.in_place()) return;
    const std::int64_t later = at + (reverse ? -kAhead : kAhead) * lines.inner;
    if (later < 0 || later >= lines.count() * lines.length) return;
    prefetch(source.at(launch.inputs[0].data, later), columns * static_cast<int>(sizeof(T)));
    if (!kWrites) return;
    BlockBuffer unused;
    prefetch_for_write(sink.target(launch.outputs[0].data, later, unused),
                       columns * static_cast<int>(sizeof(Out)));
  }

  /// An element of each of several lines. An output may lie where its own input does.
  template <bool kWrites>
  void row(const T* x, std::int64_t columns, A* __restrict sums, Out* y) const {
    A with[kWidestBundle];
    for (std::int64_t c = 0; c < columns; ++c) with[c] = Kind()(sums[c], static_cast<A>(x[c]));
    if constexpr (kWrites) {
      const A* results = exclusive ? sums : with;
      for (std::int64_t c = 0; c < columns; ++c) y[c] = static_cast<Out>(results[c]);
    }
    std::copy_n(with, columns, sums);
  }

  /// One line whose elements lie side by side, by blocks.
  template <bool kWrites>
  void along(const Launch& launch, std::int64_t line, std::int64_t begin, std::int64_t end,
             A& sum) const {
    BlockBuffer scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::int64_t i = begin; i < end; i += kBlock) {
      const std::int64_t n = std::min(kBlock, end - i);
      const std::int64_t at = lines.at(line, reverse ? lines.length - i - n : i);
      const auto* x = static_cast<const T*>(source.load(launch.inputs[0].data, at, n, scratch));
      Out* y = kWrites ? static_cast<Out*>(sink.target(out, at, out_scratch)) : nullptr;
      block<kWrites>(x, n, sum, y);
      if (kWrites) sink.store(y, out, at, n);
    }
  }

  /// By groups, each scanned on its own before what is before it is added to all: so that one
  /// addition waits for the last only once in a group.
  template <bool kWrites>
  void block(const T* x, std::int64_t n, A& sum, Out* y) const {
    if constexpr (std::is_same_v<Kind, LogAddExp> && std::is_same_v<T, float>) {
      if (scan_log_sums(x, n, reverse, exclusive, sum, kWrites ? y : nullptr)) return;
    }
    if constexpr (kIsExtreme) return extremes<kWrites>(x, n, sum, y);
    constexpr std::int64_t kGroup = std::is_same_v<Kind, LogAddExp> ? 1 : 8;
    const std::int64_t step = reverse ? -1 : 1;
    std::int64_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
      const std::int64_t first = reverse ? n - 1 - i : i;
      A prefix[kGroup];
      prefix[0] = static_cast<A>(x[first]);
      for (std::int64_t k = 1; k < kGroup; ++k) {
        prefix[k] = Kind()(prefix[k - 1], static_cast<A>(x[first + k * step]));
      }
      if constexpr (kWrites) write_group<kGroup>(prefix, sum, y + first, step);
      sum = Kind()(sum, prefix[kGroup - 1]);
    }
    for (; i < n; ++i) {
      const std::int64_t from = reverse ? n - 1 - i : i;
      add<kWrites>(x[from], sum, y + from);
    }
  }

  static constexpr bool kIsExtreme = std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>;

  /// By groups, in most of which the extreme stays what it is.
  template <bool kWrites>
  void extremes(const T* x, std::int64_t n, A& sum, Out* y) const {
    constexpr std::int64_t kGroup = 64;
    for (std::int64_t i = 0; i < n; i += kGroup) {
      const std::int64_t count = std::min(kGroup, n - i), first = reverse ? n - i - count : i;
      int changes = 0;
      for (std::int64_t k = 0; k < count; ++k) {
        const A value = static_cast<A>(x[first + k]);
        changes |= std::is_same_v<Kind, Max> ? !(value <= sum) : !(value >= sum);
      }
      if (changes == 0) {
        if constexpr (kWrites) std::fill_n(y + first, count, static_cast<Out>(sum));
        continue;
      }
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t from = first + (reverse ? count - 1 - k : k);
        add<kWrites>(x[from], sum, y + from);
      }
    }
  }

  template <std::int64_t kGroup>
  void write_group(const A* prefix, A sum, Out* y, std::int64_t step) const {
    if (!exclusive) {
      for (std::int64_t k = 0; k < kGroup; ++k) {
        y[k * step] = static_cast<Out>(Kind()(sum, prefix[k]));
      }
      return;
    }
    *y = static_cast<Out>(sum);
    for (std::int64_t k = 1; k < kGroup; ++k) {
      y[k * step] = static_cast<Out>(Kind()(sum, prefix[k - 1]));
    }
  }

  template <bool kWrites>
  void add(T x, A& sum, Out* y) const {
    const A with = Kind()(sum, static_cast<A>(x));
    if constexpr (kWrites) *y = static_cast<Out>(exclusive ? sum : with);
    sum = with;
  }
};

template <class Kind>
Prepared prepare_kind(const PrepareArgs& args, const Scan& op) {
  const OperandSpec& x = args.inputs[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  const Lines lines(x.spec.shape, op.axis);
  traits.honours_extent = lines.honours_extent();
  allow_in_place(traits, 0, args.outputs[0], args.inputs);
  Run run = with_compute_type(x.spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    constexpr bool kComplex = std::is_same_v<T, std::complex<float>>;
    constexpr bool kAdds = std::is_same_v<Kind, Sum> || std::is_same_v<Kind, Prod>;
    constexpr bool kLog = std::is_same_v<Kind, LogAddExp>;
    if constexpr ((kComplex && !kAdds) || (kLog && !std::is_floating_point_v<T>)) {
      return {};  // infer refuses these
    } else {
      const Scanner<Kind, T> scanner{lines, op.reverse, op.exclusive, BlockSource(x),
                                     BlockSink(args.outputs[0].spec.dtype)};
      traits.workspace_bytes = scanner.workspace_bytes();
      return [scanner](const Launch& launch) { scanner.run(launch); };
    }
  });
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace

Prepared prepare_scan(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  const auto& op = std::get<Scan>(args.op);
  switch (op.kind) {
    case ScanKind::sum:
      return prepare_kind<Sum>(args, op);
    case ScanKind::prod:
      return prepare_kind<Prod>(args, op);
    case ScanKind::max:
      return prepare_kind<Max>(args, op);
    case ScanKind::min:
      return prepare_kind<Min>(args, op);
    case ScanKind::logaddexp:
      return prepare_kind<LogAddExp>(args, op);
  }
  return refuse("scan: of an unknown kind");
}

}  // namespace heddle::cpu
