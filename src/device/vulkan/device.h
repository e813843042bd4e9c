// The Vulkan device.
#pragma once

#include <memory>
#include <string>

#include "device/vulkan/instance.h"
#include "device/vulkan/limits.h"
#include "heddle/device.h"

namespace heddle::vulkan {

/// A device of its own on physical hardware, for the registry, or for tests that override limits or
/// lose it.
std::unique_ptr<Device> make_device(const PhysicalDevice& physical, std::string name,
                                    LimitOverrides overrides = {});

}  // namespace heddle::vulkan
