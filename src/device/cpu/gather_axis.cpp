// Elements chosen along an axis: gather_axis and scatter_axis.
#include <complex>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/combine.h"
#include "device/cpu/indices.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/types.h"

namespace heddle::cpu {

namespace {

// ---- Gather

template <class U>
struct Gatherer {
  Lines from, to;
  Indices indices;

  void run(const Launch& launch) const {
    const std::int64_t row = to.length * to.inner;
    const std::int64_t rows = launch.extent < 0 || to.outer_per_row == 0
                                  ? to.outer
                                  : std::min(to.outer, launch.extent * to.outer_per_row);
    parallel(launch.team, rows * row, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      Indices::Scratch scratch;
      for (std::int64_t at = begin; at < end; at += kBlock) {
        const std::int64_t n = std::min(kBlock, end - at);
        take(launch, at, n, indices.load(launch.inputs[1], at, n, scratch));
      }
    });
  }

 private:
  /// Elements [begin, begin + n) of the output.
  void take(const Launch& launch, std::int64_t begin, std::int64_t n,
            const std::int64_t* index) const {
    const U* x = launch.inputs[0].as<U>();
    U* out = launch.outputs[0].as<U>() + begin;
    std::int64_t column = begin % to.inner;
    std::int64_t outer = begin / (to.length * to.inner);
    std::int64_t left = (outer + 1) * to.length * to.inner - begin;  // of this outer index
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = x[from.at(outer, index[i]) + column];
      if (++column == to.inner) column = 0;
      if (--left == 0) ++outer, left = to.length * to.inner;
    }
  }
};

Prepared prepare_gather_axis(const PrepareArgs& args, const GatherAxis& op) {
  const OperandSpec &x = args.inputs[0], &index = args.inputs[1];
  const Lines from(x.spec.shape, op.axis), to(index.spec.shape, op.axis);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = to.honours_extent();
  Run run = with_item_type(item_size(x.spec.dtype), [&](auto tag) -> Run {
    using U = typename decltype(tag)::type;
    return [gatherer = Gatherer<U>{from, to, Indices(GatherAxis::kName, index, from.length)}](
               const Launch& launch) { gatherer.run(launch); };
  });
  return make_kernel(std::move(traits), std::move(run));
}

// ---- Scatter

struct Replace {
  template <class T>
  T operator()(T, T update) const {
    return update;
  }
};

/// Applies updates of the stored type S, computing in T. Where there are fewer bundles of lines
/// than threads, those share out the places of each line: all go through its indices, and each does
/// what falls into its part.
template <class Kind, class S, class T>
struct Scatterer {
  Lines base, updates;
  Indices indices;

