// The device that tests of Vulkan run on.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "device/vulkan/limits.h"
#include "heddle/device.h"

namespace heddle::test {

/// "vulkan:0", or null where this machine has none.
Device* vulkan_device();

/// The same hardware as a device of its own, which a test may lose, or make less of.
std::unique_ptr<Device> own_vulkan_device(vulkan::LimitOverrides overrides = {});

/// Tests that need a Vulkan device, and are skipped without one.
class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!vulkan_device()) GTEST_SKIP() << "no Vulkan device: " << why_no_vulkan();
  }
  static Device& device() { return *vulkan_device(); }
};

}  // namespace heddle::test
