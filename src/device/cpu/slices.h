// Boxes of one shape in a strided tensor, copied from anywhere in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/strided.h"

namespace heddle::cpu {

class Slices {
 public:
  Slices() = default;
  /// Slices of `shape`, whose elements lie `strides` apart, of `item` bytes.
  Slices(const Shape& shape, const Dims& strides, std::size_t item);

  std::int64_t count() const noexcept { return walk_.count; }  // elements of one
  std::size_t item() const noexcept { return item_; }
  /// Elements from a slice's first to one past its last; 0 if there are none.
  std::int64_t span() const noexcept { return span_; }
  std::int64_t run() const noexcept { return run_; }  // elements that lie side by side

  /// Copies the slices that begin `offsets` bytes from `from` to `out`, one behind another.
  void copy(const std::byte* from, const std::int64_t* offsets, std::int64_t n,
            std::byte* out) const;
  /// Copies elements [begin, begin + n) of the slice at `from`.
  void copy_part(const std::byte* from, std::int64_t begin, std::int64_t n, std::byte* out) const {
    gather(walk_, item_, from, begin, n, out);
  }

  /// Calls f(elements from the slice's first to the run's, elements of the slice before the run)
  /// for each run, in row-major order.
  template <class F>
  void for_each_run(const F& f) const {
    std::array<std::int64_t, kMaxRank> index{};
    std::int64_t offset = 0;
    for (std::int64_t before = 0; before < walk_.count; before += run_) {
      f(offset, before);
      for (auto axis = static_cast<std::size_t>(outer_); axis-- > 0;) {
        offset += walk_.strides[axis];
        if (++index[axis] < walk_.extents[axis]) break;
        offset -= walk_.strides[axis] * walk_.extents[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  Walk walk_;
  std::size_t item_ = 1;
  std::int64_t run_ = 1, span_ = 0;
  int outer_ = 0;  // axes of the walk outside a run
};

}  // namespace heddle::cpu
