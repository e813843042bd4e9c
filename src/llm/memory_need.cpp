#include "llm/memory_need.h"

#include <algorithm>

#include "exec/bindings.h"
#include "exec/parameters.h"

namespace heddle::llm {

std::vector<std::uint64_t> slot_bytes_needed(const Plan& plan, const Parameters& parameters) {
  const std::vector<bool> read = slots_that_runs_read(plan);
  std::vector<std::uint64_t> bytes;
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    const bool is_there =
        slot.kind == SlotKind::parameter &&
        (!read[s] || parameters.impl().holds(slot.name, slot.operand, *slot.device));
    bytes.push_back(is_there ? 0 : slot.bytes);
  }
  return bytes;
}

std::vector<Need> needs_of(const Plan& plan, const std::vector<std::uint64_t>& slot_bytes) {
  std::vector<Need> needs;
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    auto need = std::ranges::find(needs, slot.device, &Need::device);
    if (need == needs.end()) need = needs.insert(needs.end(), Need{.device = slot.device});
    (slot.kind == SlotKind::parameter ? need->weights
     : slot.kind == SlotKind::state   ? need->kv
                                      : need->arenas) += slot_bytes[s];
  }
  return needs;
}

}  // namespace heddle::llm
