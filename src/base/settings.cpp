#include "base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "base/log.h"

namespace heddle {

namespace {

constexpr std::string_view kPrefix = "HEDDLE_";

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool parse_int(std::string_view text, int minimum, int maximum, int& value) {
  const std::optional<int> number = parse_number<int>(text);
  if (!number || *number < minimum || *number > maximum) return false;
  value = *number;
  return true;
}

bool parse_seconds(std::string_view text, std::chrono::nanoseconds& value) {
  const std::optional<double> seconds = parse_number<double>(text);
  constexpr double kLongest = 1e9;  // some 30 years; keeps nanoseconds within 64 bits
  if (!seconds || !(*seconds > 0 && *seconds <= kLongest)) return false;
  value = std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
  return true;
}

bool parse_bool(std::string_view text, bool& value) {
  constexpr std::array<std::string_view, 4> kTrue{"1", "on", "true", "yes"};
  constexpr std::array<std::string_view, 4> kFalse{"0", "off", "false", "no"};
  value = std::ranges::find(kTrue, text) != kTrue.end();
  return value || std::ranges::find(kFalse, text) != kFalse.end();
}

bool parse_choice(std::string_view text, std::initializer_list<std::string_view> choices,
                  std::string& value) {
  if (std::ranges::find(choices, text) == choices.end()) return false;
  value = text;
  return true;
}

/// A number of bytes, or of units of 1024, 1024^2 or 1024^3 bytes: k, M or G.
bool parse_bytes(std::string_view text, std::uint64_t& value) {
  constexpr std::string_view kUnits = "kMG";
  int shift = 0;
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit != std::string_view::npos) {
    shift = 10 * (static_cast<int>(unit) + 1);
    text.remove_suffix(1);
  }
  const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text);
  if (!number || *number > ~std::uint64_t{0} >> shift) return false;
  value = *number << shift;
  return true;
}

struct Setting {
  const char* name;
  const char* default_value;
  const char* accepts;
  const char* description;
  bool (*parse)(std::string_view text, Settings& into);
};

constexpr const char* kSwitch = "on or off";

