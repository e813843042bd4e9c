// Sum, mean, max, min, prod, all and any over any axes.
//
// Every output element is combined in the order that row_ops.h describes, whichever way memory is
// walked: so neither the layout nor the number of threads shows in a result.
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/softmax.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// The type in which a kind accumulates T.
template <class Kind, class T>
struct Accumulator {
  using type = T;
};
template <class Kind, class T>
requires((std::same_as<Kind, Sum> || std::same_as<Kind, Prod>)&&std::integral<T> &&
         sizeof(T) < 4) struct Accumulator<Kind, T> {
  using type = std::int32_t;
};

// ---- How it is walked

/// Columns that are reduced side by side when the reduced axes lie further apart in memory: 1 KiB
/// of floats, so that memory is read in long runs.
constexpr std::int64_t kColumns = 256;
/// Elements between what is added up and what is fetched meanwhile.
constexpr std::int64_t kAhead = 4 * kBlock;
/// Rows that are combined before sums go back to their lane.
constexpr std::int64_t kRowsAtOnce = 4;
static_assert(kBlock % (kRowsAtOnce * kSumLanes) == 0);

/// The operand's axes split: outputs are numbered along `kept`, and each reduces along `reduced`.
struct Axes {
  Walk kept, reduced;
  BlockSource rows;  // elements in the order (kept, reduced)
  std::size_t item = 0;
  WidenFunction widen = nullptr;
  bool by_columns = false;
};

Axes split_axes(const OperandSpec& x, const Dims& axes) {
  Shape kept, reduced, kept_strides, reduced_strides;
  for (std::size_t i = 0, next = 0; i < x.spec.shape.size(); ++i) {
    const bool is_reduced = next < axes.size() && axes[next] == static_cast<std::int64_t>(i);
    if (is_reduced) ++next;
    (is_reduced ? reduced : kept).push_back(x.spec.shape[i]);
    (is_reduced ? reduced_strides : kept_strides).push_back(x.layout.strides[i]);
  }
  Axes split{
      make_walk(kept, kept_strides), make_walk(reduced, reduced_strides), {}, 0, nullptr, false};
  OperandSpec permuted{{x.spec.dtype, kept}, {LayoutKind::strided, kept_strides}};
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    permuted.spec.shape.push_back(reduced[i]);
    permuted.layout.strides.push_back(reduced_strides[i]);
  }
  split.rows = BlockSource(permuted);
  split.item = item_size(x.spec.dtype);
  if (is_half(x.spec.dtype)) split.widen = widen_function(x.spec.dtype);
  const auto innermost = [](const Walk& w) {
    return w.rank == 0 ? 0 : w.strides[static_cast<std::size_t>(w.rank) - 1];
  };
  split.by_columns = innermost(split.kept) == 1 && innermost(split.reduced) != 1;
  return split;
}

/// Lanes of `width` accumulators each, and their fold: lane l + (l + half), half by half.
template <class Kind, class A, std::int64_t width>
struct LaneBlock {
  A lane[kSumLanes][width];

  LaneBlock() {
    for (auto& l : lane) std::fill_n(l, width, Kind::template identity<A>());
  }
  const A* fold(std::int64_t n) {
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) {
        for (std::int64_t c = 0; c < n; ++c) lane[l][c] = Kind()(lane[l][c], lane[l + half][c]);
      }
    }
    return lane[0];
  }
};

/// All and any, of zeros and ones that are as wide as the elements.
struct Both {
  template <class A>
  static constexpr A identity() {
    return A{1};
  }
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a & b);
  }
};
struct Either {
  template <class A>
  static constexpr A identity() {
    return A{0};
  }
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a | b);
  }
};
template <class Kind>
constexpr bool kOfTruth = std::is_same_v<Kind, Both> || std::is_same_v<Kind, Either>;

/// An element as a kind accumulates it.
template <class Kind, class A, class T>
A accumulated(T x) {
  if constexpr (kOfTruth<Kind>) {
    return static_cast<A>(x != T{});
  } else {
    return static_cast<A>(x);
  }
}

template <class Kind, class T, class A>
A reduce_block(const T* x, std::int64_t n) {
  LaneBlock<Kind, A, 1> lanes;
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int l = 0; l < kSumLanes; ++l) {
      lanes.lane[l][0] = Kind()(lanes.lane[l][0], accumulated<Kind, A>(x[i + l]));
    }
  }
  for (int l = 0; i < n; ++i, ++l) {
    lanes.lane[l][0] = Kind()(lanes.lane[l][0], accumulated<Kind, A>(x[i]));
  }
  return *lanes.fold(1);
}

template <class Kind, class T, class A>
struct Reducer {
  using Total = Pairwise<A, Kind>;
  Axes axes;
  const RowOps* ops;

