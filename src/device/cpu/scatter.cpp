// scatter: slices at indices updated, one after another in the order of the indices.
//
// Threads share out the destination: each goes through all indices and does what falls into its
// part, so that the order of updates, and with it every bit, does not depend on their number.
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/prefetch.h"
#include "device/cpu/slice_starts.h"
#include "device/cpu/slices.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

/// Elements of the destination, from the first to one past the last.
struct Part {
  std::int64_t begin = 0, end = 0;
};

/// Updates of runs of `run` elements of `to`, those at offsets[0], offsets[1], ..., by runs of
/// `from` that begin `apart` elements apart; only of what falls into `part`.
using UpdateRuns = void (*)(std::byte* to, const std::byte* from, const std::int64_t* offsets,
                            std::int64_t n, std::int64_t run, std::int64_t apart, Part part);

// Updates whose places are fetched ahead, as nothing but the offsets says where they are; and the
// updates themselves, as a thread leaves out those of other parts. Of each the first lines, after
// which the processor sees where it goes.
constexpr std::int64_t kAheadBytes = 4096, kMostAhead = 32, kFetchedLines = 4;
// Updates of which a thread finds its own at a time: few, so that memory is not idle meanwhile.
constexpr std::int64_t kSifted = 64, kSiftedAhead = 8 * kSifted;

/// Calls f(first element of the destination, first of the updates, elements) for each run; kRun is
/// their length where that is known, or 0. Which runs are the part's is found out some at a time,
/// without a branch that nobody could foresee, and they are fetched ahead among these: into the
/// second cache, as the first one can wait for few lines at a time.
template <std::int64_t kRun, class U, class F>
void for_each_update(const U* to, const U* from, const std::int64_t* offsets, std::int64_t n,
                     std::int64_t any_run, std::int64_t apart, Part part, const F& f) {
  constexpr std::int64_t kStep = kCacheLine / static_cast<std::int64_t>(sizeof(U));
  const std::int64_t run = kRun > 0 ? kRun : any_run;
  const std::int64_t fetched = std::min(run, kFetchedLines * kStep);
  const auto bytes = std::max<std::int64_t>(1, run * static_cast<std::int64_t>(sizeof(U)));
  const std::int64_t ahead = std::clamp<std::int64_t>(kAheadBytes / bytes, 1, kMostAhead);
  const bool own_lines = bytes >= kCacheLine / 2;  // updates that no other's are fetched with
  std::int64_t found[kSifted + kMostAhead + 1];    // of the part
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < n;) {
    prefetch_later(offsets + t + kSiftedAhead, kSifted * sizeof(std::int64_t));
    for (const std::int64_t stop = std::min(n, t + kSifted); t < stop; ++t) {
      found[count] = t;
      count += static_cast<std::int64_t>(offsets[t] < part.end) &
               static_cast<std::int64_t>(offsets[t] + run > part.begin);
    }
    const std::int64_t later = t == n ? 0 : std::min(count, ahead);  // they are fetched already
    for (std::int64_t i = 0; i + later < count; ++i) {
      for (std::int64_t k = 0; i + ahead < count && k < fetched; k += kStep) {
        prefetch_later(to + offsets[found[i + ahead]] + k, kCacheLine);
        if (own_lines) prefetch_later(from + found[i + ahead] * apart + k, kCacheLine);
      }
      const std::int64_t offset = offsets[found[i]];
      if constexpr (kRun == 1) {
        f(offset, found[i] * apart, kRun);
      } else {
        const std::int64_t begin = std::max(offset, part.begin);
        const std::int64_t end = std::min(offset + run, part.end);
        if (begin < end) f(begin, found[i] * apart + begin - offset, end - begin);
      }
    }
    std::copy_n(found + count - later, later, found);
    count = later;
  }
}

/// `line(y, x, elements)` for a line's worth of elements at a time, and for the rest: loops of a
/// length that the compiler knows.
template <class U, class F>
void by_lines(U* y, const U* x, std::int64_t count, const F& line) {
  constexpr auto kLine = std::integral_constant<std::int64_t, kCacheLine / sizeof(U)>();
  for (; count >= kLine; count -= kLine, y += kLine, x += kLine) line(y, x, kLine);
  if (count > 0) line(y, x, count);
}

