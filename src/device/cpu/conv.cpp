// Convolution, as products of weights with what windows read; and im2col, which is that alone.
//
// oneDNN has kernels for some (conv_library.cpp). Of the others, a tile of outputs has its windows
// laid out as rows of floats, and the weights are packed in panels, so that the loops of products.h
// serve. Each output's sum is taken in the order of its taps and channels, whatever tile it is in.
// Where every channel is a group of its own, channels are computed side by side instead.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/conv_library.h"
#include "device/cpu/convert.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lines.h"
#include "device/cpu/pack.h"
#include "device/cpu/parallel.h"
#include "device/cpu/products.h"
#include "device/cpu/types.h"
#include "device/cpu/windows.h"

namespace heddle::cpu {

namespace {

// Floats of a tile's windows: half a megabyte, which second-level caches hold.
constexpr std::int64_t kTileFloats = std::int64_t{1} << 17;
constexpr std::int64_t kFewestTileRows = 6;
// Tiles that may be computed at a time, each with windows of its own in the workspace: as many as
// that leaves within 64 MiB, but a few at least.
constexpr std::int64_t kMostSlots = 64;
constexpr std::int64_t kFewestSlots = 4;
constexpr std::int64_t kSlotFloats = std::int64_t{1} << 24;
constexpr std::size_t kLine = 64;

std::size_t in_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

struct ConvShape {
  WindowGrid grid;
  bool flip = false;
  std::int64_t batch = 0, channels = 0, outputs = 0, groups = 1;

  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t group_outputs() const { return outputs / groups; }
  std::int64_t depth() const { return grid.taps() * group_channels(); }
  std::int64_t batch_that_counts(std::int64_t extent) const {
    return rows_that_count(batch, extent);
  }
};

ConvShape conv_shape(const Conv& op, const TensorSpec& x, const TensorSpec& w,
                     const TensorSpec& out) {
  const Dims taps(std::span(w.shape.begin() + 1, w.shape.size() - 2));
  return {WindowGrid(op.windows, taps, x.shape, out.shape),
          op.flip,
          x.shape[0],
          x.shape.back(),
          w.shape[0],
          op.groups};
}

/// Tiles of outputs of one batch element and group, shared out among slots.
struct Tiling {
  std::int64_t rows = 1, per_image = 0, count = 0, slots = 0;

  Tiling() = default;
  Tiling(const ConvShape& s, std::int64_t batch) {
    rows = std::clamp(kTileFloats / std::max<std::int64_t>(1, s.depth()), kFewestTileRows,
                      kMostTileRows);
    per_image = (s.grid.positions() + rows - 1) / rows;
    count = batch * s.groups * per_image;
    const std::int64_t floats = std::max<std::int64_t>(1, rows * s.depth());
    slots = std::min(count, std::clamp(kSlotFloats / floats, kFewestSlots, kMostSlots));
  }
  /// Calls body(slot, tile) for all tiles: those of a slot one after another.
  template <class Body>
  void run(Team& team, const Body& body) const {
    parallel(team, slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        for (std::int64_t tile = slot; tile < count; tile += slots) body(slot, tile);
      }
    });
  }
};

// ---- f32, f16 and bf16

struct FloatConv {
  ConvShape shape;
  DType dtype;
  WidenFunction widen;
  NarrowFunction narrow;
  void (*product)(const ProductJob&);

  std::int64_t item() const { return static_cast<std::int64_t>(item_size(dtype)); }
  bool reads_in_place() const {
    return dtype == DType::f32 && shape.groups == 1 && shape.grid.pointwise();
  }
  std::int64_t group_weights() const {  // elements
    return round_up_to_panel(shape.group_outputs()) * shape.depth();
  }
  std::size_t weight_bytes() const {
    return in_lines(static_cast<std::size_t>(shape.groups * group_weights() * item()));
  }
  std::size_t workspace_bytes() const {
    const Tiling tiling(shape, shape.batch);
    const std::int64_t floats = reads_in_place() ? 0 : tiling.slots * tiling.rows * shape.depth();
    return weight_bytes() + static_cast<std::size_t>(floats) * sizeof(float);
  }

