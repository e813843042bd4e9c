#include "array/kernel_memo.h"

#include <algorithm>
#include <utility>

namespace heddle {

KernelMemo& KernelMemo::of_thread() {
  thread_local KernelMemo memo;
  return memo;
}

/// Cheap: what tells most ops and shapes apart, not all.
std::size_t KernelMemo::slot_of(const Op& op, const OperandList& operands) noexcept {
  std::size_t seed = hash(op);
  for (const Operand& operand : operands) {
    const TensorSpec& spec = operand.view.spec();
    seed = seed * 31 + static_cast<std::size_t>(spec.dtype);
    for (const std::int64_t extent : spec.shape)
      seed = seed * 31 + static_cast<std::size_t>(extent);
  }
  return (seed ^ seed >> 17) % kEntries;
}

const KernelMemo::Entry* KernelMemo::find(const Op& op, const OperandList& operands) const {
  const Entry& entry = entries_[slot_of(op, operands)];
  const auto spec_of = [](const Operand& operand) -> const OperandSpec& {
    return operand.view.operand;
  };
  const bool same =
      entry.kernel && entry.op == op && std::ranges::equal(entry.inputs, operands, {}, {}, spec_of);
  return same ? &entry : nullptr;
}

void KernelMemo::add(const Op& op, const OperandList& operands,
                     std::shared_ptr<const Kernel> kernel, std::vector<OperandSpec> outputs) {
  if (uses_ > 0) return;
  std::vector<OperandSpec> inputs;
  inputs.reserve(operands.size());
  for (const Operand& operand : operands) inputs.push_back(operand.view.operand);
  entries_[slot_of(op, operands)] = {op, std::move(inputs), std::move(outputs), std::move(kernel)};
}

}  // namespace heddle