template <class U, class F>
void update_runs(U* out, const U* in, const std::int64_t* offsets, std::int64_t n, std::int64_t run,
                 std::int64_t apart, Part part, const F& line) {
  if (run == 1) {
    return for_each_update<1>(out, in, offsets, n, run, apart, part,
                              [&](std::int64_t at, std::int64_t update, std::int64_t) {
                                line(out + at, in + update,
                                     std::integral_constant<std::int64_t, 1>());
                              });
  }
  for_each_update<0>(out, in, offsets, n, run, apart, part,
                     [&](std::int64_t at, std::int64_t update, std::int64_t count) {
                       by_lines(out + at, in + update, count, line);
                     });
}

template <class U>
void replace_runs(std::byte* to, const std::byte* from, const std::int64_t* offsets, std::int64_t n,
                  std::int64_t run, std::int64_t apart, Part part) {
  update_runs(reinterpret_cast<U*>(to), reinterpret_cast<const U*>(from), offsets, n, run, apart,
              part, [](U* y, const U* x, auto count) {
                std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(U));
              });
}

template <class Kind, class T>
void combine_runs(std::byte* to, const std::byte* from, const std::int64_t* offsets, std::int64_t n,
                  std::int64_t run, std::int64_t apart, Part part) {
  update_runs(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), offsets, n, run, apart,
              part, [](T* __restrict y, const T* __restrict x, auto count) {
                for (std::int64_t i = 0; i < count; ++i) {
                  y[i] = static_cast<T>(Kind()(y[i], x[i]));
                }
              });
}

/// Half types, by blocks in float.
template <class Kind, DType kType>
void combine_halves(std::byte* to, const std::byte* from, const std::int64_t* offsets,
                    std::int64_t n, std::int64_t run, std::int64_t apart, Part part) {
  const WidenFunction widen = widen_function(kType);
  const NarrowFunction narrow = narrow_function(kType);
  constexpr std::int64_t kItem = 2;
  const auto* out = reinterpret_cast<const std::uint16_t*>(to);
  const auto* in = reinterpret_cast<const std::uint16_t*>(from);
  alignas(64) float x[kBlock], y[kBlock];
  for_each_update<0>(out, in, offsets, n, run, apart, part,
                     [&](std::int64_t at, std::int64_t update, std::int64_t count) {
                       for (std::int64_t i = 0; i < count; i += kBlock) {
                         const std::int64_t some = std::min(kBlock, count - i);
                         widen(to + (at + i) * kItem, x, some);
                         widen(from + (update + i) * kItem, y, some);
                         for (std::int64_t k = 0; k < some; ++k) x[k] = Kind()(x[k], y[k]);
                         narrow(x, to + (at + i) * kItem, some);
                       }
                     });
}

template <class Kind>
UpdateRuns combining(DType dtype) {
  if (dtype == DType::f16) return combine_halves<Kind, DType::f16>;
  if (dtype == DType::bf16) return combine_halves<Kind, DType::bf16>;
  return with_compute_type(dtype, [](auto tag) -> UpdateRuns {
    using T = typename decltype(tag)::type;
    constexpr bool kOrders = std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>;
    if constexpr (kOrders && std::is_same_v<T, std::complex<float>>) {
      return nullptr;  // infer refuses it
    } else {
      return combine_runs<Kind, T>;
    }
  });
}

UpdateRuns updating(ScatterKind kind, DType dtype) {
  switch (kind) {
    case ScatterKind::sum:
      return combining<Sum>(dtype);
    case ScatterKind::prod:
      return combining<Prod>(dtype);
    case ScatterKind::max:
      return combining<Max>(dtype);
    case ScatterKind::min:
      return combining<Min>(dtype);
    case ScatterKind::none:
      break;
  }
  return with_item_type(item_size(dtype), [](auto tag) -> UpdateRuns {
    return replace_runs<typename decltype(tag)::type>;
  });
}

