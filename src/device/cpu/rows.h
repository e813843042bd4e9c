// Rows of states, which kernels write at places chosen by data.
#pragma once

#include <cstdint>

#include "device/cpu/block_io.h"
#include "device/cpu/kernel.h"

namespace heddle::cpu {

/// A contiguous state as rows along axis 0. The memory bound says how many there are.
class StateRows {
 public:
  explicit StateRows(const OperandSpec& state);

  /// Row number `row`, which must lie within the memory; throws invalid_argument naming it.
  std::byte* at(const Operand& state, std::int64_t row) const;
  std::int64_t count(const Operand& state) const {
    return row_bytes_ == 0 ? state_rows_ : static_cast<std::int64_t>(state.bytes / row_bytes_);
  }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::int64_t row_elements() const noexcept { return row_elements_; }

  /// Writes floats as elements [begin, begin + n) of the row: whole blocks, if of a block type.
  /// Where x is not finite, a block of q8_0 becomes NaN; other block types throw invalid_argument.
  void store(const float* x, std::byte* row, std::int64_t begin, std::int64_t n) const;
  /// Whether `store` can write the state's dtype.
  bool takes_floats() const noexcept { return block_elements_ > 1 || narrow_; }

 private:
  DType dtype_;
  std::int64_t state_rows_, row_elements_;
  std::size_t row_bytes_;
  std::int64_t block_elements_, block_bytes_;
  NarrowFunction narrow_ = nullptr;
};

/// A vector of i32, of any stride: element `i`.
inline std::int32_t index_at(const BlockSource& source, const Operand& operand, std::int64_t i) {
  BlockBuffer scratch;
  return *static_cast<const std::int32_t*>(source.load(operand.data, i, 1, scratch));
}

/// Traits of a kernel whose output 0 is the next version of input 0, in the same memory.
KernelTraits state_traits(const PrepareArgs& args);

}  // namespace heddle::cpu
