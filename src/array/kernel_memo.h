// The CPU kernels that this thread used last: a chain of small ops would spend most of its time
// asking for them.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "array/operand.h"
#include "heddle/device.h"

namespace heddle {

class KernelMemo {
 public:
  struct Entry {
    Op op;
    std::vector<OperandSpec> inputs, outputs;
    std::shared_ptr<const Kernel> kernel;  // null: none yet
  };
  /// While one lives, entries stay: for as long as a kernel runs, which may evaluate in turn.
  class Use {
   public:
    explicit Use(KernelMemo& memo) noexcept : memo_(memo) { ++memo_.uses_; }
    ~Use() { --memo_.uses_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    KernelMemo& memo_;
  };

  static KernelMemo& of_thread();

  /// Null if it is not known.
  const Entry* find(const Op& op, const OperandList& operands) const;
  /// Remembers the kernel, unless entries are in use.
  void add(const Op& op, const OperandList& operands, std::shared_ptr<const Kernel> kernel,
           std::vector<OperandSpec> outputs);

 private:
  static std::size_t slot_of(const Op& op, const OperandList& operands) noexcept;

  static constexpr std::size_t kEntries = 64;
  std::array<Entry, kEntries> entries_{};
  int uses_ = 0;
};

}  // namespace heddle