  void run(const Launch& launch) const {
    const Tiling tiling(shape, shape.batch_that_counts(launch.extent));
    if (tiling.count == 0) return;
    pack(launch);
    auto* windows = reinterpret_cast<float*>(launch.workspace + weight_bytes());
    tiling.run(launch.team, [&](std::int64_t slot, std::int64_t tile) {
      compute(launch, tiling, tile, windows + slot * tiling.rows * shape.depth());
    });
  }

 private:
  void pack(const Launch& launch) const {
    const std::int64_t panels = round_up_to_panel(shape.group_outputs()) / kPanel;
    const std::int64_t depth = shape.depth();
    with_item_type(item_size(dtype), [&](auto tag) {
      using U = typename decltype(tag)::type;
      const Matrix matrix{shape.group_outputs(), depth, depth, 1};
      parallel(launch.team, shape.groups * panels, row_grain(depth * kPanel),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p) {
                   const std::int64_t group = p / panels;
                   const U* from = launch.inputs[1].as<U>() + group * shape.group_outputs() * depth;
                   pack_panel<U>(matrix, from, p % panels,
                                 reinterpret_cast<U*>(launch.workspace) + p * depth * kPanel);
                 }
               });
    });
  }

  void compute(const Launch& launch, const Tiling& tiling, std::int64_t tile,
               float* windows) const {
    const std::int64_t first = tile % tiling.per_image * tiling.rows;
    const std::int64_t rows = std::min(tiling.rows, shape.grid.positions() - first);
    const std::int64_t group = tile / tiling.per_image % shape.groups;
    const std::int64_t image = tile / tiling.per_image / shape.groups;
    const float* x = windows;
    if (reads_in_place()) {
      x = launch.inputs[0].as<float>() + (image * shape.grid.elements() + first) * shape.channels;
    } else {
      lay_out(launch.inputs[0].data, image, group, first, rows, windows);
    }
    const std::byte* weights = launch.workspace + group * group_weights() * item();
    for (std::int64_t column = 0; column < shape.group_outputs(); column += kGroupColumns) {
      const std::int64_t columns = std::min(kGroupColumns, shape.group_outputs() - column);
      const std::int64_t to = (image * shape.grid.positions() + first) * shape.outputs +
                              group * shape.group_outputs() + column;
      multiply({.x = x,
                .x_stride = shape.depth(),
                .rows = rows,
                .weights = weights + column * shape.depth() * item(),
                .depth = shape.depth(),
                .columns = columns},
               launch.outputs[0].data + to * item());
    }
  }

  void lay_out(const std::byte* in, std::int64_t image, std::int64_t group, std::int64_t first,
               std::int64_t rows, float* windows) const {
    const std::int64_t n = shape.group_channels(), taps = shape.grid.taps();
    const std::byte* from =
        in + (image * shape.grid.elements() * shape.channels + group * n) * item();
    // Taps side by side are so in x too, unless groups lie between them.
    const bool by_runs = shape.groups == 1 && !shape.flip;
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = windows + r * shape.depth();
      const auto copy = [&](std::int64_t tap, std::int64_t count, std::int64_t element) {
        float* to = row + (shape.flip ? taps - 1 - tap : tap) * n;
        if (element < 0) {
          std::fill_n(to, count * n, 0.0f);
        } else {
          widen(from + element * shape.channels * item(), to, count * n);
        }
      };
      if (by_runs) {
        shape.grid.for_each_run(first + r, copy);
      } else {
        shape.grid.for_each_tap(
            first + r, [&](std::int64_t tap, std::int64_t element) { copy(tap, 1, element); });
      }
    }
  }

  void multiply(ProductJob job, std::byte* out) const {
    alignas(64) float sums[kMostTileRows * kGroupColumns];
    const bool direct = dtype == DType::f32;
    job.out = direct ? reinterpret_cast<float*>(out) : sums;
    job.out_stride = direct ? shape.outputs : kGroupColumns;
    product(job);
    if (direct) return;
    for (std::int64_t r = 0; r < job.rows; ++r) {
      narrow(sums + r * kGroupColumns, out + r * shape.outputs * item(), job.columns);
    }
  }
};

