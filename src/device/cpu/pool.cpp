// Pooling and resizing: every output has all its channels computed side by side.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/parallel.h"
#include "device/cpu/types.h"
#include "device/cpu/windows.h"

namespace heddle::cpu {

namespace {

/// Calls body(image, position) for all outputs of the batch elements that count.
template <class Body>
void for_each_output(const Launch& launch, std::int64_t batch, std::int64_t positions,
                     std::int64_t work, const Body& body) {
  parallel(launch.team, rows_that_count(batch, launch.extent) * positions, row_grain(work),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) body(i / positions, i % positions);
           });
}

// ---- Pool

template <class T, class Kind>
struct Pooler {
  WindowGrid grid;
  bool count_padding = true;
  std::int64_t channels = 0;
  BlockSource x;
  BlockSink sink;

  void compute(const Launch& launch, std::int64_t image, std::int64_t position) const {
    BlockBuffer scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::int64_t c = 0; c < channels; c += kBlock) {
      const std::int64_t n = std::min(kBlock, channels - c);
      alignas(64) T result[kBlock];
      std::fill_n(result, n, Kind::template identity<T>());
      std::int64_t held = 0;
      grid.for_each_tap(position, [&](std::int64_t, std::int64_t element) {
        if (element < 0) return;
        ++held;
        const std::int64_t from = (image * grid.elements() + element) * channels + c;
        const auto* values = static_cast<const T*>(x.load(launch.inputs[0].data, from, n, scratch));
        for (std::int64_t k = 0; k < n; ++k) result[k] = Kind()(result[k], values[k]);
      });
      if constexpr (std::is_same_v<Kind, Sum>) {
        const auto divisor = static_cast<T>(count_padding ? grid.taps() : held);
        for (std::int64_t k = 0; k < n; ++k) result[k] /= divisor;
      }
      const std::int64_t at = (image * grid.positions() + position) * channels + c;
      auto* to = static_cast<T*>(sink.target(out, at, out_scratch));
      std::copy_n(result, n, to);
      sink.store(to, out, at, n);
    }
  }
};

template <class T, class Kind>
Run pool_run(const PrepareArgs& args, const Pool& op) {
  const TensorSpec &x = args.inputs[0].spec, &out = args.outputs[0].spec;
  const auto& [window, stride, low, high] = *op.windows;
  const Dims ones(window.size(), 1);
  const WindowGrid grid({stride, low, high, ones, ones}, window, x.shape, out.shape);
  const Pooler<T, Kind> pooler{grid, op.count_padding, x.shape.back(), BlockSource(args.inputs[0]),
                               BlockSink(x.dtype)};
  return [pooler, batch = x.shape[0]](const Launch& launch) {
    for_each_output(launch, batch, pooler.grid.positions(), pooler.channels * pooler.grid.taps(),
                    [&](std::int64_t image, std::int64_t position) {
                      pooler.compute(launch, image, position);
                    });
  };
}

Run pool_run(const PrepareArgs& args, const Pool& op) {
  return with_compute_type(args.inputs[0].spec.dtype, [&](auto tag) -> Run {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      if (op.kind == PoolKind::mean) return pool_run<T, Sum>(args, op);
    }
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      return pool_run<T, Max>(args, op);
    } else {
      return {};  // infer refuses it
    }
  });
}

// ---- Resize

/// Where an axis' outputs stand: at fraction[o] of the way from element low[o] to high[o].
struct Places {
  std::vector<std::int64_t> low, high;
  std::vector<double> fraction;
};

/// All of it in integers, as Resize says.
Places places_of(const Resize& op, std::int64_t extent, std::int64_t size) {
  Places places;
  for (std::int64_t o = 0; o < size; ++o) {
    std::int64_t top = 0, bottom = 1;  // s = top / bottom
    if (!op.align_corners) {
      bottom = 2 * size;
      top = std::clamp<std::int64_t>((2 * o + 1) * extent - size, 0, (extent - 1) * bottom);
    } else if (size > 1) {
      top = o * (extent - 1);
      bottom = size - 1;
    }
    if (op.kind == ResizeKind::nearest) {
      places.low.push_back((2 * top + bottom) / (2 * bottom));
      places.fraction.push_back(0);
    } else {
      places.low.push_back(top / bottom);
      places.fraction.push_back(static_cast<double>(top % bottom) / static_cast<double>(bottom));
    }
    places.high.push_back(std::min(places.low.back() + 1, extent - 1));
  }
  return places;
}