  void run(const Launch& launch) const {
    copy_base(launch);
    const std::int64_t bundles = updates.bundles_that_count(launch.extent);
    const std::int64_t work = updates.length * std::min(kBundle, updates.inner);
    const std::int64_t parts = parts_of_a_line(launch.team, bundles, work);
    parallel(launch.team, bundles * parts, parts > 1 ? 1 : row_grain(work),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t part = i % parts;
                 apply(launch, bundle_of(updates, i / parts), base.length * part / parts,
                       base.length * (part + 1) / parts);
               }
             });
  }

 private:
  static std::int64_t parts_of_a_line(const Team& team, std::int64_t bundles, std::int64_t work) {
    if (bundles == 0 || bundles >= team.size()) return 1;
    return std::clamp<std::int64_t>(work / kGrainElements, 1, team.size() / bundles);
  }

  /// What falls into places [first, last) of the bundle's lines.
  void apply(const Launch& launch, const Bundle& bundle, std::int64_t first,
             std::int64_t last) const {
    Indices::Scratch scratch;
    const S* from = launch.inputs[2].as<S>();
    S* to = launch.outputs[0].as<S>();
    // Where lines lie one behind another, a block of one line; else a row of the bundle.
    const std::int64_t rows = updates.inner == 1 ? kBlock : 1;
    for (std::int64_t i = 0; i < updates.length; i += rows) {
      const std::int64_t at = updates.at(bundle.outer, i) + bundle.column;
      const std::int64_t n = std::min(rows, updates.length - i) * bundle.columns;
      const std::int64_t* index = indices.load(launch.inputs[1], at, n, scratch);
      for (std::int64_t k = 0; k < n; ++k) {
        if (index[k] < first || index[k] >= last) continue;
        const std::int64_t column = updates.inner == 1 ? 0 : bundle.column + k;
        S& element = to[base.at(bundle.outer, index[k]) + column];
        element = static_cast<S>(Kind()(static_cast<T>(element), static_cast<T>(from[at + k])));
      }
    }
  }

  void copy_base(const Launch& launch) const {
    const S* from = launch.inputs[0].as<S>();
    S* to = launch.outputs[0].as<S>();
    if (from == to) return;
    const std::int64_t count = base.length * base.inner;
    const std::int64_t rows = launch.extent < 0 || base.outer_per_row == 0
                                  ? base.outer
                                  : std::min(base.outer, launch.extent * base.outer_per_row);
    parallel(launch.team, rows * count, kGrainElements, [&](std::int64_t begin, std::int64_t end) {
      std::copy(from + begin, from + end, to + begin);
    });
  }
};

template <class Kind, class S, class T>
Run scatter_run(const PrepareArgs& args, std::int64_t axis) {
  const Lines base(args.inputs[0].spec.shape, axis);
  const Indices indices(ScatterAxis::kName, args.inputs[1], base.length);
  return [scatterer = Scatterer<Kind, S, T>{base, Lines(args.inputs[1].spec.shape, axis), indices}](
             const Launch& launch) { scatterer.run(launch); };
}

template <class Kind>
Run combining_run(const PrepareArgs& args, std::int64_t axis) {
  const DType dtype = args.inputs[0].spec.dtype;
  if (dtype == DType::f16) return scatter_run<Kind, f16, float>(args, axis);
  if (dtype == DType::bf16) return scatter_run<Kind, bf16, float>(args, axis);
  return with_compute_type(dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    constexpr bool kOrders = std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>;
    if constexpr (kOrders && std::is_same_v<T, std::complex<float>>) {
      return {};  // infer refuses it
    } else {
      return scatter_run<Kind, T, T>(args, axis);
    }
  });
}

Run replacing_run(const PrepareArgs& args, std::int64_t axis) {
  return with_item_type(item_size(args.inputs[0].spec.dtype), [&](auto tag) -> Run {
    using U = typename decltype(tag)::type;
    return scatter_run<Replace, U, U>(args, axis);
  });
}

Prepared prepare_scatter_axis(const PrepareArgs& args, const ScatterAxis& op) {
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = Lines(args.inputs[0].spec.shape, op.axis).honours_extent();
  traits.aliases.push_back({0, 0, false});
  switch (op.kind) {
    case ScatterKind::none:
      return make_kernel(std::move(traits), replacing_run(args, op.axis));
    case ScatterKind::sum:
      return make_kernel(std::move(traits), combining_run<Sum>(args, op.axis));
    case ScatterKind::prod:
      return make_kernel(std::move(traits), combining_run<Prod>(args, op.axis));
    case ScatterKind::max:
      return make_kernel(std::move(traits), combining_run<Max>(args, op.axis));
    case ScatterKind::min:
      return make_kernel(std::move(traits), combining_run<Min>(args, op.axis));
  }
  return refuse("scatter_axis: of an unknown kind");
}

}  // namespace

Prepared prepare_axis_indices(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  if (const auto* op = std::get_if<GatherAxis>(&args.op)) return prepare_gather_axis(args, *op);
  return prepare_scatter_axis(args, std::get<ScatterAxis>(args.op));
}

}  // namespace heddle::cpu
