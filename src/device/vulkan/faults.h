// Driver calls that can be made to fail, as the driver itself would: by HEDDLE_FAULT=site[:n] or by
// a test. Every call that can fail goes through `call`, and so has a site.
#pragma once

#include <volk.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace heddle::vulkan {

enum class Site : std::uint8_t {
  device,
  queue_semaphore,
  shader,
  pipeline_layout,
  pipeline,
  allocate,
  buffer,
  bind,
  map,
  import,
  command_pool,
  command_buffer,
  begin,
  end,
  submit,
  submit_lost,
  wait,
  wait_timeout,
  wait_lost,
  counter,
};

struct FaultSite {
  std::string_view name;  // as HEDDLE_FAULT takes it
  VkResult result;        // what the driver is made to say
};
/// By Site.
std::span<const FaultSite> fault_sites();

/// The `n`th call from now at `site` (1 is the next) fails. Throws invalid_argument listing the
/// sites.
void inject_fault(std::string_view site, std::uint64_t n = 1);
/// Injects what HEDDLE_FAULT asks for, once. Throws invalid_argument.
void read_fault_setting();
/// Takes back what has not happened; returns whether all that was injected has.
bool end_faults();

/// Whether the call about to be made at `site` is one that fails; counts it.
bool fault_due(Site site) noexcept;

template <class Driver>
VkResult call(Site site, const Driver& driver) {
  if (fault_due(site)) [[unlikely]]
    return fault_sites()[static_cast<std::size_t>(site)].result;
  return driver();
}

}  // namespace heddle::vulkan
