// The device that tests of Vulkan run on.
#pragma once

#include <gtest/gtest.h>

#include "heddle/device.h"

namespace heddle::test {

/// "vulkan:0", or null where this machine has none.
inline Device* vulkan_device() {
  return why_no_vulkan().empty() ? &find_device("vulkan:0") : nullptr;
}

/// Tests that need a Vulkan device, and are skipped without one.
class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!vulkan_device()) GTEST_SKIP() << "no Vulkan device: " << why_no_vulkan();
  }
  static Device& device() { return *vulkan_device(); }
};

}  // namespace heddle::test
