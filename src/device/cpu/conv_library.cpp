// Convolution through oneDNN: f32 and bf16, whose kernels read windows where they lie.
//
// An image is cut by its shape alone, so that a result depends neither on the other images nor on
// the number of threads, which the pieces are shared out to. Where it is larger than the weights,
// it is cut into slabs of outputs along its first spatial axis, each a convolution with padding of
// its own, and the weights are laid out as primitives want them at the beginning of each run. Where
// weights are larger, their output channels are cut into parts, each laid out and used for all
// images while it is in a cache.
#include "device/cpu/conv_library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "device/cpu/block_io.h"
#include "device/cpu/dnnl_run.h"
#include "device/cpu/isa.h"
#include "device/cpu/pair_products.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

using Dnnl = dnnl::memory;

// Operations of a slab, at least: some hundreds of microseconds of them.
constexpr double kSlabOperations = 6e7;
// Below as many for an image, what calls cost outweighs what oneDNN's kernels save. Of an image, so
// that its company decides nothing.
constexpr double kLeastOperations = 1e6;
// Pieces that can run at once: each has its part of the workspace.
constexpr std::int64_t kMostSlots = 16;
// Output channels that are laid out together: a multiple of all blocks that primitives ask for.
constexpr std::int64_t kOutputPart = 64;

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

/// What all convolutions of a kernel share.
struct Shapes {
  Windows windows;
  Dnnl::data_type type;
  std::int64_t item, batch, groups;
  Shape x, w, out;

  std::size_t spatial() const { return x.size() - 2; }
  std::int64_t outputs() const { return out.back(); }
  std::int64_t depth() const { return elements(w) / w[0]; }  // terms of a sum
  /// Elements from one place of the first spatial axis to the next.
  static std::int64_t step(const Shape& shape) {
    std::int64_t count = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) count *= shape[i];
    return count;
  }
  /// Places of an image's outputs along the others.
  std::int64_t places() const { return step(out) / outputs(); }

  Slab slab(std::int64_t begin, std::int64_t end) const {
    return slab_of(windows, x[1], w[1], begin, end);
  }

  /// [O, K..., C/groups] in oneDNN's order, (G,) O, C, K...: as it lies, for `count` outputs.
  Dnnl::desc weights(std::int64_t count) const {
    Dnnl::dims dims = weight_dims(count), strides;
    if (groups > 1) strides.push_back(count / groups * depth());
    strides.insert(strides.end(), {depth(), 1});
    const Dims all = contiguous_strides(w);
    strides.insert(strides.end(), all.begin() + 1, all.begin() + 1 + spatial());
    return {dims, type, strides};
  }
  Dnnl::desc weights_of_any_form(std::int64_t count) const {
    return {weight_dims(count), type, Dnnl::format_tag::any};
  }
  /// Whether weights of `count` outputs are wanted as PairProducts::pack_columns packs kOutputPart
  /// at a time.
  bool are_pairs(const Dnnl::desc& wanted, std::int64_t count) const {
    using enum Dnnl::format_tag;
    constexpr Dnnl::format_tag kTags[] = {AcB64a2b, AcdB64a2b, AcdeB64a2b};
    static_assert(kOutputPart == kGroupColumns && kOutputPart == 64);
    const bool whole = groups == 1 && count % kOutputPart == 0 && w.back() % 2 == 0;
    return whole && type == Dnnl::data_type::bf16 && spatial() <= std::size(kTags) &&
           wanted == Dnnl::desc(weight_dims(count), type, kTags[spatial() - 1]);
  }

 private:
  Dnnl::dims weight_dims(std::int64_t count) const {
    Dnnl::dims dims;
    if (groups > 1) dims.push_back(groups);
    dims.insert(dims.end(), {count / groups, w.back()});
    dims.insert(dims.end(), w.begin() + 1, w.begin() + 1 + spatial());
    return dims;
  }
};

struct Convolution {
  Dnnl::desc x, weights, out, scratchpad;
  dnnl::convolution_forward primitive;
  bool serves = false;

  std::size_t scratch_bytes() const { return dnnl_aligned(scratchpad.get_size()); }

  void run(std::byte* from, std::byte* w, std::byte* to, std::byte* scratch) const {
    primitive.execute(dnnl_thread_stream(),
                      {{DNNL_ARG_SRC, Dnnl(x, dnnl_engine(), from)},
                       {DNNL_ARG_WEIGHTS, Dnnl(weights, dnnl_engine(), w)},
                       {DNNL_ARG_DST, Dnnl(out, dnnl_engine(), to)},
                       {DNNL_ARG_SCRATCHPAD, Dnnl(scratchpad, dnnl_engine(), scratch)}});
  }
};

