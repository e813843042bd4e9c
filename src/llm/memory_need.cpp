#include "llm/memory_need.h"

#include <algorithm>

#include "exec/parameters.h"

namespace heddle::llm {

std::uint64_t weight_bytes_needed(const Slot& slot, const Parameters& parameters) {
  return parameters.impl().holds(slot.name, slot.operand, *slot.device) ? 0 : slot.bytes;
}

std::vector<Need> needs_of(const Plan& plan, const Parameters& parameters) {
  std::vector<Need> needs;
  for (const Slot& slot : plan.slots) {
    auto need = std::ranges::find(needs, slot.device, &Need::device);
    if (need == needs.end()) need = needs.insert(needs.end(), Need{.device = slot.device});
    if (slot.kind == SlotKind::parameter) {
      need->weights += weight_bytes_needed(slot, parameters);
    } else if (slot.kind == SlotKind::state) {
      need->kv += slot.bytes;
    } else {
      need->arenas += slot.bytes;
    }
  }
  return needs;
}

}  // namespace heddle::llm