const std::array kSettings{
    Setting{"HEDDLE_THREADS", "0", "a number of threads up to 1024, or 0",
            "threads that compute; 0: what affinity and CPU quota allow",
            [](std::string_view text, Settings& s) { return parse_int(text, 0, 1024, s.threads); }},
    Setting{"HEDDLE_TIMEOUT", "10", "seconds, above 0 and up to 1e9",
            "how long to wait for one submission to a device, in seconds",
            [](std::string_view text, Settings& s) { return parse_seconds(text, s.timeout); }},
    Setting{"HEDDLE_LOG", "warn", "debug, info, warn or error",
            "the least important messages to print on standard error",
            [](std::string_view text, Settings& s) {
              return parse_choice(text, {"debug", "info", "warn", "error"}, s.log_level);
            }},
    Setting{"HEDDLE_CPU", "best",
            "best, portable, avx2, avx_vnni, avx512, amx, neon, neon_dotprod or neon_i8mm",
            "the processor features that kernels may use",
            [](std::string_view text, Settings& s) {
              return parse_choice(text,
                                  {"best", "portable", "avx2", "avx_vnni", "avx512", "amx", "neon",
                                   "neon_dotprod", "neon_i8mm"},
                                  s.cpu_isa);
            }},
    Setting{"HEDDLE_MATMUL", "exact", "exact or bf16",
            "products with f16, bf16 and f32 weights on the cpu; bf16: faster, operands rounded",
            [](std::string_view text, Settings& s) {
              return parse_choice(text, {"exact", "bf16"}, s.matmul);
            }},
    Setting{"HEDDLE_VULKAN_MATMUL", "auto", "auto, vector, tiled or scalar",
            "the form of Vulkan's matrix products; auto: by the device and the number of rows",
            [](std::string_view text, Settings& s) {
              return parse_choice(text, {"auto", "vector", "tiled", "scalar"}, s.vulkan_matmul);
            }},
    Setting{"HEDDLE_VERIFY", "off", kSwitch, "verify every plan before it runs",
            [](std::string_view text, Settings& s) { return parse_bool(text, s.verify); }},
    Setting{"HEDDLE_FUSE", "on", kSwitch, "join ops into fused ones where a device has them",
            [](std::string_view text, Settings& s) { return parse_bool(text, s.fuse); }},
    Setting{"HEDDLE_REPACK", "on", kSwitch, "hold weights in the layouts that kernels like best",
            [](std::string_view text, Settings& s) { return parse_bool(text, s.repack); }},
    Setting{"HEDDLE_WIDTH_LIMIT", "20", "a number from 1 to 1000000",
            "nodes that lazy evaluation keeps open side by side",
            [](std::string_view text, Settings& s) {
              return parse_int(text, 1, 1'000'000, s.width_limit);
            }},
    Setting{"HEDDLE_BATCHES_IN_FLIGHT", "8", "a number from 1 to 1000000",
            "batches of lazy work on one stream of a device that may run or wait there",
            [](std::string_view text, Settings& s) {
              return parse_int(text, 1, 1'000'000, s.batches_in_flight);
            }},
    Setting{"HEDDLE_MEMORY_LIMIT", "0", "bytes, as 1000000, 500k, 64M or 4G (of 1024), or 0",
            "how much memory arrays may take, their cache included; 0: no limit",
            [](std::string_view text, Settings& s) { return parse_bytes(text, s.memory_limit); }},
    Setting{"HEDDLE_CACHE_LIMIT", "auto", "bytes, as 1000000, 500k, 64M or 4G (of 1024), or auto",
            "how much freed memory to keep for the next arrays; auto: a quarter of what is left",
            [](std::string_view text, Settings& s) {
              return text == "auto" || parse_bytes(text, s.cache_limit.emplace());
            }},
    Setting{"HEDDLE_CACHE_DIRECTORY", "auto", "a directory, or auto",
            "where compiled pipelines are kept between runs; auto: $XDG_CACHE_HOME/heddle, or "
            "~/.cache/heddle",
            [](std::string_view text, Settings& s) {
              s.cache_directory = text == "auto" ? "" : text;
              return true;
            }},
    Setting{"HEDDLE_FAULT", "none", "site or site:n, as docs/gpu-safety.md lists them, or none",
            "makes the n-th call of a device's driver at that site fail, for tests",
            [](std::string_view text, Settings& s) {
              s.fault = text == "none" ? "" : text;
              return true;
            }},
    Setting{"HEDDLE_VULKAN_BARRIERS", "hazards", "hazards, all or none",
            "where Vulkan waits between kernels: where they conflict, everywhere (to compare), or "
            "nowhere (wrong results: to diagnose)",
            [](std::string_view text, Settings& s) {
              return parse_choice(text, {"hazards", "all", "none"}, s.vulkan_barriers);
            }},
    Setting{"HEDDLE_VULKAN_FEATURES", "full", "full or minimal",
            "minimal: as if the Vulkan device had none of its optional features",
            [](std::string_view text, Settings& s) {
              return parse_choice(text, {"full", "minimal"}, s.vulkan_features);
            }},
    Setting{
        "HEDDLE_VULKAN_RECORDINGS", "on", kSwitch,
        "submit what was recorded once again and again; off: record anew for each run",
        [](std::string_view text, Settings& s) { return parse_bool(text, s.vulkan_recordings); }},
    Setting{
        "HEDDLE_VULKAN_VALIDATION", "off", kSwitch,
        "load Vulkan's validation layer, with its synchronization checks, and log what it says",
        [](std::string_view text, Settings& s) { return parse_bool(text, s.vulkan_validation); }},
};

using Lookup = const char* (*)(const char* name);

std::string value_of(const Setting& setting, Lookup lookup) {
  const char* text = lookup(setting.name);
  return text && *text ? text : setting.default_value;  // set but empty is not set
}

const char* from_environment(const char* name) {
  return std::getenv(name);
}

void warn_of_unknown_variables() {
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const bool known =
        std::ranges::any_of(kSettings, [&](const Setting& s) { return s.name == name; });
    if (known) continue;
    log(LogLevel::warn, fmt::format("{} is not a setting; `heddle settings` lists them", name));
  }
}

}  // namespace

Settings read_settings(Lookup lookup) {
  Settings result;
  for (const Setting& setting : kSettings) {
    const std::string text = value_of(setting, lookup);
    require(setting.parse(text, result), ErrorCode::invalid_argument, "{}={}: expected {}",
            setting.name, text, setting.accepts);
  }
  return result;
}

const Settings& settings() {
  static const Settings instance = read_settings(from_environment);
  // Logging asks for the settings, so it has to come after them, and once.
  static std::atomic<bool> checked{false};
  if (!checked.load(std::memory_order_relaxed) && !checked.exchange(true)) {
    warn_of_unknown_variables();
  }
  return instance;
}

std::vector<SettingInfo> list_settings() {
  std::vector<SettingInfo> result;
  for (const Setting& setting : kSettings) {
    result.push_back({setting.name, value_of(setting, from_environment), setting.default_value,
                      setting.description});
  }
  return result;
}

}  // namespace heddle
