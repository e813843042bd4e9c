// What a device can do, asked once when it is opened. Kernels check their preconditions against
// this, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::vulkan {

struct Limits {
  std::uint32_t max_groups = 65'535;           // along each axis of a dispatch
  std::uint32_t max_group_size = 128;          // invocations of a workgroup
  std::uint32_t shared_bytes = 16'384;         // of a workgroup
  std::uint32_t subgroup_size = 32;            // that every pipeline here runs with
  bool subgroup_arithmetic = false;            // subgroupAdd and its like, and full subgroups
  bool storage_16 = false, storage_8 = false;  // loads and stores of 16 and 8 bits
  bool float16 = false, int8 = false;          // arithmetic
  bool float64 = false;
  std::uint64_t max_allocation = 1u << 30;  // bytes
  std::uint64_t host_import_alignment = 0;  // bytes; 0: host memory cannot be imported
  std::uint64_t memory = 0;                 // bytes of the device's own
  bool shares_memory = false;               // the host sees local memory, as fast as the device
  bool portability_subset = false;
};

/// Makes a device seem less than it is, for tests: what is set takes the place of what was found.
struct LimitOverrides {
  std::optional<std::uint32_t> max_groups, max_group_size, shared_bytes, subgroup_size;
  bool hides_memory = false;  // the host does not see local memory, nor the device imported memory
  bool minimal = false;       // without optional features: no 8 or 16-bit storage, no float64, no
                              // subgroup arithmetic
};

}  // namespace heddle::vulkan
