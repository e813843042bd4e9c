// Settings: HEDDLE_* in the environment, read here and nowhere else. `heddle settings` lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct Settings {
  int threads = 0;                           // HEDDLE_THREADS; 0: what affinity and quota allow
  std::chrono::nanoseconds timeout{0};       // HEDDLE_TIMEOUT, seconds
  std::string log_level;                     // HEDDLE_LOG
  std::string cpu_isa;                       // HEDDLE_CPU: best, or a level of isa.h
  std::string matmul;                        // HEDDLE_MATMUL: exact or bf16
  std::string vulkan_matmul;                 // HEDDLE_VULKAN_MATMUL: auto, vector, tiled or scalar
  bool verify = false;                       // HEDDLE_VERIFY
  bool fuse = true;                          // HEDDLE_FUSE
  bool repack = true;                        // HEDDLE_REPACK
  int width_limit = 20;                      // HEDDLE_WIDTH_LIMIT
  int batches_in_flight = 8;                 // HEDDLE_BATCHES_IN_FLIGHT
  std::uint64_t memory_limit = 0;            // HEDDLE_MEMORY_LIMIT, bytes; 0: none
  std::optional<std::uint64_t> cache_limit;  // HEDDLE_CACHE_LIMIT, bytes; nothing: auto
  std::string fault;                         // HEDDLE_FAULT, site[:n]; empty: none
  std::string cache_directory;               // HEDDLE_CACHE_DIRECTORY; empty: the user's own
  std::string vulkan_barriers;               // HEDDLE_VULKAN_BARRIERS: hazards, all or none
  std::string vulkan_features;               // HEDDLE_VULKAN_FEATURES: full or minimal
  bool vulkan_recordings = true;             // HEDDLE_VULKAN_RECORDINGS
  bool vulkan_validation = false;            // HEDDLE_VULKAN_VALIDATION
};

/// The settings of this process, read once. Throws invalid_argument naming a variable whose value
/// it cannot take, and what it can.
const Settings& settings();

struct SettingInfo {
  std::string name, value, default_value, description;
};
/// Every setting there is, with its value now.
std::vector<SettingInfo> list_settings();

/// Reads settings from `lookup` (a getenv), for tests.
Settings read_settings(const char* (*lookup)(const char* name));

}  // namespace heddle
