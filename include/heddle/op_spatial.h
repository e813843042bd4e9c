// Ops over spatial axes: convolution and windows, pooling, resizing.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/boxed.h"
#include "heddle/tensor.h"

namespace heddle {

// Tensors are channels-last: [N, S_1 ... S_n, C], with n = 1 to 3 spatial axes, all of them of
// extent 1 or more. Every Dims has n entries, one for each spatial axis.

/// How windows of `extent` taps are laid over a spatial axis: output o's tap k (0 <= k < extent)
/// lies at p = o*stride + k*kernel_dilation - padding_low of the axis with input_dilation - 1 zeros
/// between its elements, so that it reads element p / input_dilation where
/// 0 <= p < (S-1)*input_dilation + 1 and input_dilation divides p, and zero elsewhere. Outputs:
///   (((S-1)*input_dilation + 1 + padding_low + padding_high)
///     - ((extent-1)*kernel_dilation + 1)) / stride + 1, rounded down; it must be 1 or more.
/// Strides and dilations are 1 or more. Paddings may be negative: then they crop.
struct Windows {
  Dims stride, padding_low, padding_high, kernel_dilation, input_dilation;
  bool operator==(const Windows&) const = default;
  void fields(auto&& f) const {
    f("stride", stride), f("padding_low", padding_low), f("padding_high", padding_high),
        f("kernel_dilation", kernel_dilation), f("input_dilation", input_dilation);
  }
};

/// x [N, S..., C], weights [O, K..., C/groups], of one floating dtype -> [N, out..., O]:
/// out[n, o..., j] = sum over taps k and c of x[n, p(o, k)..., g*C/groups + c] * w[j, k..., c],
/// where g = j / (O/groups). `flip` reads the weights' taps backwards on every spatial axis: with
/// input_dilation as stride, that is the transposed convolution. C and O are multiples of
/// `groups` > 0. Half types accumulate in f32.
struct Conv {
  static constexpr std::string_view kName = "conv";
  Boxed<Windows> windows;
  std::int64_t groups = 1;
  bool flip = false;
  bool operator==(const Conv&) const = default;
  void fields(auto&& f) const { windows->fields(f), f("groups", groups), f("flip", flip); }
};

/// x [N, S..., C], of a plain dtype -> [N, out..., K_1*...*K_n*C]: the elements that each window of
/// `window` taps reads, taps in row-major order, channels innermost; zeros (false) where it reads
/// none. conv(x, w) is im2col(x) times w reshaped to [O, K_1*...*K_n*C] and transposed.
struct Im2col {
  static constexpr std::string_view kName = "im2col";
  Dims window;
  Boxed<Windows> windows;
  bool operator==(const Im2col&) const = default;
  void fields(auto&& f) const { f("window", window), windows->fields(f); }
};

/// The extents of a pool's windows, and how they lie, as Windows says.
struct PoolWindows {
  Dims window, stride, padding_low, padding_high;
  bool operator==(const PoolWindows&) const = default;
  void fields(auto&& f) const {
    f("window", window), f("stride", stride), f("padding_low", padding_low),
        f("padding_high", padding_high);
  }
};

enum class PoolKind : std::uint8_t { max, mean };
std::string_view to_string(PoolKind kind) noexcept;

/// x [N, S..., C] -> [N, out..., C]: the largest element or the mean of each window, which lies
/// and is counted as Windows says without dilations. Paddings are 0 or more and smaller than the
/// window, so that each window holds an element. Elements of the padding are never the largest. The
/// mean's divisor is the whole window's size with `count_padding` (zeros are averaged in), else the
/// number of elements that it holds. max: integer or floating, NaN if any is; mean: floating.
struct Pool {
  static constexpr std::string_view kName = "pool";
  PoolKind kind = PoolKind::max;
  Boxed<PoolWindows> windows;
  bool count_padding = true;
  bool operator==(const Pool&) const = default;
  void fields(auto&& f) const {
    f("kind", kind), windows->fields(f), f("count_padding", count_padding);
  }
};

enum class ResizeKind : std::uint8_t { nearest, linear };
std::string_view to_string(ResizeKind kind) noexcept;

/// x [N, S..., C] -> [N, size..., C]. On each axis, from S elements to m >= 1, output o stands at
///   s = ((2*o + 1)*S - m) / (2*m), clamped to [0, S-1], of the input: pixels have an extent;
///   or with `align_corners` at s = o*(S-1) / (m-1), 0 where m is 1: the ends stay where they are.
/// nearest (of plain dtypes): the element at s + 1/2, rounded down. linear (floating): with
/// i = s rounded down, weights 1 - (s - i) of element i and s - i of i + 1 (i itself, if it is the
/// last), and the products of the axes' weights over all axes; computed in f32 (f64 for f64). s is
/// a fraction of integers: i and s - i follow from an integer division with its remainder.
struct Resize {
  static constexpr std::string_view kName = "resize";
  ResizeKind kind = ResizeKind::nearest;
  Dims size;
  bool align_corners = false;
  bool operator==(const Resize&) const = default;
  void fields(auto&& f) const {
    f("kind", kind), f("size", size), f("align_corners", align_corners);
  }
};

}  // namespace heddle
