// Sum, mean, max, min, prod, all and any over any axes.
//
// Every output element is combined in the order that row_ops.h describes, whichever way memory is
// walked: so neither the layout nor the number of threads shows in a result.
#include <algorithm>
#include <complex>
#include <concepts>
#include <cstring>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/combine.h"
#include "device/cpu/folding.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/softmax.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

// ---- How it is walked

/// Columns that are reduced side by side when the reduced axes lie further apart in memory: runs of
/// memory that are long enough, whose lanes fit into the second cache. A narrower tile is for more
/// threads.
constexpr std::int64_t kTileBytes = 4096, kFewestColumns = 64;
/// A lane's rows in a block, which are read side by side in a narrow tile. In a wide one fewer are
/// than a set of a cache has places, as rows may lie so that they share one.
constexpr std::int64_t kLaneRows = kBlock / kSumLanes, kWideRows = 8, kWideTileBytes = 256;
/// Rows of halves that are widened at once.
constexpr std::int64_t kWidenedRows = 4;
/// Elements between what is added up and what is fetched meanwhile.
constexpr std::int64_t kAhead = 4 * kBlock;
/// Elements side by side that are combined at once: a power of two of blocks.
constexpr std::int64_t kAtOnce = 4 * kBlock;
/// Blocks whose results are combined before they wait for others': of a reduction that threads
/// share.
constexpr std::int64_t kGroup = 32;

/// The operand's axes split: outputs are numbered along `kept`, and each reduces along `reduced`.
struct Axes {
  Walk kept, reduced;
  BlockSource rows;  // elements in the order (kept, reduced)
  std::int64_t item = 0;
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
  split.item = static_cast<std::int64_t>(item_size(x.spec.dtype));
  if (is_half(x.spec.dtype)) split.widen = widen_function(x.spec.dtype);
  const auto innermost = [](const Walk& w) {
    return w.rank == 0 ? 0 : w.strides[static_cast<std::size_t>(w.rank) - 1];
  };
  split.by_columns =
      split.reduced.count > 0 && innermost(split.kept) == 1 && innermost(split.reduced) != 1;
  return split;
}

/// Room for an accumulator of any type.
struct alignas(8) Accumulated {
  std::byte bytes[8];
};

/// Two blocks' results as one.
struct Join {
  const Folding* fold;
  Accumulated operator()(const Accumulated& a, const Accumulated& b) const {
    Accumulated both;
    fold->join(&a, &b, 1, &both);
    return both;
  }
};

/// Columns side by side: outputs [index, index + n).
struct Tile {
  std::int64_t index, n;
};

/// The tiles that outputs along `kept` are cut into: none crosses from one run of memory into the
/// next.
struct Tiles {
  std::int64_t extent, width, across, outputs;

  Tiles(const Walk& kept, std::int64_t widest, std::int64_t limit)
      : extent(kept.extents[static_cast<std::size_t>(kept.rank) - 1]),
        width(std::min(widest, extent)),
        across((extent + width - 1) / width),
        outputs(limit) {}
  std::int64_t count() const {
    return outputs / extent * across + (outputs % extent + width - 1) / width;
  }
  Tile at(std::int64_t i) const {
    const std::int64_t run = i / across * extent, column = i % across * width;
    const std::int64_t n = std::min({width, extent - column, outputs - run - column});
    return {run + column, n};
  }
};

class Reducer {
 public:
  Axes axes;
  Folding fold;
  BlockSink sink;
  std::int64_t divisor = 1;
  std::int64_t per_row = 0;  // outputs of a leading row of the operand

  /// Where results wait that threads computed side by side for one output.
  std::size_t workspace_bytes() const {
    return parts() == 1 ? 0 : static_cast<std::size_t>(parts() * axes.kept.count * fold.width);
  }

