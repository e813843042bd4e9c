// The Vulkan loader, its instance, and the devices it knows.
#pragma once

#include <volk.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/vulkan/limits.h"

namespace heddle::vulkan {

std::string to_string(VkResult result);  // "VK_ERROR_DEVICE_LOST"

/// A device that the driver lists.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  std::string driver;  // name and version
  Limits limits;
  std::uint32_t queue_family = 0, queues = 1;  // that computes, and how many it has
  bool has_budget = false, has_subgroup_control = false;
  std::string unusable;  // what it lacks; empty if nothing
};

/// Every device there is, those for heddle to use first: discrete, integrated, others.
/// `reason` says why the list is empty. Loads the loader and makes the instance, once.
struct PhysicalDevices {
  std::vector<PhysicalDevice> all;
  std::string reason;
};
const PhysicalDevices& physical_devices();

/// Bytes of the device's own memory that this process may still take by the driver's account, where
/// it keeps one (VK_EXT_memory_budget).
std::optional<std::uint64_t> memory_budget(const PhysicalDevice& device);

/// Messages of the validation layer so far (HEDDLE_VULKAN_VALIDATION), which are logged as they
/// come.
std::vector<std::string> validation_messages();

}  // namespace heddle::vulkan
