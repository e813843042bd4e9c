// Reading and writing operands of any strides and dtype a block at a time, as the type they are
// computed in (float for f16 and bf16).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/convert.h"
#include "device/cpu/kernel.h"
#include "device/cpu/row_ops.h"
#include "device/cpu/streaming.h"
#include "device/cpu/strided.h"

namespace heddle::cpu {

/// Room for a block of any plain dtype.
struct alignas(64) BlockBuffer {
  std::byte bytes[kBlock * 8];
  float* floats() { return reinterpret_cast<float*>(bytes); }
};

/// Where an operand's elements come from, in row-major order of `shape`.
class BlockSource {
 public:
  BlockSource() = default;
  explicit BlockSource(const OperandSpec& operand) : BlockSource(operand, operand.spec.shape) {}
  /// The operand stretched to `shape`.
  BlockSource(const OperandSpec& operand, const Shape& shape);

  /// Elements [begin, begin + n), n <= kBlock: where they lie, or else put into `scratch`.
  const void* load(const std::byte* base, std::int64_t begin, std::int64_t n,
                   BlockBuffer& scratch) const;
  const float* floats(const std::byte* base, std::int64_t begin, std::int64_t n,
                      BlockBuffer& scratch) const {
    return static_cast<const float*>(load(base, begin, n, scratch));
  }

  /// Whether elements are computed on where they lie, so that blocks may be of any length.
  bool in_place() const noexcept { return dense_ && !widen_; }
  /// Whether all elements are one, so that a block once loaded serves for all.
  bool uniform() const noexcept { return walk_.uniform(); }
  bool dense() const noexcept { return dense_; }
  const std::byte* at(const std::byte* base, std::int64_t begin) const noexcept {
    return base + begin * static_cast<std::int64_t>(item_);
  }

 private:
  Walk walk_;
  std::size_t item_ = 0;
  bool dense_ = true;
  WidenFunction widen_ = nullptr;  // of half types only
};

/// Where a contiguous output's elements go.
class BlockSink {
 public:
  BlockSink() = default;
  explicit BlockSink(DType dtype);
  /// Of an output whose elements are each stored once: those that are beyond the caches are
  /// streamed, which takes a StreamFence.
  static BlockSink of_output(const TensorSpec& output);

  /// Where to compute elements [begin, begin + n), n <= kBlock: in place, or else in `scratch`, for
  /// `store` to convert.
  void* target(std::byte* base, std::int64_t begin, BlockBuffer& scratch) const {
    return in_place() ? base + begin * static_cast<std::int64_t>(item_) : scratch.bytes;
  }
  float* float_target(std::byte* base, std::int64_t begin, BlockBuffer& scratch) const {
    return static_cast<float*>(target(base, begin, scratch));
  }
  void store(const void* computed, std::byte* base, std::int64_t begin, std::int64_t n) const {
    if (!in_place()) put(computed, base + begin * static_cast<std::int64_t>(item_), n);
  }
  bool in_place() const noexcept { return !narrow_ && !stream_; }
  bool streams() const noexcept { return stream_ != nullptr; }

 private:
  void put(const void* computed, std::byte* to, std::int64_t n) const;

  std::size_t item_ = 0;
  NarrowFunction narrow_ = nullptr;  // of half types only
  void (*stream_)(const void* from, void* to, std::int64_t bytes) = nullptr;
};

/// Aliases of output `output` over each input in `inputs` that holds as many bytes, contiguously.
void allow_in_place(KernelTraits& traits, std::size_t output, const OperandSpec& output_spec,
                    std::span<const OperandSpec> inputs);

/// `rows` cut to a launch's extent, where that says something.
inline std::int64_t rows_that_count(std::int64_t rows, std::int64_t extent) {
  return extent < 0 ? rows : std::min(rows, extent);
}

}  // namespace heddle::cpu
