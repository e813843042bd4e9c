#include "device/vulkan/pipelines.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "device/vulkan/shaders.h"

namespace heddle::vulkan {

// ---- Counts

DispatchCount DispatchCounts::of(std::string_view shader) {
  const std::lock_guard lock(mutex_);
  auto found = counts_.find(shader);
  if (found == counts_.end()) {
    found =
        counts_.emplace(std::string(shader), std::make_shared<std::atomic<std::uint64_t>>(0)).first;
  }
  return found->second;
}

std::map<std::string, std::uint64_t> DispatchCounts::read() const {
  std::map<std::string, std::uint64_t> counts;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, count] : counts_) {
    if (*count > 0) counts.emplace(name, count->load());
  }
  return counts;
}

// ---- The cache on disk. What the driver says of it decides: a file that is not its own is
// ignored.

namespace {

std::filesystem::path cache_directory() {
  if (!settings().cache_directory.empty()) return settings().cache_directory;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg) return std::filesystem::path(xdg) / "heddle";
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / "heddle" : "";
}

constexpr std::size_t kMostCacheBytes = std::size_t{256} << 20;

std::vector<char> read_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = path.empty() ? 0 : std::filesystem::file_size(path, error);
  if (error || bytes == 0 || bytes > kMostCacheBytes) return {};
  std::vector<char> content(bytes);
  std::ifstream file(path, std::ios::binary);
  return file.read(content.data(), static_cast<std::streamsize>(bytes)) ? content
                                                                        : std::vector<char>{};
}

/// Whole or not at all: another process may read or write it at the same time.
bool write_file(const std::filesystem::path& path, const std::vector<char>& content) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::filesystem::path next = path;
  next += fmt::format(".{}", ::getpid());
  {
    std::ofstream file(next, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) return false;
  }
  std::filesystem::rename(next, path, error);
  if (error) std::filesystem::remove(next, error);
  return !error;
}

}  // namespace

std::filesystem::path pipeline_file(const VkPhysicalDeviceProperties& properties) {
  const std::filesystem::path directory = cache_directory();
  if (directory.empty()) return {};
  std::string uuid;
  for (const std::uint8_t byte : properties.pipelineCacheUUID) uuid += fmt::format("{:02x}", byte);
  return directory / fmt::format("vulkan-{:04x}-{:04x}-{:08x}-{}.pipelines", properties.vendorID,
                                 properties.deviceID, properties.driverVersion, uuid);
}

CompiledPipelines::CompiledPipelines(std::shared_ptr<Context> context,
                                     std::shared_ptr<DispatchCounts> counts)
    : context_(std::move(context)),
      counts_(std::move(counts)),
      file_(pipeline_file(context_->physical().properties)) {
  const std::vector<char> content = read_file(file_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  // Without a cache all works as well, only later.
  context_->vk.vkCreatePipelineCache(context_->device, &info, nullptr, &cache_);
}

CompiledPipelines::~CompiledPipelines() {
  save();
  for (const auto& [name, module] : modules_) {
    context_->vk.vkDestroyShaderModule(context_->device, module, nullptr);
  }
  if (cache_) context_->vk.vkDestroyPipelineCache(context_->device, cache_, nullptr);
}

void CompiledPipelines::save() {
  const std::lock_guard lock(mutex_);
  if (!unsaved_ || !cache_ || file_.empty() || context_->lost()) return;
  unsaved_ = false;
  const VolkDeviceTable& vk = context_->vk;
  std::size_t bytes = 0;
  if (vk.vkGetPipelineCacheData(context_->device, cache_, &bytes, nullptr) != VK_SUCCESS) return;
  std::vector<char> content(bytes);
  if (vk.vkGetPipelineCacheData(context_->device, cache_, &bytes, content.data()) != VK_SUCCESS) {
    return;
  }
  content.resize(bytes);
  if (!write_file(file_, content)) {
    log(LogLevel::info, fmt::format("{}: compiled pipelines could not be kept in {}",
                                    context_->name(), file_.string()));
  }
}

// ---- Compiling

std::shared_ptr<const Pipeline> CompiledPipelines::get(std::string_view name,
                                                       std::uint32_t group_size,
                                                       std::span<const std::uint32_t> constants,
                                                       std::size_t operands,
                                                       std::size_t params_bytes) {
  context_->throw_if_lost();
  const Key key{std::string(name), group_size, {constants.begin(), constants.end()}};
  const std::lock_guard lock(mutex_);
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  auto pipeline = compile(key, operands, params_bytes);
  unsaved_ = true;
  return pipelines_.emplace(key, std::move(pipeline)).first->second;
}

VkShaderModule CompiledPipelines::module_of(const std::string& name, bool in_block) {
  const Limits& limits = context_->limits();
  const bool full = limits.storage_16 && limits.storage_8 && limits.subgroup_arithmetic;
  const std::string variant = full ? name : name + ".minimal";
  if (const auto found = modules_.find(variant); found != modules_.end()) return found->second;
  const auto shader = std::ranges::find(shaders(), variant, &Shader::name);
  require(shader != shaders().end(), ErrorCode::unsupported, "{}: there is no shader {}",
          context_->name(), variant);
  require(shader->params_in_block == in_block, ErrorCode::backend,
          "{}: shader {} {} PARAMS_IN_BLOCK, which the size of its parameters is not right for",
          context_->name(), variant, shader->params_in_block ? "defines" : "lacks");
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = shader->words.size_bytes();
  info.pCode = shader->words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  context_->check(call(Site::shader,
                       [&] {
                         return context_->vk.vkCreateShaderModule(context_->device, &info, nullptr,
                                                                  &module);
                       }),
                  "vkCreateShaderModule", variant);
  return modules_[variant] = module;
}

std::shared_ptr<const Pipeline> CompiledPipelines::compile(const Key& key, std::size_t operands,
                                                           std::size_t params_bytes) {
  const auto& [name, group_size, constants] = key;
  const Limits& limits = context_->limits();
  require(group_size >= 1 && group_size <= limits.max_group_size, ErrorCode::unsupported,
          "{}: shader {} in groups of {}; the device has at most {}", context_->name(), name,
          group_size, limits.max_group_size);

  constexpr std::uint32_t kSubgroupSizeConstant = 31;  // kernel.glsl
  std::vector<std::uint32_t> values{group_size};
  values.insert(values.end(), constants.begin(), constants.end());
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < values.size(); ++i) entries.push_back({i, i * 4, 4});
  entries.push_back({kSubgroupSizeConstant, static_cast<std::uint32_t>(values.size() * 4), 4});
  values.push_back(limits.subgroup_size);
  const VkSpecializationInfo specialization{static_cast<std::uint32_t>(entries.size()),
                                            entries.data(), values.size() * 4, values.data()};

  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT required{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT};
  required.requiredSubgroupSize = limits.subgroup_size;
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.layout = context_->pipeline_layout();
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module_of(name, in_block(operands, params_bytes));
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  if (context_->physical().has_subgroup_control) {
    info.stage.pNext = &required;
    if (group_size % limits.subgroup_size == 0) {
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    }
  }
  VkPipeline handle = VK_NULL_HANDLE;
  context_->check(call(Site::pipeline,
                       [&] {
                         return context_->vk.vkCreateComputePipelines(context_->device, cache_, 1,
                                                                      &info, nullptr, &handle);
                       }),
                  "vkCreateComputePipelines", name);
  return std::make_shared<Pipeline>(context_, handle, counts_->of(name));
}

}  // namespace heddle::vulkan
