// Convolution through oneDNN: f32 and bf16, whose kernels read windows where they lie.
//
// An image is cut into slabs of outputs along its first spatial axis, by its shape alone, and each
// slab is a convolution of its own with its own padding. So a result depends neither on the other
// images nor on the number of threads, which the slabs are shared out to. Weights are laid out as
// the primitives want them at the beginning of each run, in parts that are shared out too.
#include "device/cpu/conv_library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/dnnl_run.h"
#include "device/cpu/isa.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

using Dnnl = dnnl::memory;

// Operations of a slab, at least: some hundreds of microseconds of them. And places of outputs, as
// each slab reads all weights.
constexpr double kSlabOperations = 3e7;
constexpr std::int64_t kSlabPlaces = 28;
// Below as many for an image, what calls cost outweighs what oneDNN's kernels save. Of an image, so
// that its company decides nothing.
constexpr double kLeastOperations = 1e6;
// Slabs that can run at once, if they need memory: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 16;
// Outputs whose weights are laid out together: a multiple of all blocks that primitives ask for.
constexpr std::int64_t kWeightPart = 64;

Dnnl::dims dims_of(const Dims& dims) {
  return Dnnl::dims(dims.begin(), dims.end());
}

/// Row-major strides of [N, S..., C], in oneDNN's order N, C, S....
Dnnl::desc channels_last(const Dnnl::dims& spatial, std::int64_t channels, Dnnl::data_type type) {
  Dnnl::dims dims{1, channels}, strides(spatial.size() + 2, 1);
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  std::int64_t stride = channels;
  for (std::size_t i = spatial.size(); i-- > 0; stride *= spatial[i]) strides[i + 2] = stride;
  strides[0] = stride;
  return {dims, type, strides};
}

/// Outputs [begin, end) along the first spatial axis, and what they read of it.
struct Slab {
  std::int64_t begin, end, from, extent, low, high;
};

Slab slab_of(const Windows& windows, std::int64_t extent, std::int64_t taps, std::int64_t begin,
             std::int64_t end) {
  const std::int64_t first = begin * windows.stride[0] - windows.padding_low[0];
  const std::int64_t last = (end - 1) * windows.stride[0] - windows.padding_low[0] +
                            (taps - 1) * windows.kernel_dilation[0] + 1;
  const std::int64_t from = std::clamp<std::int64_t>(first, 0, extent);
  const std::int64_t to = std::clamp<std::int64_t>(last, 0, extent);
  return {begin, end, from, to - from, from - first, last - to};
}

struct Convolution {
  Dnnl::desc x, out, scratchpad;
  dnnl::convolution_forward primitive;
};

class SlabConv {
 public:
  SlabConv(const Conv& op, const TensorSpec& x, const TensorSpec& w, const TensorSpec& out)
      : windows_(op.windows),
        type_(x.dtype == DType::bf16 ? Dnnl::data_type::bf16 : Dnnl::data_type::f32),
        item_(item_size(x.dtype)),
        batch_(x.shape[0]),
        groups_(op.groups),
        x_shape_(x.shape),
        w_shape_(w.shape),
        out_shape_(out.shape) {
    const OneOpenMpThread one_thread;
    make_weights();
    make_slabs();
    make_reorders();
  }

  bool serves() const { return serves_; }
  std::size_t workspace_bytes() const {
    return weight_bytes() + static_cast<std::size_t>(slots_) * scratch_bytes_;
  }

