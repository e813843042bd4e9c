// Where the slices that gather and scatter move begin, by an array of indices for each of some
// axes.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cpu/indices.h"
#include "device/cpu/kernel.h"

namespace heddle::cpu {

class Starts {
 public:
  Starts() = default;
  /// Operands 1, 2, ... are indices into `axes` of operand 0, which is strided; `sizes` are the
  /// slices'.
  Starts(const PrepareArgs& args, const Dims& axes, const Shape& sizes) {
    const Shape& shape = args.inputs[0].spec.shape;
    const Dims& strides = args.inputs[0].layout.strides;
    if (!axes.empty()) count_ = elements(args.inputs[1].spec.shape);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::int64_t axis = axes[i];
      axes_.push_back(
          {Indices(name(args.op), args.inputs[1 + i], shape[axis], sizes[axis]), strides[axis]});
    }
  }

  std::int64_t count() const noexcept { return count_; }

  /// Of slices [begin, begin + n), n <= kBlock, in units of `scale` to an element.
  void load(const Launch& launch, std::int64_t begin, std::int64_t n, std::int64_t scale,
            std::int64_t* offsets, Indices::Scratch& scratch) const {
    std::fill_n(offsets, n, 0);
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const std::int64_t* index = axes_[a].indices.load(launch.inputs[1 + a], begin, n, scratch);
      const std::int64_t stride = axes_[a].stride * scale;
      for (std::int64_t i = 0; i < n; ++i) offsets[i] += index[i] * stride;
    }
  }

 private:
  struct Axis {
    Indices indices;
    std::int64_t stride;
  };
  std::vector<Axis> axes_;
  std::int64_t count_ = 1;
};

}  // namespace heddle::cpu
