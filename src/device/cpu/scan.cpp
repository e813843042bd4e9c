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
#include "device/cpu/scan_ops.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kChunk = 16384;
/// Lines that are walked side by side: runs of memory that are read and written fast, or less where
/// there are more threads.
constexpr std::int64_t kWidest = 1024, kNarrowest = 64;
/// Elements of a line between what is computed and what is fetched meanwhile.
constexpr std::int64_t kAhead = 4 * kBlock;
/// Lines [column, column + columns) of one outer index.
struct Side {
  std::int64_t outer, column, columns;
};

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
  const ScanOps* ops = nullptr;  // of floats

  std::int64_t chunks() const {
    return lines.length > 2 * kChunk ? (lines.length + kChunk - 1) / kChunk : 1;
  }
  std::size_t workspace_bytes() const {
    return chunks() == 1 ? 0 : static_cast<std::size_t>(chunks() * lines.count()) * sizeof(A);
  }

  void run(const Launch& launch) const {
    auto* totals = reinterpret_cast<A*>(launch.workspace);
    if (chunks() > 1) {
      for_each_chunk(launch, [&](const Side& side, std::int64_t chunk) {
        A sums[kWidest];
        std::fill_n(sums, side.columns, Kind::template identity<A>());
        walk<false>(launch, side, chunk, sums);
        std::copy_n(sums, side.columns, totals + total_of(side, chunk));
      });
      add_up(totals);
    }
    for_each_chunk(launch, [&](const Side& side, std::int64_t chunk) {
      A sums[kWidest];
      if (chunks() == 1) {
        std::fill_n(sums, side.columns, Kind::template identity<A>());
      } else {
        std::copy_n(totals + total_of(side, chunk), side.columns, sums);
      }
      walk<true>(launch, side, chunk, sums);
    });
  }

 private:
  template <class Body>
  void for_each_chunk(const Launch& launch, const Body& body) const {
    if (lines.count() == 0) return;
    const std::int64_t all = lines.outer_that_count(launch.extent);
    std::int64_t width = kWidest;  // whole vectors of columns, whatever the number of threads
    const auto across = [&] { return (lines.inner + width - 1) / width; };
    while (width > kNarrowest && all * across() * chunks() < launch.team.size()) width /= 2;
    const std::int64_t work = std::min(lines.length, kChunk) * std::min(width, lines.inner);
    parallel(
        launch.team, all * across() * chunks(), row_grain(work),
        [&](std::int64_t begin, std::int64_t end) {
          const StreamFence fence;
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t side = i / chunks(), column = side % across() * width;
            body({side / across(), column, std::min(width, lines.inner - column)}, i % chunks());
          }
        });
  }

  std::int64_t total_of(const Side& side, std::int64_t chunk) const {
    return chunk * lines.count() + side.outer * lines.inner + side.column;
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
  void walk(const Launch& launch, const Side& side, std::int64_t chunk, A* sums) const {
    const std::int64_t begin = chunk * kChunk;
    const std::int64_t end = chunk + 1 == chunks() ? lines.length : begin + kChunk;
    if (lines.inner == 1) return along<kWrites>(launch, side.outer, begin, end, *sums);
    if constexpr (std::is_same_v<T, float>) {
      if (ops && source.in_place() && (sink.in_place() || sink.streams())) {
        return rows_of_floats<kWrites>(launch, side, begin, end, sums);
      }
    }
    BlockBuffer scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t c = 0; c < side.columns; c += kBlock) {
        const std::int64_t at = place_of(side, i) + c, n = std::min(kBlock, side.columns - c);
        const auto* x = static_cast<const T*>(source.load(launch.inputs[0].data, at, n, scratch));
        Out* y = kWrites ? static_cast<Out*>(sink.target(out, at, out_scratch)) : nullptr;
        row<kWrites>(x, n, sums + c, y);
        if (kWrites) sink.store(y, out, at, n);
      }
    }
  }

  /// Of the step i of lines side by side.
  std::int64_t place_of(const Side& side, std::int64_t i) const {
    return lines.at(side.outer, reverse ? lines.length - 1 - i : i) + side.column;
  }

  template <bool kWrites>
  void rows_of_floats(const Launch& launch, const Side& side, std::int64_t begin, std::int64_t end,
                      A* sums) const {
    const std::int64_t first = place_of(side, begin);
    ScanRows rows{launch.inputs[0].template as<const float>() + first,
                  kWrites ? launch.outputs[0].template as<float>() + first : nullptr,
                  end - begin,
                  side.columns,
                  reverse ? -lines.inner : lines.inner,
                  exclusive};
    constexpr std::int64_t kLine = kCacheLine / static_cast<std::int64_t>(sizeof(float));
    rows.streams = sink.streams() && rows.apart % kLine == 0 && rows.x != rows.out &&
                   reinterpret_cast<std::uintptr_t>(rows.out) % kCacheLine == 0;
    ops->across(rows, sums);
  }

  /// An element of each of several lines. An output may lie where its own input does.
  template <bool kWrites>
  void row(const T* x, std::int64_t columns, A* __restrict sums, Out* y) const {
    A with[kBlock];
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
    const bool as_it_lies =
        source.in_place() &&
        (sink.in_place() ||
         streams_directly(launch, lines.at(line, reverse ? lines.length - begin : begin)));
    const std::int64_t most = as_it_lies ? end - begin : kBlock;
    for (std::int64_t i = begin; i < end; i += most) {
      const std::int64_t n = std::min(most, end - i);
      const std::int64_t at = lines.at(line, reverse ? lines.length - i - n : i);
      const auto* x = static_cast<const T*>(source.load(launch.inputs[0].data, at, n, scratch));
      const bool direct = kWrites && streams_directly(launch, reverse ? at + n : at);
      Out* y = nullptr;
      if (kWrites) {
        y = direct ? reinterpret_cast<Out*>(out) + at
                   : static_cast<Out*>(sink.target(out, at, out_scratch));
      }
      block<kWrites>(x, n, direct, sum, y);
      if (kWrites && !direct) sink.store(y, out, at, n);
    }
  }

  /// Whether vectors of a line's results are streamed as they are computed, up to or from `at` on.
  bool streams_directly(const Launch& launch, std::int64_t at) const {
    const auto place = reinterpret_cast<std::uintptr_t>(launch.outputs[0].as<Out>() + at);
    return std::is_same_v<T, float> && ops && source.in_place() && sink.streams() && !kIsExtreme &&
           place % kCacheLine == 0;
  }

  /// By groups, as in scan_ops.h.
  template <bool kWrites>
  void block(const T* x, std::int64_t n, bool streams, A& sum, Out* y) const {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<A, double>) {
      ScanLine line{x, kWrites ? y : nullptr, n, reverse, exclusive, streams};
      if constexpr (std::is_same_v<Kind, LogAddExp>) return log_block<kWrites>(line, sum);
      if (ops && ops->along) return ops->along(line, sum);
    }
    block_of_any<kWrites>(x, n, sum, y);
  }

  /// Where vectors cannot go on, some elements are added one by one.
  template <bool kWrites>
  void log_block(const ScanLine& line, A& sum) const {
    constexpr std::int64_t kSome = 16;
    for (std::int64_t left = line.n; left > 0;) {
      // Of what is left; streams go on from whole vectors only.
      ScanLine rest = line;
      rest.n = left;
      const std::int64_t done = line.n - left, skipped = reverse ? 0 : done;
      rest.x = line.x + skipped;
      rest.out = line.out ? line.out + skipped : nullptr;
      rest.streams = line.streams && done % kSome == 0;
      left -= scan_log_sums(rest, sum);
      const std::int64_t n = std::min(kSome, left);
      const std::int64_t first = reverse ? left - n : line.n - left;
      if (n > 0) block_of_any<kWrites>(line.x + first, n, sum, line.out + (line.out ? first : 0));
      left -= n;
    }
  }

  template <bool kWrites>
  void block_of_any(const T* x, std::int64_t n, A& sum, Out* y) const {
    if constexpr (kIsExtreme) return extremes<kWrites>(x, n, sum, y);
    constexpr std::int64_t kGroup = std::is_same_v<Kind, LogAddExp> ? 1 : kScanGroup;
    const std::int64_t step = reverse ? -1 : 1;
    for (std::int64_t i = 0; i < n; i += kGroup) {
      const std::int64_t first = reverse ? n - 1 - i : i, count = std::min(kGroup, n - i);
      A prefix[kGroup] = {};
      for (std::int64_t k = 0; k < count; ++k) prefix[k] = static_cast<A>(x[first + k * step]);
      for (std::int64_t half = 1; half < kGroup; half *= 2) {
        for (std::int64_t k = half; k < count; ++k) {
          if ((k & half) != 0) prefix[k] = Kind()(prefix[k / half * half - 1], prefix[k]);
        }
      }
      if constexpr (kWrites) write_group(prefix, count, sum, y + first, step);
      sum = Kind()(sum, prefix[count - 1]);
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

  void write_group(const A* prefix, std::int64_t count, A sum, Out* y, std::int64_t step) const {
    if (!exclusive) {
      for (std::int64_t k = 0; k < count; ++k) {
        y[k * step] = static_cast<Out>(Kind()(sum, prefix[k]));
      }
      return;
    }
    *y = static_cast<Out>(sum);
    for (std::int64_t k = 1; k < count; ++k) {
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
      Scanner<Kind, T> scanner{lines, op.reverse, op.exclusive, BlockSource(x),
                               BlockSink::of_output(args.outputs[0].spec)};
      if (std::is_same_v<T, float>) scanner.ops = scan_ops(op.kind);
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