  A output(const std::byte* x, std::int64_t index) const {
    const std::int64_t count = axes.reduced.count;
    if (count == 0) return Kind::template identity<A>();
    BlockBuffer scratch;
    Total total;
    for (std::int64_t i = 0; i < count; i += kBlock) {
      const std::int64_t n = std::min(kBlock, count - i);
      if (axes.rows.in_place()) {
        prefetch(axes.rows.at(x, index * count + i + kAhead), n * static_cast<int>(sizeof(T)));
      }
      const auto* block = static_cast<const T*>(axes.rows.load(x, index * count + i, n, scratch));
      if constexpr (std::is_same_v<Kind, Sum> && std::is_same_v<T, float> &&
                    std::is_same_v<A, float>) {
        total.add(ops->sum(block, n));
      } else {
        total.add(reduce_block<Kind, T, A>(block, n));
      }
    }
    return total.total();
  }

  /// Outputs [index, index + n), n <= kColumns, whose elements lie side by side.
  template <class Store>
  void columns(const std::byte* x, std::int64_t index, std::int64_t n, const Store& store) const {
    const std::int64_t count = axes.reduced.count;
    const std::byte* base = x + offset_of(axes.kept, index) * static_cast<std::int64_t>(axes.item);
    ColumnTotals totals;
    for (std::int64_t i = 0; i < count; i += kBlock) {
      LaneBlock<Kind, A, kColumns> lanes;
      const std::int64_t rows = std::min(kBlock, count - i);
      constexpr std::int64_t kRun = kRowsAtOnce * kSumLanes;
      std::int64_t r = 0;
      for (; r + kRun <= rows; r += kRun) {
        for (std::int64_t l = 0; l < kSumLanes; ++l) add_rows(base, i + r + l, n, lanes.lane[l]);
      }
      for (; r < rows; ++r) add_row(row_at(base, i + r), n, lanes.lane[r % kSumLanes]);
      totals.add(lanes.fold(n), n);
    }
    const A* sums = totals.total(n);
    for (std::int64_t c = 0; c < n; ++c) {
      store(index + c, count == 0 ? Kind::template identity<A>() : sums[c]);
    }
  }

 private:
  /// Pairwise sums of many columns, side by side.
  class ColumnTotals {
   public:
    void add(const A* values, std::int64_t n) {
      std::size_t level = 0;
      std::copy_n(values, n, carry_);
      for (; count_ >> level & 1u; ++level) combine(partial_[level], carry_, carry_, n);
      std::copy_n(carry_, n, partial_[level]);
      ++count_;
    }
    /// Of nothing: nothing in particular.
    const A* total(std::int64_t n) {
      bool first = true;
      for (std::size_t level = 0; count_ >> level != 0; ++level) {
        if (!(count_ >> level & 1u)) continue;
        if (first) {
          std::copy_n(partial_[level], n, carry_);
        } else {
          combine(partial_[level], carry_, carry_, n);
        }
        first = false;
      }
      return carry_;
    }

   private:
    static void combine(const A* a, const A* b, A* out, std::int64_t n) {
      for (std::int64_t c = 0; c < n; ++c) out[c] = Kind()(a[c], b[c]);
    }

    static constexpr std::size_t kLevels = 32;  // of blocks: more rows than memory holds
    A partial_[kLevels][kColumns], carry_[kColumns];
    std::uint64_t count_ = 0;
  };

  const std::byte* row_at(const std::byte* base, std::int64_t r) const {
    return base + offset_of(axes.reduced, r) * static_cast<std::int64_t>(axes.item);
  }

  /// A row's elements as T, widened into `room` if they are halves.
  const T* elements(const std::byte* row, std::int64_t n, T* room) const {
    if constexpr (std::is_same_v<T, float>) {
      if (axes.widen) {
        axes.widen(row, room, n);
        return room;
      }
    }
    return reinterpret_cast<const T*>(row);
  }

  void add_row(const std::byte* row, std::int64_t n, A* lane) const {
    alignas(64) T room[kColumns];
    const T* from = elements(row, n, room);
    for (std::int64_t c = 0; c < n; ++c) {
      lane[c] = Kind()(lane[c], accumulated<Kind, A>(from[c]));
    }
  }

  /// Rows r, r + kSumLanes, ... of one lane, in this order.
  void add_rows(const std::byte* base, std::int64_t r, std::int64_t n, A* lane) const {
    static_assert(kRowsAtOnce == 4);
    alignas(64) T room[kRowsAtOnce][kColumns];
    const T* rows[kRowsAtOnce];
    for (std::int64_t k = 0; k < kRowsAtOnce; ++k) {
      rows[k] = elements(row_at(base, r + k * kSumLanes), n, room[k]);
      const std::int64_t next = r + k * kSumLanes + 2;
      if (next < axes.reduced.count) {
        prefetch(row_at(base, next), n * static_cast<std::int64_t>(axes.item));
      }
    }
    const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    for (std::int64_t i = 0; i < n; ++i) {
      A sum = Kind()(lane[i], accumulated<Kind, A>(a[i]));
      sum = Kind()(sum, accumulated<Kind, A>(b[i]));
      sum = Kind()(sum, accumulated<Kind, A>(c[i]));
      lane[i] = Kind()(sum, accumulated<Kind, A>(d[i]));
    }
  }
};

