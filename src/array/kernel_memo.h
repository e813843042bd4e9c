// The CPU kernels that this thread used last: a chain of small ops would spend most of its time
// asking for them.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "heddle/device.h"

namespace heddle {

class KernelMemo {
 public:
  struct Entry {
    Op op;
    std::vector<OperandSpec> inputs, outputs;
    std::shared_ptr<const Kernel> kernel;  // null: none yet
  };

  static KernelMemo& of_thread();

  /// Null if it is not known. Valid until the next `add`.
  const Entry* find(const Op& op, std::span<const OperandSpec> inputs) const;
  void add(const Op& op, std::span<const OperandSpec> inputs, std::shared_ptr<const Kernel> kernel,
           std::vector<OperandSpec> outputs);

 private:
  static std::size_t slot_of(const Op& op, std::span<const OperandSpec> inputs) noexcept;

  static constexpr std::size_t kEntries = 64;
  std::array<Entry, kEntries> entries_{};
};

}  // namespace heddle
