// Compiled shaders: made once a device, name and constants, and kept on disk between runs.
#pragma once

#include <volk.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "device/vulkan/context.h"
#include "device/vulkan/kernel.h"

namespace heddle::vulkan {

/// How often a shader was dispatched; one for all pipelines and lives of a device.
using DispatchCount = std::shared_ptr<std::atomic<std::uint64_t>>;
class DispatchCounts {
 public:
  DispatchCount of(std::string_view shader);
  std::map<std::string, std::uint64_t> read() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, DispatchCount, std::less<>> counts_;
};

class Pipeline {
 public:
  Pipeline(std::shared_ptr<Context> context, VkPipeline handle, DispatchCount count)
      : context_(std::move(context)), handle_(handle), count_(std::move(count)) {}
  ~Pipeline() { context_->vk.vkDestroyPipeline(context_->device, handle_, nullptr); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  const Context& context() const noexcept { return *context_; }
  VkPipeline handle() const noexcept { return handle_; }
  const DispatchCount& count() const noexcept { return count_; }
  /// True once: drivers may leave the last of compiling to when a pipeline first runs.
  bool first_use() const noexcept { return !used_.exchange(true, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<Context> context_;
  const VkPipeline handle_;
  const DispatchCount count_;
  mutable std::atomic<bool> used_{false};
};

/// The pipelines of one life of a device.
class CompiledPipelines final : public Pipelines {
 public:
  CompiledPipelines(std::shared_ptr<Context> context, std::shared_ptr<DispatchCounts> counts);
  ~CompiledPipelines() override;

  std::shared_ptr<const Pipeline> get(std::string_view name, std::uint32_t group_size,
                                      std::span<const std::uint32_t> constants,
                                      std::size_t operands, std::size_t params_bytes) override;
  /// Writes what was compiled since the last time to the user's cache directory, if anything was.
  void save();

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::vector<std::uint32_t>>;
  std::shared_ptr<const Pipeline> compile(const Key& key, std::size_t operands,
                                          std::size_t params_bytes);
  VkShaderModule module_of(const std::string& name, bool in_block);

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<DispatchCounts> counts_;
  const std::filesystem::path file_;  // empty: nowhere to keep them
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Pipeline>> pipelines_;
  std::map<std::string, VkShaderModule, std::less<>> modules_;
  bool unsaved_ = false;
};

/// The file of compiled pipelines for a device and driver; empty if there is no such directory.
std::filesystem::path pipeline_file(const VkPhysicalDeviceProperties& properties);

}  // namespace heddle::vulkan