// ---- A group for each channel

/// The weights' taps as rows of all channels, in the type that is computed in.
template <class T>
struct DepthwiseConv {
  ConvShape shape;
  BlockSource x, w;
  BlockSink sink;

  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(shape.depth() * shape.channels) * sizeof(T);
  }

  void run(const Launch& launch) const {
    auto* weights = reinterpret_cast<T*>(launch.workspace);
    lay_out(launch.inputs[1].data, weights);
    const std::int64_t positions = shape.grid.positions();
    parallel(launch.team, shape.batch_that_counts(launch.extent) * positions,
             row_grain(shape.channels * shape.grid.taps()),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 compute(launch, weights, i / positions, i % positions);
               }
             });
  }

 private:
  void lay_out(const std::byte* from, T* weights) const {
    const std::int64_t taps = shape.grid.taps();
    BlockBuffer scratch;
    for (std::int64_t i = 0; i < shape.channels * taps; i += kBlock) {
      const std::int64_t n = std::min(kBlock, shape.channels * taps - i);
      const auto* block = static_cast<const T*>(w.load(from, i, n, scratch));
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t channel = (i + k) / taps, tap = (i + k) % taps;
        weights[(shape.flip ? taps - 1 - tap : tap) * shape.channels + channel] = block[k];
      }
    }
  }

  void compute(const Launch& launch, const T* weights, std::int64_t image,
               std::int64_t position) const {
    BlockBuffer scratch;
    for (std::int64_t c = 0; c < shape.channels; c += kBlock) {
      const std::int64_t n = std::min(kBlock, shape.channels - c);
      alignas(64) T sums[kBlock] = {};
      shape.grid.for_each_tap(position, [&](std::int64_t tap, std::int64_t element) {
        if (element < 0) return;
        const std::int64_t from = (image * shape.grid.elements() + element) * shape.channels + c;
        const auto* values = static_cast<const T*>(x.load(launch.inputs[0].data, from, n, scratch));
        const T* factors = weights + tap * shape.channels + c;
        for (std::int64_t k = 0; k < n; ++k) sums[k] += values[k] * factors[k];
      });
      store(launch, (image * shape.grid.positions() + position) * shape.channels + c, sums, n);
    }
  }

  void store(const Launch& launch, std::int64_t at, const T* sums, std::int64_t n) const {
    BlockBuffer scratch;
    auto* to = static_cast<T*>(sink.target(launch.outputs[0].data, at, scratch));
    std::copy_n(sums, n, to);
    sink.store(to, launch.outputs[0].data, at, n);
  }
};

// ---- f64

struct DoubleConv {
  ConvShape shape;

  void run(const Launch& launch) const {
    const std::int64_t positions = shape.grid.positions();
    parallel(launch.team, shape.batch_that_counts(launch.extent) * positions,
             row_grain(shape.outputs * shape.depth()), [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 compute(launch, i / positions, i % positions);
               }
             });
  }

 private:
  void compute(const Launch& launch, std::int64_t image, std::int64_t position) const {
    const auto* x = launch.inputs[0].as<double>() + image * shape.grid.elements() * shape.channels;
    double* out = launch.outputs[0].as<double>() +
                  (image * shape.grid.positions() + position) * shape.outputs;
    std::fill_n(out, shape.outputs, 0.0);
    const std::int64_t n = shape.group_channels(), taps = shape.grid.taps();
    shape.grid.for_each_tap(position, [&](std::int64_t tap, std::int64_t element) {
      if (element < 0) return;
      for (std::int64_t o = 0; o < shape.outputs; ++o) {
        const double* from = x + element * shape.channels + o / shape.group_outputs() * n;
        const double* w = launch.inputs[1].as<double>() + o * shape.depth() +
                          (shape.flip ? taps - 1 - tap : tap) * n;
        for (std::int64_t c = 0; c < n; ++c) out[o] += from[c] * w[c];
      }
    });
  }
};

