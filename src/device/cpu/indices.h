// Indices of any integer dtype as 64-bit ones, a block at a time, checked and counted from the
// front.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/cpu/block_io.h"
#include "device/cpu/elementwise.h"

namespace heddle::cpu {

class Indices {
 public:
  struct Scratch {
    BlockBuffer stored, wide;
  };

  Indices() = default;
  /// Where slices of `size` elements begin, along an axis of `extent`. If they `wrap`, negative
  /// ones count from the end. `op` names the op in errors.
  Indices(std::string_view op, const OperandSpec& operand, std::int64_t extent,
          std::int64_t size = 1, bool wrap = true);

  /// Elements [begin, begin + n), n <= kBlock.
  const std::int64_t* load(const Operand& operand, std::int64_t begin, std::int64_t n,
                           Scratch& scratch) const;

 private:
  [[noreturn]] void refuse(const Operand& operand, std::int64_t at) const;

  std::string_view op_;
  BlockSource source_;
  BlockFunction to_i64_;
  std::int64_t extent_ = 0, size_ = 1;
  std::int64_t limit_ = 0;  // exclusive
  bool wraps_ = false, unsigned_ = false;
};

}  // namespace heddle::cpu