  void run(const Launch& launch) const {
    const std::int64_t all = axes.kept.count;
    const std::int64_t outputs = launch.extent < 0 ? all : std::min(all, launch.extent * per_row);
    if (outputs == 0) return;
    if (axes.by_columns) return run_by_columns(launch, outputs);
    if (parts() > 1) return run_in_parts(launch, outputs);
    const std::int64_t count = axes.reduced.count;
    parallel(launch.team, outputs, row_grain(count), [&](std::int64_t begin, std::int64_t end) {
      BlockBuffer results;
      for (std::int64_t o = begin; o < end; o += kBlock) {
        const std::int64_t n = std::min(kBlock, end - o);
        for (std::int64_t i = 0; i < n; ++i) {
          part_of(launch.inputs[0].data, o + i, 0, count, results.bytes + i * fold.width);
        }
        store(launch, results.bytes, {o, n});
      }
    });
  }

 private:
  /// Into how many parts the elements of an output are cut: a function of their number only.
  std::int64_t parts() const {
    const std::int64_t blocks = (axes.reduced.count + kBlock - 1) / kBlock;
    if (axes.by_columns) return blocks;
    return blocks > 2 * kGroup ? (blocks + kGroup - 1) / kGroup : 1;
  }

  void store(const Launch& launch, const std::byte* results, Tile tile) const {
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < tile.n; i += kBlock) {
      const std::int64_t n = std::min(kBlock, tile.n - i);
      void* target = sink.target(launch.outputs[0].data, tile.index + i, scratch);
      fold.finish(results + i * fold.width, divisor, n, target);
      sink.store(target, launch.outputs[0].data, tile.index + i, n);
    }
  }

  // ---- Elements side by side

  /// Elements [begin, end) of an output's, `begin` a multiple of kBlock.
  void part_of(const std::byte* x, std::int64_t output, std::int64_t begin, std::int64_t end,
               std::byte* result) const {
    if (begin == end) return fold.clear(1, result);
    const std::int64_t count = axes.reduced.count;
    // Where nothing is converted, some blocks at once.
    const std::int64_t step = axes.rows.in_place() && fold.floats ? kAtOnce : kBlock;
    BlockBuffer scratch;
    Pairwise<Accumulated, Join> total(Join{&fold});
    for (std::int64_t i = begin; i < end; i += step) {
      const std::int64_t n = std::min(step, end - i), at = output * count + i;
      const void* next = axes.rows.in_place() ? axes.rows.at(x, at + kAhead) : nullptr;
      Accumulated value{};
      fold.block(axes.rows.load(x, at, n, scratch), next, n, &value);
      total.add(value);
    }
    const Accumulated value = total.total();
    std::memcpy(result, &value, static_cast<std::size_t>(fold.width));
  }

  void run_in_parts(const Launch& launch, std::int64_t outputs) const {
    constexpr std::int64_t kPart = kGroup * kBlock;
    const std::int64_t count = axes.reduced.count;
    parallel(launch.team, outputs * parts(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t from = i % parts() * kPart;
        part_of(launch.inputs[0].data, i / parts(), from, std::min(count, from + kPart),
                launch.workspace + i * fold.width);
      }
    });
    for (std::int64_t o = 0; o < outputs; ++o) {
      std::byte* results = launch.workspace + o * parts() * fold.width;
      join_parts(results, fold.width, 1);
      store(launch, results, {o, 1});
    }
  }

  /// Results of n columns, those of each part `apart` bytes after the last's, come together in the
  /// first's place, as Pairwise adds them up.
  void join_parts(std::byte* results, std::int64_t apart, std::int64_t n) const {
    for (std::int64_t step = 1; step < parts(); step *= 2) {
      for (std::int64_t i = 0; i + step < parts(); i += 2 * step) {
        std::byte* to = results + i * apart;
        fold.join(to, to + step * apart, n, to);
      }
    }
  }

  // ---- Columns

  void run_by_columns(const Launch& launch, std::int64_t outputs) const {
    const Tiles tiles = tiles_for(launch.team, outputs);
    const std::int64_t work = std::min(kBlock, axes.reduced.count) * tiles.width;
    const std::int64_t apart = axes.kept.count * fold.width;
    parallel(launch.team, parts() * tiles.count(), row_grain(work),
             [&](std::int64_t begin, std::int64_t end) {
               alignas(64) std::byte result[kTileBytes];
               for (std::int64_t i = begin; i < end; ++i) {
                 const Tile tile = tiles.at(i % tiles.count());
                 const std::int64_t part = i / tiles.count();
                 std::byte* to = parts() == 1
                                     ? result
                                     : launch.workspace + part * apart + tile.index * fold.width;
                 columns(launch.inputs[0].data, tile, part, to);
                 if (parts() == 1) store(launch, result, tile);
               }
             });
    if (parts() == 1) return;
    parallel(launch.team, tiles.count(), row_grain(parts() * tiles.width),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const Tile tile = tiles.at(i);
                 std::byte* results = launch.workspace + tile.index * fold.width;
                 join_parts(results, apart, tile.n);
                 store(launch, results, tile);
               }
             });
  }

  /// Wide ones, as long as there are enough of them.
  Tiles tiles_for(const Team& team, std::int64_t outputs) const {
    std::int64_t width = kTileBytes / fold.width;
    const auto tasks = [&] { return parts() * Tiles(axes.kept, width, outputs).count(); };
    while (width > kFewestColumns && tasks() < 2 * team.size()) width /= 2;
    return Tiles(axes.kept, width, outputs);
  }

  /// Columns of a block of rows, of which so many of a lane are read side by side.
  struct Block {
    const std::byte* base;
    std::int64_t first, rows, n, at_once;
  };

  /// Lane l adds up rows l, l + kSumLanes, ...; lanes are then folded in halves, as row_ops.h says.
  /// They follow each other as rows do, so that memory is read in a few streams, and meanwhile
  /// their sums wait in the second cache.
  void columns(const std::byte* x, Tile tile, std::int64_t block, std::byte* result) const {
    alignas(64) std::byte lanes[kSumLanes * kTileBytes];
    const std::int64_t bytes = tile.n * fold.width, first = block * kBlock;
    const std::int64_t apart = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    const Block rows{x + offset_of(axes.kept, tile.index) * axes.item, first,
                     std::min(kBlock, axes.reduced.count - first), tile.n,
                     bytes < kWideTileBytes ? kLaneRows : kWideRows};
    const std::int64_t used = std::min<std::int64_t>(kSumLanes, rows.rows);  // others are empty
    for (std::int64_t l = 0; l < used; ++l) fold.clear(tile.n, lanes + l * apart);
    for (std::int64_t at = 0; at < rows.rows; at += rows.at_once * kSumLanes) {
      for (std::int64_t l = 0; l < used; ++l) fold_lane(rows, at + l, lanes + l * apart);
    }
    for (std::int64_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (std::int64_t l = 0; l < half && l + half < used; ++l) {
        std::byte* to = lanes + l * apart;
        fold.join(to, to + half * apart, tile.n, to);
      }
    }
    std::memcpy(result, lanes, static_cast<std::size_t>(bytes));
  }

  /// Some rows of a lane, from `row` of the block on.
  void fold_lane(const Block& block, std::int64_t row, std::byte* lane) const {
    const void *rows[kLaneRows], *next[kLaneRows];
    const std::int64_t count = rows_of_lane(block, row, rows);
    if (count == 0) return;
    if (axes.widen) return fold_halves(rows, count, block.n, lane);
    const bool is_last = row % kSumLanes == kSumLanes - 1;
    const std::int64_t later = row + 1 + (is_last ? (block.at_once - 1) * kSumLanes : 0);
    const std::int64_t coming = rows_of_lane(block, later, next);
    fold.rows(rows, coming >= count ? next : nullptr, count, block.n, lane);
  }

  std::int64_t rows_of_lane(const Block& block, std::int64_t row, const void** rows) const {
    const auto at = [&] {
      return block.base + offset_of(axes.reduced, block.first + row) * axes.item;
    };
    const bool even = axes.reduced.rank == 1;  // each is as far from the last as any other
    const std::int64_t step = even ? axes.reduced.strides[0] * kSumLanes * axes.item : 0;
    std::int64_t count = 0;
    for (; row < block.rows && count < block.at_once; row += kSumLanes, ++count) {
      rows[count] =
          even && count > 0 ? static_cast<const std::byte*>(rows[count - 1]) + step : at();
    }
    return count;
  }

  void fold_halves(const void* const* rows, std::int64_t count, std::int64_t n,
                   std::byte* lane) const {
    alignas(64) float widened[kWidenedRows][kTileBytes / sizeof(float)];
    const void* floats[kWidenedRows];
    for (std::int64_t r = 0; r < count; r += kWidenedRows) {
      const std::int64_t some = std::min(kWidenedRows, count - r);
      for (std::int64_t i = 0; i < some; ++i) {
        axes.widen(rows[r + i], widened[i], n);
        floats[i] = widened[i];
      }
      fold.rows(floats, nullptr, some, n, lane);
    }
  }
};