// ---- Where it goes

/// Writes an accumulated value as the output's dtype, divided by `count` for means.
template <class Out>
struct Writer {
  BlockSink sink;
  std::int64_t divisor = 1;

  template <class A>
  void store(std::byte* out, std::int64_t index, A value) const {
    if (divisor != 1) {
      if constexpr (!std::is_integral_v<A>) value /= static_cast<A>(divisor);
    }
    BlockBuffer scratch;
    auto* to = static_cast<Out*>(sink.target(out, index, scratch));
    *to = static_cast<Out>(value);
    sink.store(to, out, index, 1);
  }
};

/// The next index after `index` at which a run of side-by-side outputs must stop.
std::int64_t run_end(const Walk& kept, std::int64_t index, std::int64_t limit) {
  const std::int64_t extent = kept.extents[static_cast<std::size_t>(kept.rank) - 1];
  return std::min({limit, index + kColumns, (index / extent + 1) * extent});
}

/// Chunks of outputs are whole tiles of columns, so that no chunk border cuts one short.
template <class Reduced, class Out>
Run make_run(const Reduced& reducer, const Writer<Out>& writer, std::int64_t per_row) {
  return [reducer, writer, per_row](const Launch& launch) {
    const Walk& kept = reducer.axes.kept;
    const std::int64_t outputs =
        launch.extent < 0 ? kept.count : std::min(kept.count, launch.extent * per_row);
    const std::byte* x = launch.inputs[0].data;
    std::byte* out = launch.outputs[0].data;
    const auto store = [&](std::int64_t index, auto value) { writer.store(out, index, value); };
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      if (!reducer.axes.by_columns) {
        for (std::int64_t o = begin; o < end; ++o) store(o, reducer.output(x, o));
        return;
      }
      for (std::int64_t o = begin, next; o < end; o = next) {
        next = run_end(kept, o, end);
        reducer.columns(x, o, next - o, store);
      }
    };
    const std::int64_t grain = row_grain(reducer.axes.reduced.count);
    const std::int64_t tiles = (grain + kColumns - 1) / kColumns;
    parallel(launch.team, outputs, reducer.axes.by_columns ? tiles * kColumns : grain, body);
  };
}

template <class Kind, class T, class A, class Out>
Run typed_run(const PrepareArgs& args, const Reduce& op) {
  const Axes axes = split_axes(args.inputs[0], op.axes);
  Writer<Out> writer{BlockSink(args.outputs[0].spec.dtype), 1};
  if (op.kind == ReduceKind::mean) writer.divisor = axes.reduced.count;
  const Shape& shape = args.inputs[0].spec.shape;
  const std::int64_t per_row = shape.empty() || shape[0] == 0 ? 0 : axes.kept.count / shape[0];
  return make_run(Reducer<Kind, T, A>{axes, &row_ops()}, writer, per_row);
}

template <class Kind>
Run run_of_kind(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>> &&
                  (std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>)) {
      return {};
    } else {
      using A = typename Accumulator<Kind, T>::type;
      return typed_run<Kind, T, A, A>(args, op);
    }
  });
}

/// Means of integers are sums in double, rounded once.
Run mean_run(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      return typed_run<Sum, T, double, float>(args, op);
    } else {
      return typed_run<Sum, T, T, T>(args, op);
    }
  });
}

template <std::size_t bytes>
using UnsignedOf = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class Kind>
Run truth_run(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    return typed_run<Kind, T, UnsignedOf<sizeof(T)>, bool>(args, op);
  });
}

Run run_of(const PrepareArgs& args, const Reduce& op) {
  switch (op.kind) {
    case ReduceKind::sum:
      return run_of_kind<Sum>(args, op);
    case ReduceKind::mean:
      return mean_run(args, op);
    case ReduceKind::max:
      return run_of_kind<Max>(args, op);
    case ReduceKind::min:
      return run_of_kind<Min>(args, op);
    case ReduceKind::prod:
      return run_of_kind<Prod>(args, op);
    case ReduceKind::all:
      return truth_run<Both>(args, op);
    case ReduceKind::any:
      return truth_run<Either>(args, op);
  }
  return {};
}

}  // namespace

Prepared prepare_reduce(const PrepareArgs& args) {
  if (!std::holds_alternative<Reduce>(args.op)) return prepare_softmax(args);
  const auto& op = std::get<Reduce>(args.op);
  const OperandSpec& x = args.inputs[0];
  if (x.layout.kind != LayoutKind::strided) {
    return refuse(
        fmt::format("{}: its operand must be strided, not {}", name(args.op), to_string(x)));
  }
  Run run = run_of(args, op);
  if (!run) {
    return refuse(fmt::format("{} of {} is not defined", name(args.op), to_string(x.spec.dtype)));
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = !x.spec.shape.empty() && (op.axes.empty() || op.axes[0] != 0);
  return make_kernel(std::move(traits), std::move(run));
}

}  // namespace heddle::cpu