/// Of a slab of one image, for `outputs` output channels.
Convolution make_convolution(const Shapes& s, const Slab& slab, std::int64_t outputs,
                             const Dnnl::desc& weights) {
  const Windows& windows = s.windows;
  Dnnl::dims in(s.x.begin() + 1, s.x.begin() + 1 + s.spatial());
  Dnnl::dims out(s.out.begin() + 1, s.out.begin() + 1 + s.spatial());
  Dnnl::dims low = dims_of(windows.padding_low), high = low;
  // Behind the last window there may be more of an axis.
  for (std::size_t i = 1; i < s.spatial(); ++i) {
    high[i] = (out[i] - 1) * windows.stride[i] - low[i] +
              (s.w[i + 1] - 1) * windows.kernel_dilation[i] + 1 - in[i];
  }
  in[0] = slab.extent;
  out[0] = slab.end - slab.begin;
  low[0] = slab.low;
  high[0] = slab.high;
  Dnnl::dims dilation = dims_of(windows.kernel_dilation);
  for (std::int64_t& d : dilation) --d;
  Convolution made;
  made.x = channels_last(in, s.x.back(), s.type);
  made.out = channels_last(out, outputs, s.type);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::desc description(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, made.x, weights,
      made.out, dims_of(windows.stride), dilation, low, high);
  const dnnl::convolution_forward::primitive_desc chosen(description, attributes, dnnl_engine());
  // The others are no quicker than what we have.
  const std::string_view name = chosen.impl_info_str();
  made.serves = name.starts_with("br") || name.starts_with("jit");
  made.weights = chosen.weights_desc();
  made.scratchpad = chosen.scratchpad_desc();
  made.primitive = dnnl::convolution_forward(chosen);
  return made;
}

/// Lays out weights of some output channels as a primitive wants them: in pairs of bf16 by loops of
/// our own, which are several times as quick as oneDNN's.
class Reorder {
 public:
  Reorder(const Dnnl::desc& plain, const Dnnl::desc& wanted)
      : from_(plain),
        to_(wanted),
        primitive_(dnnl::reorder::primitive_desc(dnnl_engine(), from_, dnnl_engine(), to_)) {}
  /// Of kOutputPart channels, `skipped` bytes of weights on; in pairs.
  Reorder(const PairProducts& pairs, std::int64_t depth, std::int64_t skipped)
      : pairs_(&pairs), depth_(depth), skipped_(skipped) {}

  void run(std::byte* plain, std::byte* wanted) const {
    if (pairs_) {
      return pairs_->pack_columns(plain + skipped_, depth_ * kPairItem, depth_, kOutputPart,
                                  reinterpret_cast<float*>(wanted + skipped_));
    }
    primitive_.execute(dnnl_thread_stream(), {{DNNL_ARG_FROM, Dnnl(from_, dnnl_engine(), plain)},
                                              {DNNL_ARG_TO, Dnnl(to_, dnnl_engine(), wanted)}});
  }

 private:
  static constexpr std::int64_t kPairItem = 2;
  const PairProducts* pairs_ = nullptr;
  std::int64_t depth_ = 0, skipped_ = 0;
  Dnnl::desc from_, to_;
  dnnl::reorder primitive_;
};

// ---- Images in slabs

class SlabConv {
 public:
  explicit SlabConv(const Shapes& shapes) : s_(shapes) {
    const OneOpenMpThread one_thread;
    make_slabs();
    make_reorders();
  }

  bool serves() const { return serves_; }
  std::size_t workspace_bytes() const {
    return weight_bytes() + static_cast<std::size_t>(slots_) * scratch_bytes_;
  }

