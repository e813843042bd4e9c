#include "llm/layer_devices.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/system.h"
#include "heddle/memory.h"

namespace heddle::llm {

namespace {

/// A device that layers can be sent to when nobody named one.
Device* first_accelerator() {
  for (Device* device : default_devices()) {
    if (device != &cpu_device()) return device;
  }
  for (Device* device : devices()) {
    if (device != &cpu_device()) return device;
  }
  return nullptr;
}

void check(const ContextOptions& options) {
  const std::vector<Device*>& devices = options.devices;
  for (auto it = devices.begin(); it != devices.end(); ++it) {
    require(*it != nullptr, ErrorCode::invalid_argument, "--device: a device is null");
    require(std::find(devices.begin(), it, *it) == it, ErrorCode::invalid_argument,
            "--device: {} is there twice", (*it)->name());
  }
  require(options.gpu_layers.value_or(0) >= 0, ErrorCode::invalid_argument,
          "--gpu-layers {}: expected 0 or more", options.gpu_layers.value_or(0));
}

}  // namespace

std::optional<std::uint64_t> memory_left(Device& device) {
  const bool is_cpu = &device == &cpu_device();
  const MemoryPool* pool = device.memory();
  const std::uint64_t active = pool ? pool->active() : 0;
  std::optional<std::uint64_t> left;
  if (is_cpu) {
    left = available_memory();
  } else if (const std::uint64_t all = device.describe().memory) {
    left = all - std::min(all, active);
  }
  const std::uint64_t limit = pool ? pool->memory_limit() : 0;
  if (limit == 0 || limit == kNoMemoryLimit) return left;
  const std::uint64_t below_limit = limit - std::min(limit, active);
  return left ? std::min(*left, below_limit) : below_limit;
}

std::vector<Device*> spread_layers(std::int64_t count, const std::vector<Device*>& devices) {
  std::vector<double> shares;
  for (Device* device : devices) {
    shares.push_back(static_cast<double>(memory_left(*device).value_or(0)));
  }
  if (std::ranges::find(shares, 0.0) != shares.end()) shares.assign(devices.size(), 1.0);
  double all = 0, so_far = 0;
  for (const double share : shares) all += share;
  std::vector<Device*> layers;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    so_far += shares[d];
    const double end = std::round(static_cast<double>(count) * so_far / all);
    layers.resize(static_cast<std::size_t>(end), devices[d]);
  }
  return layers;
}

LayerDevices layer_devices(const ModelConfig& config, ContextOptions& options) {
  check(options);
  if (options.devices.empty() && !options.gpu_layers) return {};
  const std::int64_t n_layer = config.n_layer;
  const bool whole = options.gpu_layers.value_or(n_layer + 1) > n_layer;
  const std::int64_t count = whole ? n_layer : *options.gpu_layers;
  if (options.devices.empty() && count > 0) {
    Device* device = first_accelerator();
    const std::string why = device ? "" : why_no_vulkan();
    require(device != nullptr, ErrorCode::invalid_argument,
            "--gpu-layers {}: there is no device but the CPU{}", *options.gpu_layers,
            why.empty() ? "" : " (no Vulkan device: " + why + ")");
    options.devices.push_back(device);
  }
  LayerDevices placed;
  if (count > 0) placed.layers = spread_layers(count, options.devices);
  placed.layers.resize(static_cast<std::size_t>(n_layer), &cpu_device());
  placed.embedding = whole ? options.devices.front() : &cpu_device();
  placed.output = whole ? options.devices.back() : &cpu_device();
  return placed;
}

}  // namespace heddle::llm
