// What normalisations, softmax and sums do with rows of floats, a block at a time.
//
// The order of summation is a function of the row's length only (rule 17): element i of a block
// goes to lane i % 32, the lanes are folded in halves, and block sums are added pairwise. It is the
// same at every level of isa().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace heddle::cpu {

/// Elements of a block. Only a row's last block is shorter.
inline constexpr std::int64_t kBlock = 512;
inline constexpr int kSumLanes = 32;

/// Combines block results pairwise, so that a sum's error grows with the logarithm of their number.
template <class T, class Combine = std::plus<>>
class Pairwise {
 public:
  explicit Pairwise(Combine combine = {}) : combine_(combine) {}
  void add(T value) {
    std::size_t level = 0;
    for (; count_ >> level & 1u; ++level) value = combine_(partial_[level], value);
    partial_[level] = value;
    ++count_;
  }
  /// Of nothing: T{}.
  T total() const {
    T result{};
    bool first = true;
    for (std::size_t level = 0; count_ >> level != 0; ++level) {
      if (!(count_ >> level & 1u)) continue;
      result = first ? partial_[level] : combine_(partial_[level], result);
      first = false;
    }
    return result;
  }

 private:
  [[no_unique_address]] Combine combine_;
  std::array<T, 48> partial_;
  std::uint64_t count_ = 0;
};

/// A way to combine floats: NaN in, NaN out.
struct FloatFold {
  /// Of n elements, in the order above: of blocks, and those pairwise. Meanwhile as many of `next`,
  /// if that is not null, are fetched; it may lie beyond the end of memory.
  float (*block)(const float* x, const float* next, std::int64_t n);
  /// out = out combined with each of the rows, one after another; element by element. Meanwhile as
  /// many rows of `next`, if that is not null, are fetched.
  void (*rows)(const void* const* rows, const void* const* next, std::int64_t count, std::int64_t n,
               float* out);
};

/// On blocks of n <= kBlock elements. `out` may be `x`.
struct RowOps {
  float (*sum)(const float* x, std::int64_t n);
  float (*sum_squares)(const float* x, std::int64_t n);
  float (*sum_squared_deviations)(const float* x, float mean, std::int64_t n);
  /// The largest element; NaN may be ignored.
  float (*max)(const float* x, std::int64_t n);
  /// out = e^(x - shift), and its sum.
  float (*exp_sum)(const float* x, float shift, float* out, std::int64_t n);
  /// out = e^(x - the largest element) over the sum of that; zeros if it is -inf throughout. `out`
  /// has `whole` elements, of which those behind x become zeros.
  void (*softmax)(const float* x, std::int64_t n, float* out, std::int64_t whole);
  /// out = x * scale.
  void (*scale)(const float* x, float scale, float* out, std::int64_t n);
  /// out = (x - mean) * scale [* weight] [+ bias]; weight and bias may be null.
  void (*normalize)(const float* x, float mean, float scale, const float* weight, const float* bias,
                    float* out, std::int64_t n);
  /// Copies to where nobody reads before the next StreamFence ends.
  void (*stream)(const void* from, void* to, std::int64_t bytes);
  FloatFold sums, products, largest, smallest;
  /// Of masks: all bits of what is not 0.
  FloatFold all, any;
};

/// With the instructions that isa() allows.
const RowOps& row_ops();

}  // namespace heddle::cpu