  void run(const Launch& launch) const {
    lay_out_weights(launch);
    const auto slabs = static_cast<std::int64_t>(slabs_.size());
    const std::int64_t count = rows_that_count(s_.batch, launch.extent) * slabs;
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
  std::size_t weight_bytes() const {
    return reorders_.empty() ? 0 : dnnl_aligned(convolutions_[0].weights.get_size());
  }

  /// Slabs about as high as each other, a power of two of them: so two threads, or four, get as
  /// much to do.
  void make_slabs() {
    const std::int64_t rows = s_.out[1];
    const double work =
        2.0 * static_cast<double>(Shapes::step(s_.out)) * static_cast<double>(s_.depth());
    const double least = std::max(1.0, kSlabOperations / work);
    const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(rows) / least));
    const auto count = std::min(rows, static_cast<std::int64_t>(std::bit_ceil(wanted)));
    for (std::int64_t i = 0; i < count; ++i) {
      const Slab slab = s_.slab(rows * i / count, rows * (i + 1) / count);
      if (slab.extent <= 0) return;  // of padding alone
      slabs_.push_back(slab);
      kinds_.push_back(kind_of(slab));
      if (!convolutions_.back().serves) return;
    }
    slots_ = std::min(s_.batch * count, kMostSlots);
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
    const Dnnl::desc weights =
        convolutions_.empty() ? s_.weights_of_any_form(s_.outputs()) : convolutions_[0].weights;
    convolutions_.push_back(make_convolution(s_, slab, s_.outputs(), weights));
    made_for_.push_back(slab);
    scratch_bytes_ = std::max(scratch_bytes_, convolutions_.back().scratch_bytes());
    return made_for_.size() - 1;
  }

  /// In parts of outputs, or of groups, where these are whole blocks.
  void make_reorders() {
    const Dnnl::desc plain = s_.weights(s_.outputs());
    if (!serves_ || convolutions_[0].weights == plain) return;
    const Dnnl::dims dims = plain.dims();
    const PairProducts* pairs = pair_products(isa());
    const bool in_pairs = pairs && s_.are_pairs(convolutions_[0].weights, s_.outputs());
    const std::int64_t part = dims[0] % kOutputPart == 0 ? kOutputPart : dims[0];
    for (std::int64_t begin = 0; begin < dims[0]; begin += part) {
      if (in_pairs) {
        reorders_.emplace_back(*pairs, s_.depth(), begin * s_.depth() * s_.item);
        continue;
      }
      Dnnl::dims extents = dims, offsets(dims.size(), 0);
      extents[0] = part;
      offsets[0] = begin;
      reorders_.emplace_back(plain.submemory_desc(extents, offsets),
                             convolutions_[0].weights.submemory_desc(extents, offsets));
    }
  }

  void lay_out_weights(const Launch& launch) const {
    parallel(launch.team, static_cast<std::int64_t>(reorders_.size()), 1,
             [&](std::int64_t begin, std::int64_t end) {
               const OneOpenMpThread one_thread;
               for (std::int64_t i = begin; i < end; ++i) {
                 reorders_[static_cast<std::size_t>(i)].run(launch.inputs[1].data,
                                                            launch.workspace);
               }
             });
  }

  void compute(const Launch& launch, std::int64_t image, std::size_t index,
               std::byte* scratch) const {
    const Slab& slab = slabs_[index];
    const std::int64_t x = (image * s_.x[1] + slab.from) * Shapes::step(s_.x);
    const std::int64_t out = (image * s_.out[1] + slab.begin) * Shapes::step(s_.out);
    std::byte* weights = reorders_.empty() ? launch.inputs[1].data : launch.workspace;
    convolutions_[kinds_[index]].run(launch.inputs[0].data + x * s_.item, weights,
                                     launch.outputs[0].data + out * s_.item, scratch);
  }

  Shapes s_;
  std::int64_t slots_ = 0;
  bool serves_ = false;
  std::size_t scratch_bytes_ = 0;
  std::vector<Slab> slabs_, made_for_;
  std::vector<std::size_t> kinds_;  // of slabs: which primitive
  std::vector<Convolution> convolutions_;
  std::vector<Reorder> reorders_;
};

// ---- Weights in parts

class PartConv {
 public:
  explicit PartConv(const Shapes& shapes) : s_(shapes), parts_(s_.outputs() / kOutputPart) {
    const OneOpenMpThread one_thread;
    const Slab whole = s_.slab(0, s_.out[1]);
    if (whole.extent <= 0) return;
    from_ = whole.from;
    conv_ = make_convolution(s_, whole, kOutputPart, s_.weights_of_any_form(kOutputPart));
    const PairProducts* pairs = pair_products(isa());
    if (pairs && s_.are_pairs(conv_.weights, kOutputPart)) {
      reorder_.emplace(*pairs, s_.depth(), 0);
    } else {
      reorder_.emplace(s_.weights(kOutputPart), conv_.weights);
    }
    slots_ = std::min(parts_, kMostSlots);
  }