  void run(const Launch& launch) const {
    lay_out_weights(launch);
    const std::int64_t slabs = static_cast<std::int64_t>(slabs_.size());
    const std::int64_t count = rows_that_count(batch_, launch.extent) * slabs;
    parallel(launch.team, std::min(slots_, count), 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* scratch =
            launch.workspace + weight_bytes() + static_cast<std::size_t>(slot) * scratch_bytes_;
        for (std::int64_t i = slot; i < count; i += slots_) {
          compute(launch, i / slabs, static_cast<std::size_t>(i % slabs), scratch);
        }
      }
    });
  }

 private:
  struct Part {
    Dnnl::desc from, to;
    dnnl::reorder reorder;
  };

  std::size_t spatial() const { return x_shape_.size() - 2; }
  std::size_t weight_bytes() const {
    return reorders_.empty() ? 0 : dnnl_aligned(packed_.get_size());
  }
  /// Elements beside each other along the first spatial axis, for a step along it.
  static std::int64_t step(const Shape& shape) {
    std::int64_t count = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) count *= shape[i];
    return count;
  }

  /// [O, K..., C/groups] in oneDNN's order, (G,) O, C, K..., as it lies and as primitives want it.
  void make_weights() {
    const std::int64_t channels = w_shape_.back(), outputs = w_shape_[0] / groups_;
    Dnnl::dims dims, strides;
    const std::int64_t per_output = elements(w_shape_) / w_shape_[0];
    if (groups_ > 1) {
      dims.push_back(groups_);
      strides.push_back(outputs * per_output);
    }
    dims.insert(dims.end(), {outputs, channels});
    strides.insert(strides.end(), {per_output, 1});
    Dims taps_strides = contiguous_strides(w_shape_);
    for (std::size_t i = 1; i <= spatial(); ++i) {
      dims.push_back(w_shape_[i]);
      strides.push_back(taps_strides[i]);
    }
    plain_ = {dims, type_, strides};
    any_ = {dims, type_, Dnnl::format_tag::any};
  }

  /// Slabs about as high as each other, a power of two of them: so two threads, or four, get as
  /// much to do.
  void make_slabs() {
    const std::int64_t rows = out_shape_[1], places = step(out_shape_) / out_shape_.back();
    const double work = 2.0 * static_cast<double>(step(out_shape_)) *
                        static_cast<double>(elements(w_shape_) / w_shape_[0]);
    const double least =
        std::max({1.0, kSlabOperations / work, static_cast<double>(kSlabPlaces / places)});
    const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(rows) / least));
    const auto count = std::min(rows, static_cast<std::int64_t>(std::bit_ceil(wanted)));
    for (std::int64_t i = 0; i < count; ++i) {
      const Slab slab =
          slab_of(windows_, x_shape_[1], w_shape_[1], rows * i / count, rows * (i + 1) / count);
      if (slab.extent <= 0) return;  // of padding alone
      slabs_.push_back(slab);
      kinds_.push_back(kind_of(slab));
      if (!kinds_serve_) return;
    }
    slots_ = std::min(batch_ * static_cast<std::int64_t>(slabs_.size()), kMostSlots);
    serves_ = true;
  }

  /// The primitive for slabs of such extents and paddings, made once.
  std::size_t kind_of(const Slab& slab) {
    for (std::size_t i = 0; i < made_for_.size(); ++i) {
      const Slab& other = made_for_[i];
      const bool alike = other.end - other.begin == slab.end - slab.begin &&
                         other.extent == slab.extent && other.low == slab.low &&
                         other.high == slab.high;
      if (alike) return i;
    }
    made_for_.push_back(slab);
    convolutions_.push_back(make_convolution(slab));
    return made_for_.size() - 1;
  }

  Convolution make_convolution(const Slab& slab) {
    Dnnl::dims in, out, low = dims_of(windows_.padding_low), high = dims_of(windows_.padding_high);
    for (std::size_t i = 1; i <= spatial(); ++i) {
      in.push_back(x_shape_[i]);
      out.push_back(out_shape_[i]);
    }
    // Beyond what the last window reads there may be more of the axis.
    for (std::size_t i = 1; i < spatial(); ++i) {
      high[i] = (out[i] - 1) * windows_.stride[i] - low[i] +
                (w_shape_[i + 1] - 1) * windows_.kernel_dilation[i] + 1 - in[i];
    }
    in[0] = slab.extent;
    out[0] = slab.end - slab.begin;
    low[0] = slab.low;
    high[0] = slab.high;
    Dnnl::dims dilation = dims_of(windows_.kernel_dilation);
    for (std::int64_t& d : dilation) --d;
    Convolution made;
    made.x = channels_last(in, x_shape_.back(), type_);
    made.out = channels_last(out, out_shape_.back(), type_);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::desc description(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, made.x,
        convolutions_.empty() ? any_ : packed_, made.out, dims_of(windows_.stride), dilation, low,
        high);
    const dnnl::convolution_forward::primitive_desc chosen(description, attributes, dnnl_engine());
    // The others are no quicker than what we have.
    const std::string_view name = chosen.impl_info_str();
    kinds_serve_ = name.starts_with("br") || name.starts_with("jit");
    packed_ = chosen.weights_desc();
    made.scratchpad = chosen.scratchpad_desc();
    made.primitive = dnnl::convolution_forward(chosen);
    scratch_bytes_ = std::max(scratch_bytes_, dnnl_aligned(made.scratchpad.get_size()));
    return made;
  }

  /// In parts of outputs, or of groups, where these are whole blocks.
  void make_reorders() {
    if (!serves_ || packed_ == plain_) return;
    const Dnnl::dims dims = plain_.dims();
    const std::int64_t part = dims[0] % kWeightPart == 0 ? kWeightPart : dims[0];
    for (std::int64_t begin = 0; begin < dims[0]; begin += part) {
      Dnnl::dims extents = dims, offsets(dims.size(), 0);
      extents[0] = part;
      offsets[0] = begin;
      const Dnnl::desc from = plain_.submemory_desc(extents, offsets);
      const Dnnl::desc to = packed_.submemory_desc(extents, offsets);
      const dnnl::reorder::primitive_desc chosen(dnnl_engine(), from, dnnl_engine(), to);
      reorders_.push_back({from, to, dnnl::reorder(chosen)});
    }
  }

  void lay_out_weights(const Launch& launch) const {
    parallel(launch.team, static_cast<std::int64_t>(reorders_.size()), 1,
             [&](std::int64_t begin, std::int64_t end) {
               const OneOpenMpThread one_thread;
               for (std::int64_t i = begin; i < end; ++i) {
                 const Part& part = reorders_[static_cast<std::size_t>(i)];
                 part.reorder.execute(
                     dnnl_thread_stream(),
                     {{DNNL_ARG_FROM, Dnnl(part.from, dnnl_engine(), launch.inputs[1].data)},
                      {DNNL_ARG_TO, Dnnl(part.to, dnnl_engine(), launch.workspace)}});
               }
             });
  }

  void compute(const Launch& launch, std::int64_t image, std::size_t index,
               std::byte* scratch) const {
    const Slab& slab = slabs_[index];
    const Convolution& conv = convolutions_[kinds_[index]];
    const std::int64_t x = (image * x_shape_[1] + slab.from) * step(x_shape_);
    const std::int64_t out = (image * out_shape_[1] + slab.begin) * step(out_shape_);
    std::byte* weights = reorders_.empty() ? launch.inputs[1].data : launch.workspace;
    const auto item = static_cast<std::int64_t>(item_);
    conv.primitive.execute(
        dnnl_thread_stream(),
        {{DNNL_ARG_SRC, Dnnl(conv.x, dnnl_engine(), launch.inputs[0].data + x * item)},
         {DNNL_ARG_WEIGHTS, Dnnl(packed_, dnnl_engine(), weights)},
         {DNNL_ARG_DST, Dnnl(conv.out, dnnl_engine(), launch.outputs[0].data + out * item)},
         {DNNL_ARG_SCRATCHPAD, Dnnl(conv.scratchpad, dnnl_engine(), scratch)}});
  }

  Windows windows_;
  Dnnl::data_type type_;
  std::size_t item_;
  std::int64_t batch_, groups_, slots_ = 0;
  Shape x_shape_, w_shape_, out_shape_;
  Dnnl::desc plain_, any_, packed_;  // weights
  bool serves_ = false, kinds_serve_ = true;
  std::size_t scratch_bytes_ = 0;
  std::vector<Slab> slabs_, made_for_;
  std::vector<std::size_t> kinds_;  // of slabs: which primitive
  std::vector<Convolution> convolutions_;
  std::vector<Part> reorders_;
};

