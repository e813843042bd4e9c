#include "device/vulkan/vulkan_device.h"

#include "device/vulkan/device.h"
#include "device/vulkan/instance.h"

namespace heddle::test {

Device* vulkan_device() {
  return why_no_vulkan().empty() ? &find_device("vulkan:0") : nullptr;
}

std::unique_ptr<Device> own_vulkan_device(vulkan::LimitOverrides overrides) {
  for (const vulkan::PhysicalDevice& physical : vulkan::physical_devices().all) {
    if (physical.unusable.empty()) return vulkan::make_device(physical, "vulkan:test", overrides);
  }
  return nullptr;
}

namespace {

/// With HEDDLE_VULKAN_VALIDATION on, what the layer has to say fails the tests.
class SilentValidation : public ::testing::Environment {
  void TearDown() override {
    for (const std::string& message : vulkan::validation_messages()) ADD_FAILURE() << message;
  }
};
[[maybe_unused]] const auto* const silent =
    ::testing::AddGlobalTestEnvironment(new SilentValidation);

}  // namespace
}  // namespace heddle::test
