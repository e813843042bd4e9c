// Windows over up to three spatial axes of a contiguous [N, spatial..., C]: which element each tap
// of each output reads (see Windows in op_spatial.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "heddle/op.h"

namespace heddle::cpu {

struct WindowAxis {
  std::int64_t extent = 1, outputs = 1, taps = 1;
  std::int64_t stride = 1, low = 0, kernel_dilation = 1, input_dilation = 1;

  /// The element that tap `k` of output `o` reads, or -1.
  std::int64_t element(std::int64_t o, std::int64_t k) const {
    std::int64_t p = o * stride + k * kernel_dilation - low;
    if (p < 0) return -1;
    if (input_dilation > 1) {
      if (p % input_dilation != 0) return -1;
      p /= input_dilation;
    }
    return p < extent ? p : -1;
  }
};

/// Three axes; the first ones are of extent 1 where there are fewer.
class WindowGrid {
 public:
  WindowGrid() = default;
  WindowGrid(const Windows& windows, const Dims& taps, const Shape& x, const Shape& out) {
    const std::size_t first = axes_.size() - taps.size();
    for (std::size_t i = 0; i < taps.size(); ++i) {
      axes_[first + i] = {x[i + 1],
                          out[i + 1],
                          taps[i],
                          windows.stride[i],
                          windows.padding_low[i],
                          windows.kernel_dilation[i],
                          windows.input_dilation[i]};
    }
  }

  std::int64_t positions() const { return axes_[0].outputs * axes_[1].outputs * axes_[2].outputs; }
  std::int64_t elements() const { return axes_[0].extent * axes_[1].extent * axes_[2].extent; }
  std::int64_t taps() const { return axes_[0].taps * axes_[1].taps * axes_[2].taps; }
  /// Every output reads the one element that stands where it does.
  bool pointwise() const {
    bool all = taps() == 1;
    for (const WindowAxis& axis : axes_) {
      all = all && axis.stride == 1 && axis.low == 0 && axis.input_dilation == 1 &&
            axis.outputs == axis.extent;
    }
    return all;
  }

  /// Calls f(tap, spatial element or -1) for all taps of the output at `position`, in row-major
  /// order.
  template <class F>
  void for_each_tap(std::int64_t position, const F& f) const {
    const std::int64_t o2 = position % axes_[2].outputs;
    const std::int64_t o1 = position / axes_[2].outputs % axes_[1].outputs;
    const std::int64_t o0 = position / axes_[2].outputs / axes_[1].outputs;
    std::int64_t tap = 0;
    for (std::int64_t i = 0; i < axes_[0].taps; ++i) {
      const std::int64_t e0 = axes_[0].element(o0, i);
      for (std::int64_t j = 0; j < axes_[1].taps; ++j) {
        const std::int64_t e1 = axes_[1].element(o1, j);
        for (std::int64_t k = 0; k < axes_[2].taps; ++k, ++tap) {
          const std::int64_t e2 = axes_[2].element(o2, k);
          const bool inside = e0 >= 0 && e1 >= 0 && e2 >= 0;
          f(tap, inside ? (e0 * axes_[1].extent + e1) * axes_[2].extent + e2 : -1);
        }
      }
    }
  }

  /// The same by runs of taps: calls f(first tap, taps, first spatial element or -1), where a run's
  /// elements lie side by side, or are all zeros.
  template <class F>
  void for_each_run(std::int64_t position, const F& f) const {
    const WindowAxis& last = axes_[2];
    if (last.kernel_dilation != 1 || last.input_dilation != 1) {
      return for_each_tap(position, [&](std::int64_t tap, std::int64_t at) { f(tap, 1, at); });
    }
    const std::int64_t o1 = position / last.outputs % axes_[1].outputs;
    const std::int64_t o0 = position / last.outputs / axes_[1].outputs;
    // Tap k reads element start + k: those from `begin` on, and before `end`, are there.
    const std::int64_t start = position % last.outputs * last.stride - last.low;
    const std::int64_t begin = std::clamp<std::int64_t>(-start, 0, last.taps);
    const std::int64_t end = std::clamp<std::int64_t>(last.extent - start, begin, last.taps);
    std::int64_t tap = 0;
    for (std::int64_t i = 0; i < axes_[0].taps; ++i) {
      const std::int64_t e0 = axes_[0].element(o0, i);
      for (std::int64_t j = 0; j < axes_[1].taps; ++j, tap += last.taps) {
        const std::int64_t e1 = axes_[1].element(o1, j);
        if (e0 < 0 || e1 < 0 || begin == end) {
          f(tap, last.taps, std::int64_t{-1});
          continue;
        }
        if (begin > 0) f(tap, begin, std::int64_t{-1});
        f(tap + begin, end - begin, (e0 * axes_[1].extent + e1) * last.extent + start + begin);
        if (end < last.taps) f(tap + end, last.taps - end, std::int64_t{-1});
      }
    }
  }

 private:
  std::array<WindowAxis, 3> axes_;
};

}  // namespace heddle::cpu
