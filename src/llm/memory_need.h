// What a plan takes of each device's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/plan.h"
#include "heddle/executable.h"

namespace heddle::llm {

struct Need {
  Device* device = nullptr;
  std::uint64_t weights = 0;  // that the device does not hold yet
  std::uint64_t kv = 0, arenas = 0;
  std::uint64_t total() const { return weights + kv + arenas; }
};

/// Bytes of a parameter's slot that are still to be allocated: nothing for what is there already,
/// and for a file's own memory, which the system can drop and read again.
std::uint64_t weight_bytes_needed(const Slot& slot, const Parameters& parameters);

/// For each device that the plan uses. States are KV; everything else that an Executable allocates
/// counts as arenas.
std::vector<Need> needs_of(const Plan& plan, const Parameters& parameters);

}  // namespace heddle::llm
