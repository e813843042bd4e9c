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

/// For each slot, the bytes that are still to be allocated: none for weights that are there
/// already, for those that only repacks read, and for a file's own memory, which the system can
/// drop and read again.
std::vector<std::uint64_t> slot_bytes_needed(const Plan& plan, const Parameters& parameters);

/// For each device that the plan uses. States are KV; everything else that an Executable allocates
/// counts as arenas.
std::vector<Need> needs_of(const Plan& plan, const std::vector<std::uint64_t>& slot_bytes);

}  // namespace heddle::llm