// ---- Kinds and types

template <class Kind, class T, class A, class Out>
Reducer reducer_of(const PrepareArgs& args, const Reduce& op) {
  Reducer reducer{split_axes(args.inputs[0], op.axes), folding<Kind, T, A, Out>(),
                  BlockSink(args.outputs[0].spec.dtype)};
  if (op.kind == ReduceKind::mean) reducer.divisor = reducer.axes.reduced.count;
  const Shape& shape = args.inputs[0].spec.shape;
  if (!shape.empty() && shape[0] > 0) reducer.per_row = reducer.axes.kept.count / shape[0];
  return reducer;
}

template <class Kind>
std::optional<Reducer> reducer_of_kind(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> std::optional<Reducer> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>> &&
                  (std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>)) {
      return {};
    } else {
      using A = typename Accumulator<Kind, T>::type;
      return reducer_of<Kind, T, A, A>(args, op);
    }
  });
}

/// Means of integers are sums in double, rounded once.
std::optional<Reducer> mean_reducer(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> std::optional<Reducer> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      return reducer_of<Sum, T, double, float>(args, op);
    } else {
      return reducer_of<Sum, T, T, T>(args, op);
    }
  });
}

template <std::size_t bytes>
using UnsignedOf = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class Kind>
std::optional<Reducer> truth_reducer(const PrepareArgs& args, const Reduce& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> std::optional<Reducer> {
    using T = typename decltype(tag)::type;
    return reducer_of<Kind, T, UnsignedOf<sizeof(T)>, bool>(args, op);
  });
}

std::optional<Reducer> make_reducer(const PrepareArgs& args, const Reduce& op) {
  switch (op.kind) {
    case ReduceKind::sum:
      return reducer_of_kind<Sum>(args, op);
    case ReduceKind::mean:
      return mean_reducer(args, op);
    case ReduceKind::max:
      return reducer_of_kind<Max>(args, op);
    case ReduceKind::min:
      return reducer_of_kind<Min>(args, op);
    case ReduceKind::prod:
      return reducer_of_kind<Prod>(args, op);
    case ReduceKind::all:
      return truth_reducer<Both>(args, op);
    case ReduceKind::any:
      return truth_reducer<Either>(args, op);
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
  const std::optional<Reducer> reducer = make_reducer(args, op);
  if (!reducer) {
    return refuse(fmt::format("{} of {} is not defined", name(args.op), to_string(x.spec.dtype)));
  }
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.workspace_bytes = reducer->workspace_bytes();
  traits.honours_extent = !x.spec.shape.empty() && (op.axes.empty() || op.axes[0] != 0);
  return make_kernel(std::move(traits),
                     [made = *reducer](const Launch& launch) { made.run(launch); });
}

}  // namespace heddle::cpu