/// Whether oneDNN has such windows: forwards, undilated inputs, no cropping.
bool has_windows(const Conv& op) {
  bool plain = !op.flip;
  for (std::size_t i = 0; i < op.windows.stride.size(); ++i) {
    plain = plain && op.windows.input_dilation[i] == 1 && op.windows.padding_low[i] >= 0 &&
            op.windows.padding_high[i] >= 0;
  }
  return plain;
}

}  // namespace

std::optional<LibraryConv> library_conv(const Conv& op, const TensorSpec& x, const TensorSpec& w,
                                        const TensorSpec& out) {
  const bool typed = x.dtype == DType::f32 || x.dtype == DType::bf16;
  if (!typed || isa() != Isa::avx512 || !has_windows(op)) return std::nullopt;
  if (elements(w.shape) == 0 || elements(out.shape) == 0) return std::nullopt;
  const double operations = 2.0 * static_cast<double>(elements(out.shape) / out.shape[0]) *
                            static_cast<double>(elements(w.shape) / w.shape[0]);
  if (operations < kLeastOperations) return std::nullopt;
  try {
    const auto conv = std::make_shared<const SlabConv>(op, x, w, out);
    if (!conv->serves()) return std::nullopt;
    return LibraryConv{[conv](const Launch& launch) {
                         try {
                           conv->run(launch);
                         } catch (const dnnl::error& error) {
                           fail(ErrorCode::backend, "conv: oneDNN: {}", error.message);
                         }
                       },
                       conv->workspace_bytes()};
  } catch (const dnnl::error&) {
    return std::nullopt;  // it has no kernel for these on this processor; ours has
  }
}

}  // namespace heddle::cpu
