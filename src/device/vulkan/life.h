// What a device has while it is not lost.
#pragma once

#include <memory>

#include "base/check.h"
#include "device/vulkan/commands.h"
#include "device/vulkan/context.h"
#include "device/vulkan/memory.h"
#include "device/vulkan/pipelines.h"

namespace heddle::vulkan {

struct Life {
  std::shared_ptr<Context> context;
  std::shared_ptr<Heap> local, host;  // the same where memory is shared
  std::shared_ptr<CompiledPipelines> pipelines;
  std::shared_ptr<CommandBuffers> command_buffers;
};

/// Where the current Life comes from: the device, which opens again after a loss.
class LifeSource {
 public:
  virtual ~LifeSource() = default;
  /// Throws what opening the device does.
  virtual std::shared_ptr<Life> life() = 0;
  virtual Device& device() noexcept = 0;
};

/// The memory behind one of the device's own buffers; null for another device's. Throws device_lost
/// for memory of an earlier life.
inline std::shared_ptr<const Memory> memory_in(const Life& life, const Device& device,
                                               const Buffer* buffer) {
  const auto* own = dynamic_cast<const VulkanBuffer*>(buffer);
  if (!own || &own->device() != &device) return nullptr;
  require(own->memory()->chunk->context == life.context, ErrorCode::device_lost,
          "{}: the memory was lost with the device", life.context->name());
  return own->memory();
}

/// The kernel as this device made it. Throws device_lost for one of an earlier life.
inline std::shared_ptr<const VulkanKernel> kernel_in(const Life& life,
                                                     const std::shared_ptr<const Kernel>& kernel) {
  auto own = std::dynamic_pointer_cast<const VulkanKernel>(kernel);
  require(own != nullptr, ErrorCode::invalid_argument, "{}: a kernel that it did not prepare",
          life.context->name());
  for (const Dispatch& dispatch : own->dispatches()) {
    require(&dispatch.pipeline->context() == life.context.get(), ErrorCode::device_lost,
            "{}: {} was prepared before the device was lost", life.context->name(), own->label());
  }
  return own;
}

}  // namespace heddle::vulkan