/// Three axes, as in WindowGrid.
struct Resizer {
  std::array<Places, 3> places{Places{{0}, {0}, {0}}, Places{{0}, {0}, {0}}, Places{{0}, {0}, {0}}};
  std::array<std::int64_t, 3> extents{1, 1, 1}, sizes{1, 1, 1};
  std::int64_t batch = 0, channels = 0;
  BlockSource x;
  BlockSink sink;
  std::size_t item = 0;

  std::int64_t positions() const { return sizes[0] * sizes[1] * sizes[2]; }

  std::array<std::size_t, 3> indices(std::int64_t position) const {
    return {static_cast<std::size_t>(position / sizes[2] / sizes[1]),
            static_cast<std::size_t>(position / sizes[2] % sizes[1]),
            static_cast<std::size_t>(position % sizes[2])};
  }
  std::int64_t element(std::int64_t image, std::int64_t i, std::int64_t j, std::int64_t k) const {
    return (((image * extents[0] + i) * extents[1] + j) * extents[2] + k) * channels;
  }

  void copy_nearest(const Launch& launch, std::int64_t image, std::int64_t position) const {
    const auto o = indices(position);
    const auto bytes = static_cast<std::int64_t>(item);
    const std::int64_t from =
        element(image, places[0].low[o[0]], places[1].low[o[1]], places[2].low[o[2]]);
    const std::int64_t to = (image * positions() + position) * channels;
    std::memcpy(launch.outputs[0].data + to * bytes, launch.inputs[0].data + from * bytes,
                static_cast<std::size_t>(channels * bytes));
  }

  template <class T>
  void interpolate(const Launch& launch, std::int64_t image, std::int64_t position) const {
    const auto o = indices(position);
    BlockBuffer scratch, out_scratch;
    std::byte* out = launch.outputs[0].data;
    for (std::int64_t c = 0; c < channels; c += kBlock) {
      const std::int64_t n = std::min(kBlock, channels - c);
      alignas(64) T sums[kBlock] = {};
      for (unsigned corner = 0; corner < 8; ++corner) {
        std::array<std::int64_t, 3> at;
        double weight = 1;
        for (std::size_t i = 0; i < 3; ++i) {
          const bool high = corner >> i & 1u;
          const double fraction = places[i].fraction[o[i]];
          at[i] = high ? places[i].high[o[i]] : places[i].low[o[i]];
          weight *= high ? fraction : 1 - fraction;
        }
        if (weight == 0) continue;
        const std::int64_t from = element(image, at[0], at[1], at[2]) + c;
        const auto* values = static_cast<const T*>(x.load(launch.inputs[0].data, from, n, scratch));
        const T factor = static_cast<T>(weight);
        for (std::int64_t k = 0; k < n; ++k) sums[k] += factor * values[k];
      }
      const std::int64_t to = (image * positions() + position) * channels + c;
      auto* target = static_cast<T*>(sink.target(out, to, out_scratch));
      std::copy_n(sums, n, target);
      sink.store(target, out, to, n);
    }
  }
};

using ResizeOutput = void (Resizer::*)(const Launch&, std::int64_t, std::int64_t) const;

Run resize_run(const PrepareArgs& args, const Resize& op) {
  const TensorSpec& x = args.inputs[0].spec;
  Resizer resizer;
  const std::size_t first = 3 - op.size.size();
  for (std::size_t i = 0; i < op.size.size(); ++i) {
    resizer.extents[first + i] = x.shape[i + 1];
    resizer.sizes[first + i] = op.size[i];
    resizer.places[first + i] = places_of(op, x.shape[i + 1], op.size[i]);
  }
  resizer.batch = x.shape[0];
  resizer.channels = x.shape.back();
  resizer.x = BlockSource(args.inputs[0]);
  resizer.sink = BlockSink(x.dtype);
  resizer.item = item_size(x.dtype);
  const bool nearest = op.kind == ResizeKind::nearest;
  const ResizeOutput output = nearest                 ? &Resizer::copy_nearest
                              : x.dtype == DType::f64 ? &Resizer::interpolate<double>
                                                      : &Resizer::interpolate<float>;
  return [resizer = std::move(resizer), output, nearest](const Launch& launch) {
    const std::int64_t work = resizer.channels * (nearest ? 1 : 8);
    for_each_output(launch, resizer.batch, resizer.positions(), work,
                    [&](std::int64_t image, std::int64_t position) {
                      (resizer.*output)(launch, image, position);
                    });
  };
}

}  // namespace

Prepared prepare_pool(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  if (const auto* op = std::get_if<Pool>(&args.op)) {
    return make_kernel(std::move(traits), pool_run(args, *op));
  }
  return make_kernel(std::move(traits), resize_run(args, std::get<Resize>(args.op)));
}

}  // namespace heddle::cpu
