#include "device/vulkan/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

#include "base/log.h"
#include "base/settings.h"
#include "device/sanitizer.h"

#if HEDDLE_ADDRESS_SANITIZER
// What drivers and layers do not free when the process ends is not heddle's.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan\nleak:libVkLayer\nleak:libLLVM\n";
}
#endif

namespace heddle::vulkan {

std::string to_string(VkResult result) {
  switch (result) {
#define HEDDLE_RESULT(name) \
  case name:                \
    return #name
    HEDDLE_RESULT(VK_SUCCESS);
    HEDDLE_RESULT(VK_NOT_READY);
    HEDDLE_RESULT(VK_TIMEOUT);
    HEDDLE_RESULT(VK_INCOMPLETE);
    HEDDLE_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY);
    HEDDLE_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    HEDDLE_RESULT(VK_ERROR_INITIALIZATION_FAILED);
    HEDDLE_RESULT(VK_ERROR_DEVICE_LOST);
    HEDDLE_RESULT(VK_ERROR_MEMORY_MAP_FAILED);
    HEDDLE_RESULT(VK_ERROR_LAYER_NOT_PRESENT);
    HEDDLE_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT);
    HEDDLE_RESULT(VK_ERROR_FEATURE_NOT_PRESENT);
    HEDDLE_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER);
    HEDDLE_RESULT(VK_ERROR_TOO_MANY_OBJECTS);
    HEDDLE_RESULT(VK_ERROR_FRAGMENTED_POOL);
    HEDDLE_RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE);
    HEDDLE_RESULT(VK_ERROR_INVALID_SHADER_NV);
    HEDDLE_RESULT(VK_ERROR_UNKNOWN);
#undef HEDDLE_RESULT
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

namespace {

// ---- The instance

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

struct Messages {
  std::mutex mutex;
  std::vector<std::string> texts;
};
Messages& messages() {
  static Messages& instance = *new Messages;
  return instance;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  log(LogLevel::error, fmt::format("vulkan validation: {}", data->pMessage));
  const std::lock_guard lock(messages().mutex);
  messages().texts.emplace_back(data->pMessage);
  return VK_FALSE;
}

bool has_layer(const char* name) {
  std::uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (vkEnumerateInstanceLayerProperties(&count, layers.data()) != VK_SUCCESS) return false;
  return std::ranges::any_of(
      layers, [&](const auto& layer) { return !std::strcmp(layer.layerName, name); });
}

bool has_extension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::ranges::any_of(extensions,
                             [&](const auto& e) { return !std::strcmp(e.extensionName, name); });
}

std::vector<VkExtensionProperties> instance_extensions() {
  std::uint32_t count = 0;
  if (vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkExtensionProperties> extensions(count);
  if (vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data()) != VK_SUCCESS) {
    return {};
  }
  return extensions;
}

