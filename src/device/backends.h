// Devices that are found rather than registered, asked for once, when somebody wants one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/device.h"

namespace heddle {

struct Discovery {
  std::vector<std::unique_ptr<Device>> devices;  // in the driver's order
  std::string reason;                            // why there are none
};

/// "vulkan:0", "vulkan:1", ... (vulkan/; absent.cpp where heddle is built without it).
Discovery discover_vulkan();

}  // namespace heddle
