// Softmax over the last axis, for every floating dtype.
#pragma once

#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

Prepared prepare_softmax(const PrepareArgs& args);

}  // namespace heddle::vulkan