  /// Whether weights are what there is most of.
  static bool suits(const Shapes& s) {
    const std::int64_t image = elements(s.x) / s.batch + elements(s.out) / s.batch;
    return s.groups == 1 && s.outputs() % kOutputPart == 0 && s.outputs() > kOutputPart &&
           elements(s.w) > image;
  }

  bool serves() const { return conv_.serves; }
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(slots_) * slot_bytes(); }

  void run(const Launch& launch) const {
    parallel(launch.team, slots_, 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenMpThread one_thread;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* memory = launch.workspace + static_cast<std::size_t>(slot) * slot_bytes();
        for (std::int64_t part = slot; part < parts_; part += slots_) {
          compute(launch, part, memory);
        }
      }
    });
  }

 private:
  std::size_t weight_bytes() const { return dnnl_aligned(conv_.weights.get_size()); }
  std::size_t out_bytes() const { return dnnl_aligned(conv_.out.get_size()); }
  std::size_t slot_bytes() const { return weight_bytes() + out_bytes() + conv_.scratch_bytes(); }

  void compute(const Launch& launch, std::int64_t part, std::byte* weights) const {
    std::byte* sums = weights + weight_bytes();
    reorder_->run(launch.inputs[1].data + part * kOutputPart * s_.depth() * s_.item, weights);
    const std::int64_t places = s_.out[1] * s_.places();
    const std::int64_t row = kOutputPart * s_.item, whole = s_.outputs() * s_.item;
    for (std::int64_t image = 0; image < rows_that_count(s_.batch, launch.extent); ++image) {
      const std::int64_t x = (image * s_.x[1] + from_) * Shapes::step(s_.x);
      conv_.run(launch.inputs[0].data + x * s_.item, weights, sums, sums + out_bytes());
      std::byte* to = launch.outputs[0].data + image * places * whole + part * row;
      for (std::int64_t i = 0; i < places; ++i) {
        std::memcpy(to + i * whole, sums + i * row, static_cast<std::size_t>(row));
      }
    }
  }

  Shapes s_;
  std::int64_t parts_, from_ = 0, slots_ = 0;
  Convolution conv_;
  std::optional<Reorder> reorder_;
};

/// Whether oneDNN has such windows: forwards, undilated inputs, no cropping.
bool has_windows(const Conv& op) {
  bool plain = !op.flip;
  for (std::size_t i = 0; i < op.windows->stride.size(); ++i) {
    plain = plain && op.windows->input_dilation[i] == 1 && op.windows->padding_low[i] >= 0 &&
            op.windows->padding_high[i] >= 0;
  }
  return plain;
}

template <class Kernel>
std::optional<LibraryConv> served_by(const Shapes& shapes) {
  const auto conv = std::make_shared<const Kernel>(shapes);
  if (!conv->serves()) return std::nullopt;
  return LibraryConv{[conv](const Launch& launch) {
                       try {
                         conv->run(launch);
                       } catch (const dnnl::error& error) {
                         fail(ErrorCode::backend, "conv: oneDNN: {}", error.message);
                       }
                     },
                     conv->workspace_bytes()};
}

}  // namespace

std::optional<LibraryConv> library_conv(const Conv& op, const TensorSpec& x, const TensorSpec& w,
                                        const TensorSpec& out) {
  const bool typed = x.dtype == DType::f32 || x.dtype == DType::bf16;
  if (!typed || isa() < Isa::avx512 || !has_level(Isa::avx512) || !has_windows(op))
    return std::nullopt;
  if (elements(w.shape) == 0 || elements(out.shape) == 0) return std::nullopt;
  const Shapes shapes{op.windows,
                      x.dtype == DType::bf16 ? Dnnl::data_type::bf16 : Dnnl::data_type::f32,
                      static_cast<std::int64_t>(item_size(x.dtype)),
                      x.shape[0],
                      op.groups,
                      x.shape,
                      w.shape,
                      out.shape};
  const double operations = 2.0 * static_cast<double>(elements(out.shape) / out.shape[0]) *
                            static_cast<double>(shapes.depth());
  if (operations < kLeastOperations) return std::nullopt;
  try {
    return PartConv::suits(shapes) ? served_by<PartConv>(shapes) : served_by<SlabConv>(shapes);
  } catch (const dnnl::error&) {
    return std::nullopt;  // it has no kernel for these on this processor; ours has
  }
}

}  // namespace heddle::cpu