void store_least(std::atomic<std::int64_t>& least, std::int64_t value) {
  std::int64_t seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

struct Scatterer {
  Starts starts;
  Slices slices;
  UpdateRuns update = nullptr;
  std::int64_t elements = 0;  // of x

  void run(const Launch& launch) const {
    const std::int64_t parts = parts_for(launch.team);
    if (parts == 1) return run_alone(launch);
    auto* offsets = reinterpret_cast<std::int64_t*>(launch.workspace);
    const Part touched = load_starts(launch, offsets);
    copy_base(launch);
    parallel(launch.team, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t all = touched.end - touched.begin;
      for (std::int64_t p = begin; p < end; ++p) {
        apply(launch, offsets, 0, starts.count(),
              {touched.begin + all * p / parts, touched.begin + all * (p + 1) / parts});
      }
    });
  }

 private:
  /// Without a pass over all indices before.
  void run_alone(const Launch& launch) const {
    copy_base(launch);
    Indices::Scratch scratch;
    std::int64_t offsets[kBlock];
    for (std::int64_t t = 0; t < starts.count(); t += kBlock) {
      const std::int64_t n = std::min(kBlock, starts.count() - t);
      starts.load(launch, t, n, 1, offsets, scratch);
      apply(launch, offsets, t, n, {0, elements});
    }
  }

  /// All of them; gives what they touch.
  Part load_starts(const Launch& launch, std::int64_t* offsets) const {
    std::atomic<std::int64_t> first = std::numeric_limits<std::int64_t>::max(), last_negative = 0;
    parallel(launch.team, starts.count(), kGrainElements, [&](std::int64_t from, std::int64_t to) {
      Indices::Scratch scratch;
      for (std::int64_t t = from; t < to; t += kBlock) {
        const std::int64_t n = std::min(kBlock, to - t);
        starts.load(launch, t, n, 1, offsets + t, scratch);
        std::int64_t least = offsets[t], most = offsets[t];
        for (std::int64_t i = t; i < t + n; ++i) {
          least = std::min(least, offsets[i]);  // not std::minmax_element, which branches
          most = std::max(most, offsets[i]);
        }
        store_least(first, least);
        store_least(last_negative, -most);
      }
    });
    return {first, slices.span() - last_negative};
  }

  void copy_base(const Launch& launch) const {
    const std::byte* from = launch.inputs[0].data;
    std::byte* to = launch.outputs[0].data;
    if (from == to) return;
    const auto item = static_cast<std::int64_t>(slices.item());
    parallel(launch.team, elements, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin * item, from + begin * item,
                  static_cast<std::size_t>((end - begin) * item));
    });
  }

  std::int64_t parts_for(const Team& team) const {
    const std::int64_t grains = starts.count() * slices.count() / kGrainElements;
    return std::clamp<std::int64_t>(grains, 1, team.size());
  }

  /// Slices [first, first + n), which begin at `offsets`.
  void apply(const Launch& launch, const std::int64_t* offsets, std::int64_t first, std::int64_t n,
             Part part) const {
    if (slices.count() == 0) return;
    const std::int64_t bytes = slices.count() * static_cast<std::int64_t>(slices.item());
    const std::byte* from = launch.inputs.back().data + first * bytes;
    std::byte* to = launch.outputs[0].data;
    if (slices.run() == slices.count()) {
      return update(to, from, offsets, n, slices.run(), slices.run(), part);
    }
    for (std::int64_t t = 0; t < n; ++t, from += bytes) {
      if (offsets[t] >= part.end || offsets[t] + slices.span() <= part.begin) continue;
      slices.for_each_run([&](std::int64_t offset, std::int64_t before) {
        const std::int64_t at = offsets[t] + offset;
        const std::byte* run = from + before * static_cast<std::int64_t>(slices.item());
        update(to, run, &at, 1, slices.run(), 0, part);
      });
    }
  }
};

}  // namespace

Prepared prepare_scatter_slices(const PrepareArgs& args) {
  const auto& op = std::get<Scatter>(args.op);
  const OperandSpec &x = args.inputs[0], &updates = args.inputs.back();
  for (const OperandSpec* operand : {&x, &updates}) {
    if (is_contiguous(*operand)) continue;
    return refuse(
        fmt::format("scatter: x and updates must be contiguous, not {}", to_string(*operand)));
  }
  const Shape& shape = updates.spec.shape;
  const std::size_t leading = shape.size() - x.spec.shape.size();
  const Shape sizes(std::span(shape.begin(), shape.end()).subspan(leading));
  Scatterer scatterer;
  scatterer.starts = Starts(args, op.axes, sizes);
  scatterer.slices = Slices(sizes, contiguous_strides(x.spec.shape), item_size(x.spec.dtype));
  scatterer.update = updating(op.kind, x.spec.dtype);
  scatterer.elements = elements(x.spec.shape);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.aliases.push_back({0, 0, false});
  traits.workspace_bytes =
      static_cast<std::size_t>(scatterer.starts.count()) * sizeof(std::int64_t);
  return make_kernel(std::move(traits),
                     [scatterer](const Launch& launch) { scatterer.run(launch); });
}

}  // namespace heddle::cpu