VkResult create_instance(VkInstance* instance) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "heddle";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  std::vector<const char*> enabled;
  if (has_extension(instance_extensions(), VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    enabled.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const VkValidationFeatureEnableEXT checks[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messenger{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  if (settings().vulkan_validation) {
    if (!has_layer(kValidationLayer)) return VK_ERROR_LAYER_NOT_PRESENT;
    enabled.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                            VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    features.enabledValidationFeatureCount = std::size(checks);
    features.pEnabledValidationFeatures = checks;
    features.pNext = &messenger;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(enabled.size());
  info.ppEnabledExtensionNames = enabled.data();
  const VkResult result = vkCreateInstance(&info, nullptr, instance);
  if (result != VK_SUCCESS) return result;
  volkLoadInstanceOnly(*instance);
  if (settings().vulkan_validation) {  // lives as long as the instance: until the process ends
    VkDebugUtilsMessengerEXT unused;
    messenger.pNext = nullptr;
    vkCreateDebugUtilsMessengerEXT(*instance, &messenger, nullptr, &unused);
  }
  return VK_SUCCESS;
}

// ---- What devices are

std::vector<VkExtensionProperties> device_extensions(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  if (vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) != VK_SUCCESS) {
    return {};
  }
  std::vector<VkExtensionProperties> extensions(count);
  if (vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data()) !=
      VK_SUCCESS) {
    return {};
  }
  return extensions;
}

/// Structures that Vulkan fills in, chained.
struct Answers {
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features features11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features features12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT control{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties properties11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties properties12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_import{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};

  Answers(VkPhysicalDevice device, const std::vector<VkExtensionProperties>& extensions) {
    features.pNext = &features11;
    features11.pNext = &features12;
    if (has_extension(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
      features12.pNext = &control;
    }
    vkGetPhysicalDeviceFeatures2(device, &features);
    properties.pNext = &properties11;
    properties11.pNext = &properties12;
    if (has_extension(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
      properties12.pNext = &host_import;
    }
    vkGetPhysicalDeviceProperties2(device, &properties);
  }
};

std::string what_is_missing(const VkPhysicalDeviceProperties& properties, const Answers& answers) {
  std::string missing;
  const auto need = [&](bool there, const char* what) {
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", what);
  };
  need(properties.apiVersion >= VK_API_VERSION_1_2, "Vulkan 1.2");
  need(answers.features12.bufferDeviceAddress, "bufferDeviceAddress");
  need(answers.features12.timelineSemaphore, "timelineSemaphore");
  need(answers.features12.scalarBlockLayout, "scalarBlockLayout");
  need(answers.features.features.shaderInt64, "shaderInt64");
  return missing;
}

bool shares_memory(const VkPhysicalDeviceProperties& properties,
                   const VkPhysicalDeviceMemoryProperties& memory) {
  constexpr VkMemoryPropertyFlags kShared = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                            VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool together = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                        properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const std::span types(memory.memoryTypes, memory.memoryTypeCount);
  return together && std::ranges::any_of(types, [&](const VkMemoryType& type) {
           return (type.propertyFlags & kShared) == kShared;
         });
}

std::uint64_t local_memory(const VkPhysicalDeviceMemoryProperties& memory) {
  std::uint64_t bytes = 0;
  for (const VkMemoryHeap& heap : std::span(memory.memoryHeaps, memory.memoryHeapCount)) {
    if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) bytes = std::max(bytes, heap.size);
  }
  return bytes;
}

Limits limits_of(const PhysicalDevice& device, const Answers& answers,
                 const std::vector<VkExtensionProperties>& extensions) {
  const VkPhysicalDeviceLimits& found = device.properties.limits;
  const VkPhysicalDeviceFeatures& features = answers.features.features;
  Limits limits;
  limits.max_groups = *std::ranges::min_element(found.maxComputeWorkGroupCount);
  limits.max_group_size =
      std::min(found.maxComputeWorkGroupInvocations, found.maxComputeWorkGroupSize[0]);
  limits.shared_bytes = found.maxComputeSharedMemorySize;
  limits.subgroup_size = answers.properties11.subgroupSize;
  constexpr VkSubgroupFeatureFlags kWanted = VK_SUBGROUP_FEATURE_BASIC_BIT |
                                             VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                             VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  const bool subgroups =
      (answers.properties11.subgroupSupportedOperations & kWanted) == kWanted &&
      (answers.properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT);
  // Shaders come in two forms only: what lacks one of these gets the minimal form of all.
  const bool full = subgroups && answers.features11.storageBuffer16BitAccess &&
                    answers.features12.storageBuffer8BitAccess && answers.features12.shaderInt8 &&
                    features.shaderInt16 && settings().vulkan_features != "minimal";
  limits.subgroup_arithmetic = limits.storage_16 = limits.storage_8 = limits.int8 = full;
  limits.float16 = full && answers.features12.shaderFloat16;
  limits.float64 = full && features.shaderFloat64;
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device.handle, &memory);
  limits.max_allocation = answers.properties11.maxMemoryAllocationSize;
  limits.host_import_alignment = answers.host_import.minImportedHostPointerAlignment;
  limits.memory = local_memory(memory);
  limits.shares_memory = shares_memory(device.properties, memory);
  limits.portability_subset = has_extension(extensions, "VK_KHR_portability_subset");
  return limits;
}

void find_queue_family(PhysicalDevice& device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  bool found = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
    // One that does not draw leaves the desktop its own.
    if (found && (flags & VK_QUEUE_GRAPHICS_BIT)) continue;
    device.queue_family = i;
    device.queues = families[i].queueCount;
    found = true;
  }
  if (!found) device.unusable = "a queue that computes";
}

PhysicalDevice look_at(VkPhysicalDevice handle) {
  PhysicalDevice device{handle};
  vkGetPhysicalDeviceProperties(handle, &device.properties);
  if (device.properties.apiVersion < VK_API_VERSION_1_2) {
    device.unusable = "Vulkan 1.2";
    return device;
  }
  const auto extensions = device_extensions(handle);
  const Answers answers(handle, extensions);
  device.driver =
      fmt::format("{} {}", answers.properties12.driverName, answers.properties12.driverInfo);
  device.unusable = what_is_missing(device.properties, answers);
  device.has_budget = has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.has_subgroup_control =
      answers.control.subgroupSizeControl && answers.control.computeFullSubgroups;
  device.limits = limits_of(device, answers, extensions);
  find_queue_family(device);
  return device;
}

int rank(const PhysicalDevice& device) {
  switch (device.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    default:
      return 3;
  }
}

constexpr const char* kNoDriver =
    "no Vulkan driver is installed, or none finds a device (Debian's package is "
    "mesa-vulkan-drivers)";

PhysicalDevices look_around() {
  PhysicalDevices found;
  if (volkInitialize() != VK_SUCCESS) {
    found.reason = "there is no Vulkan loader (libvulkan.so.1; Debian's package is libvulkan1)";
    return found;
  }
  if (volkGetInstanceVersion() < VK_API_VERSION_1_2) {
    found.reason = "the Vulkan loader is older than 1.2";
    return found;
  }
  VkInstance instance = VK_NULL_HANDLE;
  VkResult result = create_instance(&instance);
  if (result != VK_SUCCESS) {
    found.reason = result == VK_ERROR_INCOMPATIBLE_DRIVER
                       ? kNoDriver
                       : fmt::format("vkCreateInstance failed: {}{}", to_string(result),
                                     result == VK_ERROR_LAYER_NOT_PRESENT
                                         ? " (Debian's package is vulkan-validationlayers)"
                                         : "");
    return found;
  }
  std::uint32_t count = 0;
  result = vkEnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS) {
    result = vkEnumeratePhysicalDevices(instance, &count, handles.data());
  }
  if (result != VK_SUCCESS || count == 0) {
    found.reason = result == VK_SUCCESS || result == VK_ERROR_INITIALIZATION_FAILED
                       ? kNoDriver
                       : fmt::format("vkEnumeratePhysicalDevices failed: {}", to_string(result));
    return found;
  }
  for (VkPhysicalDevice handle : handles) found.all.push_back(look_at(handle));
  std::ranges::stable_sort(found.all, {}, rank);
  return found;
}

}  // namespace

const PhysicalDevices& physical_devices() {
  static const PhysicalDevices& found = *new PhysicalDevices(look_around());
  return found;
}

std::optional<std::uint64_t> memory_budget(const PhysicalDevice& device) {
  if (!device.has_budget) return std::nullopt;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget};
  vkGetPhysicalDeviceMemoryProperties2(device.handle, &properties);
  const VkPhysicalDeviceMemoryProperties& memory = properties.memoryProperties;
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if (!(memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    const VkDeviceSize used = std::min(budget.heapUsage[i], budget.heapBudget[i]);
    most = std::max(most, budget.heapBudget[i] - used);
  }
  return most;
}

std::vector<std::string> validation_messages() {
  const std::lock_guard lock(messages().mutex);
  return messages().texts;
}

}  // namespace heddle::vulkan
