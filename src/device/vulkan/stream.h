// Streams of a Vulkan device: work is written into command buffers and submitted together.
#pragma once

#include <memory>
#include <thread>

#include "device/vulkan/life.h"

namespace heddle::vulkan {

Ref<Stream> make_stream(LifeSource& source);

}  // namespace heddle::vulkan
