#include "array/kernel_memo.h"

#include <algorithm>
#include <utility>

namespace heddle {

KernelMemo& KernelMemo::of_thread() {
  thread_local KernelMemo memo;
  return memo;
}

/// Cheap: what tells most ops and shapes apart, not all.
std::size_t KernelMemo::slot_of(const Op& op, std::span<const OperandSpec> inputs) noexcept {
  std::size_t seed = hash(op);
  for (const auto& [spec, layout] : inputs) {
    seed = seed * 31 + static_cast<std::size_t>(spec.dtype);
    for (const std::int64_t extent : spec.shape)
      seed = seed * 31 + static_cast<std::size_t>(extent);
  }
  return (seed ^ seed >> 17) % kEntries;
}

const KernelMemo::Entry* KernelMemo::find(const Op& op, std::span<const OperandSpec> inputs) const {
  const Entry& entry = entries_[slot_of(op, inputs)];
  const bool same = entry.kernel && entry.op == op && std::ranges::equal(entry.inputs, inputs);
  return same ? &entry : nullptr;
}

void KernelMemo::add(const Op& op, std::span<const OperandSpec> inputs,
                     std::shared_ptr<const Kernel> kernel, std::vector<OperandSpec> outputs) {
  entries_[slot_of(op, inputs)] = {
      op, {inputs.begin(), inputs.end()}, std::move(outputs), std::move(kernel)};
}

}  // namespace heddle
