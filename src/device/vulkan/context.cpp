#include "device/vulkan/context.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/check.h"
#include "base/log.h"
#include "device/vulkan/completion.h"
#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

namespace {

Limits overridden(Limits limits, const LimitOverrides& by) {
  limits.max_groups = by.max_groups.value_or(limits.max_groups);
  limits.max_group_size = by.max_group_size.value_or(limits.max_group_size);
  limits.shared_bytes = by.shared_bytes.value_or(limits.shared_bytes);
  limits.subgroup_size = by.subgroup_size.value_or(limits.subgroup_size);
  limits.shares_memory &= !by.hides_memory;
  if (by.hides_memory) limits.host_import_alignment = 0;
  if (by.minimal) {
    limits.subgroup_arithmetic = limits.storage_16 = limits.storage_8 = limits.int8 = false;
    limits.float16 = limits.float64 = false;
  }
  return limits;
}

}  // namespace

std::shared_ptr<Context> Context::open(const PhysicalDevice& physical, ContextOptions options) {
  require(physical.unusable.empty(), ErrorCode::unsupported, "{}: {} lacks {}", options.name,
          physical.properties.deviceName, physical.unusable);
  std::shared_ptr<Context> context(new Context(physical, std::move(options)));
  context->create_device();
  context->create_pipeline_layout();
  return context;
}

Context::Context(const PhysicalDevice& physical, ContextOptions options)
    : physical_(physical),
      options_(std::move(options)),
      limits_(overridden(physical.limits, options_.overrides)) {
  vkGetPhysicalDeviceMemoryProperties(physical.handle, &memory_);
}

Context::~Context() {
  if (!device) return;
  if (lost() && !work_ended_) {
    log(LogLevel::warn, fmt::format("{}: work that never ended keeps its device open", name()));
    return;
  }
  if (pipeline_layout_) vk.vkDestroyPipelineLayout(device, pipeline_layout_, nullptr);
  vk.vkDestroyDevice(device, nullptr);
}

void Context::create_device() {
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT control{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  features.pNext = &features11;
  features11.pNext = &features12;
  features.features.shaderInt64 = VK_TRUE;
  features.features.shaderInt16 = limits_.storage_16;
  features.features.shaderFloat64 = limits_.float64;
  features11.storageBuffer16BitAccess = limits_.storage_16;
  features12.storageBuffer8BitAccess = limits_.storage_8;
  features12.shaderInt8 = limits_.int8;
  features12.shaderFloat16 = limits_.float16;
  features12.bufferDeviceAddress = VK_TRUE;
  features12.timelineSemaphore = VK_TRUE;
  features12.scalarBlockLayout = VK_TRUE;

  std::vector<const char*> extensions;
  if (limits_.portability_subset) extensions.push_back("VK_KHR_portability_subset");
  if (limits_.host_import_alignment) {
    extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  if (physical_.has_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (physical_.has_subgroup_control) {
    extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    control.subgroupSizeControl = control.computeFullSubgroups = VK_TRUE;
    features12.pNext = &control;
  }

  constexpr std::uint32_t kMostQueues = 4;
  const std::uint32_t queues = std::min(physical_.queues, kMostQueues);
  const std::vector<float> priorities(queues, 1.0f);
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = queues;
  queue.pQueuePriorities = priorities.data();
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(
      call(Site::device, [&] { return vkCreateDevice(physical_.handle, &info, nullptr, &device); }),
      "vkCreateDevice");
  volkLoadDeviceTable(&vk, device);
  for (std::uint32_t i = 0; i < queues; ++i) {
    queues_.push_back(std::make_unique<Queue>());
    vk.vkGetDeviceQueue(device, physical_.queue_family, i, &queues_.back()->handle);
  }
}

void Context::create_pipeline_layout() {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kMostPushBytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check(call(Site::pipeline_layout,
             [&] { return vk.vkCreatePipelineLayout(device, &info, nullptr, &pipeline_layout_); }),
        "vkCreatePipelineLayout");
}

// ---- Errors

void Context::check(VkResult result, std::string_view called, std::string_view what) {
  if (result == VK_SUCCESS) return;
  Failure failure{ErrorCode::backend,
                  fmt::format("{}: {} failed: {}{}{}", name(), called, to_string(result),
                              what.empty() ? "" : ": ", what)};
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    failure.code = ErrorCode::out_of_memory;
  }
  if (result == VK_ERROR_DEVICE_LOST) {
    failure.code = ErrorCode::device_lost;
    lose(failure);
  }
  failure.raise();
}

std::shared_ptr<const Failure> Context::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void Context::throw_if_lost() const {
  if (lost()) [[unlikely]]
    loss()->raise();
}

void Context::lose(const Failure& failure) {
  std::vector<std::shared_ptr<Timeline>> timelines;
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return;
    // What comes after says that the device was lost, whatever it was that lost it.
    loss_ = std::make_shared<Failure>(
        Failure{ErrorCode::device_lost,
                failure.code == ErrorCode::device_lost
                    ? failure.message
                    : fmt::format("{}: the device was given up: {}", name(), failure.message)});
    for (const auto& timeline : timelines_) {
      if (auto alive = timeline.lock()) timelines.push_back(std::move(alive));
    }
    quarantine_ = timelines;
    lost_.store(true, std::memory_order_release);
  }
  log(LogLevel::info, failure.message);  // whoever waits gets it as an error
  if (on_lost) on_lost();                // first: whoever meets the error finds the generation over
  for (const auto& timeline : timelines) timeline->fail_pending();
}

// ---- Queues and memory

Context::Queue& Context::next_queue() noexcept {
  return *queues_[next_queue_.fetch_add(1, std::memory_order_relaxed) % queues_.size()];
}

void Context::add(const std::shared_ptr<Timeline>& timeline) {
  const std::lock_guard lock(mutex_);
  std::erase_if(timelines_, [](const auto& known) { return known.expired(); });
  timelines_.push_back(timeline);
}

void Context::retire() {
  std::vector<std::shared_ptr<Timeline>> timelines, ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& timeline : timelines_) {
      if (auto alive = timeline.lock()) timelines.push_back(std::move(alive));
    }
  }
  for (const auto& timeline : timelines) timeline->retire();
  if (!lost()) return;
  const std::lock_guard lock(mutex_);
  const bool all_idle = std::ranges::all_of(quarantine_, [](const auto& t) { return t->idle(); });
  if (!all_idle) return;
  work_ended_ = true;
  ended.swap(quarantine_);
}

std::uint32_t Context::memory_type(std::uint32_t allowed, bool host_visible) const {
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags needed = host_visible ? kHost : kLocal;
  VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (limits_.shares_memory) wanted |= kHost | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  std::uint32_t best = VK_MAX_MEMORY_TYPES;
  int most = -1;
  for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory_.memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & needed) != needed) continue;
    const int good = std::popcount(flags & wanted);
    if (good > most) most = good, best = i;
  }
  require(best != VK_MAX_MEMORY_TYPES, ErrorCode::backend, "{}: no memory is {}", name(),
          host_visible ? "visible to the host" : "the device's own");
  return best;
}

bool Context::is_host_visible(std::uint32_t memory_type) const {
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  return (memory_.memoryTypes[memory_type].propertyFlags & kHost) == kHost;
}

}  // namespace heddle::vulkan