template <class Kernel>
Prepared with_workspace(KernelTraits traits, const Kernel& kernel) {
  traits.workspace_bytes = kernel.workspace_bytes();
  return make_kernel(std::move(traits), [kernel](const Launch& launch) { kernel.run(launch); });
}

Prepared prepare_convolution(const PrepareArgs& args, const Conv& op) {
  const OperandSpec &x = args.inputs[0], &w = args.inputs[1];
  const DType dtype = x.spec.dtype;
  const ConvShape shape = conv_shape(op, x.spec, w.spec, args.outputs[0].spec);
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  if (auto library = library_conv(op, x.spec, w.spec, args.outputs[0].spec)) {
    traits.workspace_bytes = library->workspace_bytes;
    return make_kernel(std::move(traits), std::move(library->run));
  }
  if (shape.groups == shape.channels && shape.groups == shape.outputs) {
    const BlockSink sink(dtype);
    if (dtype == DType::f64) {
      return with_workspace(std::move(traits),
                            DepthwiseConv<double>{shape, BlockSource(x), BlockSource(w), sink});
    }
    return with_workspace(std::move(traits),
                          DepthwiseConv<float>{shape, BlockSource(x), BlockSource(w), sink});
  }
  if (dtype == DType::f64) {
    return make_kernel(std::move(traits),
                       [conv = DoubleConv{shape}](const Launch& launch) { conv.run(launch); });
  }
  const auto type = static_cast<std::size_t>(*stored_type(dtype));
  return with_workspace(std::move(traits),
                        FloatConv{shape, dtype, widen_function(dtype), narrow_function(dtype),
                                  products(isa()).panels[type]});
}

// ---- Im2col

Prepared prepare_im2col(const PrepareArgs& args, const Im2col& op) {
  const TensorSpec &x = args.inputs[0].spec, &out = args.outputs[0].spec;
  const WindowGrid grid(op.windows, op.window, x.shape, out.shape);
  const auto bytes = x.shape.back() * static_cast<std::int64_t>(item_size(x.dtype));
  const std::int64_t batch = x.shape[0];
  KernelTraits traits = whole_operand_traits(args.inputs, args.outputs);
  traits.honours_extent = true;
  return make_kernel(std::move(traits), [grid, bytes, batch](const Launch& launch) {
    const std::int64_t positions = grid.positions();
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::byte* image = launch.inputs[0].data + i / positions * grid.elements() * bytes;
        std::byte* row = launch.outputs[0].data + i * grid.taps() * bytes;
        const auto copy = [&](std::int64_t tap, std::int64_t count, std::int64_t element) {
          const auto n = static_cast<std::size_t>(count * bytes);
          if (element < 0) {
            std::memset(row + tap * bytes, 0, n);
          } else {
            std::memcpy(row + tap * bytes, image + element * bytes, n);
          }
        };
        grid.for_each_run(i % positions, copy);
      }
    };
    parallel(launch.team, rows_that_count(batch, launch.extent) * positions,
             row_grain(grid.taps() * bytes / 4), body);
  });
}

}  // namespace

Prepared prepare_conv(const PrepareArgs& args) {
  if (std::string reason = contiguous_refusal(args); !reason.empty()) return refuse(reason);
  if (const auto* op = std::get_if<Im2col>(&args.op)) return prepare_im2col(args, *op);
  return prepare_convolution(args, std::get<Conv>(args.op));
}

}  // namespace heddle::cpu
