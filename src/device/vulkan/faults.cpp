#include "device/vulkan/faults.h"

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <string>

#include "base/check.h"
#include "base/settings.h"

namespace heddle::vulkan {

namespace {

constexpr FaultSite kSites[] = {
    {"device", VK_ERROR_INITIALIZATION_FAILED},
    {"semaphore", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"shader", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"pipeline_layout", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"pipeline", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"allocate", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"buffer", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"bind", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"map", VK_ERROR_MEMORY_MAP_FAILED},
    {"import", VK_ERROR_INVALID_EXTERNAL_HANDLE},
    {"command_pool", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"command_buffer", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"begin", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"end", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"submit", VK_ERROR_OUT_OF_DEVICE_MEMORY},
    {"submit_lost", VK_ERROR_DEVICE_LOST},
    {"wait", VK_ERROR_OUT_OF_HOST_MEMORY},
    {"wait_timeout", VK_TIMEOUT},
    {"wait_lost", VK_ERROR_DEVICE_LOST},
    {"counter", VK_ERROR_DEVICE_LOST},
};
constexpr std::size_t kSiteCount = std::size(kSites);
static_assert(kSiteCount == static_cast<std::size_t>(Site::counter) + 1);

// Calls left until the fault, that one included; 0: none is waited for.
std::array<std::atomic<std::uint64_t>, kSiteCount> countdown{};
std::once_flag read_setting;

void inject_from_setting() {
  const std::string& fault = settings().fault;
  if (fault.empty()) return;
  const std::size_t colon = fault.find(':');
  std::uint64_t n = 1;
  if (colon != std::string::npos) {
    const char* end = fault.data() + fault.size();
    const auto [stop, error] = std::from_chars(fault.data() + colon + 1, end, n);
    require(error == std::errc{} && stop == end && n > 0, ErrorCode::invalid_argument,
            "HEDDLE_FAULT={}: after the colon comes which call fails, 1 or more", fault);
  }
  inject_fault(std::string_view(fault).substr(0, colon), n);
}

}  // namespace

std::span<const FaultSite> fault_sites() {
  return kSites;
}

void inject_fault(std::string_view site, std::uint64_t n) {
  std::string names;
  for (std::size_t i = 0; i < kSiteCount; ++i) {
    if (kSites[i].name == site) return countdown[i].store(n);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kSites[i].name);
  }
  fail(ErrorCode::invalid_argument, "no call of the driver is called \"{}\"; there are: {}", site,
       names);
}

bool end_faults() {
  bool happened = true;
  for (auto& left : countdown) happened &= left.exchange(0) == 0;
  return happened;
}

void read_fault_setting() {
  std::call_once(read_setting, inject_from_setting);
}

bool fault_due(Site site) noexcept {
  std::atomic<std::uint64_t>& left = countdown[static_cast<std::size_t>(site)];
  if (left.load(std::memory_order_relaxed) == 0) return false;
  std::uint64_t seen = left.load();
  while (seen > 0 && !left.compare_exchange_weak(seen, seen - 1)) {
  }
  return seen == 1;
}

}  // namespace heddle::vulkan
