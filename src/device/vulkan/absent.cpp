// Built where Vulkan's headers, volk or glslc are missing.
#include "device/backends.h"

namespace heddle {

Discovery discover_vulkan() {
  return {{}, "heddle was built without Vulkan: its headers, volk.h or glslc were missing"};
}

}  // namespace heddle
