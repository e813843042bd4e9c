// Which devices a model's parts are asked to run on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/llm.h"

namespace heddle::llm {

/// Bytes that can still be allocated on the device, as far as it says; nothing if it does not.
std::optional<std::uint64_t> memory_left(Device& device);

/// Gives each of `count` layers one of the devices: runs in their order, as long as their shares of
/// the memory. Equal runs where a device does not say what it has.
std::vector<Device*> spread_layers(std::int64_t count, const std::vector<Device*>& devices);

/// The devices of ContextOptions::devices and gpu_layers; those that serve gpu_layers alone are
/// filled into the options. Throws invalid_argument for a device that is there twice, and where
/// layers are to go to a device other than the CPU and there is none.
LayerDevices layer_devices(const ModelConfig& config, ContextOptions& options);

}  // namespace heddle::llm
