// heddle settings, heddle devices: what is set, and what there is to run on.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/settings.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "heddle/device.h"

namespace heddle::cli {

int settings_list() {
  settings();  // throws for what cannot be
  const std::vector<SettingInfo> all = list_settings();
  std::size_t name = 0, value = 0;
  for (const SettingInfo& s : all) {
    name = std::max(name, s.name.size());
    value = std::max(value, s.value.size());
  }
  for (const SettingInfo& s : all) {
    print(fmt::format("{:<{}}  {:<{}}  {} (default: {})\n", s.name, name, s.value, value,
                      s.description, s.default_value));
  }
  return kOk;
}

namespace {

using Json = nlohmann::ordered_json;

std::string memory_text(const DeviceInfo& info) {
  std::string text = info.memory == 0 ? "unknown" : bytes_text(info.memory);
  if (info.largest_allocation > 0) {
    text += fmt::format(", at most {} at once", bytes_text(info.largest_allocation));
  }
  return text;
}

std::string text_of(const Device& device) {
  const DeviceInfo info = device.describe();
  std::vector<std::pair<std::string, std::string>> facts;
  if (!info.driver.empty()) facts.emplace_back("driver", info.driver);
  facts.emplace_back("memory", memory_text(info));
  facts.insert(facts.end(), info.details.begin(), info.details.end());
  std::size_t width = 0;
  for (const auto& [fact, value] : facts) width = std::max(width, fact.size());
  std::string text = fmt::format("{}: {}\n", device.name(), info.hardware);
  for (const auto& [fact, value] : facts) {
    text += fmt::format("  {:<{}}  {}\n", fact, width, value);
  }
  return text;
}

Json json_of(const Device& device) {
  const DeviceInfo info = device.describe();
  Json details = Json::object();
  for (const auto& [fact, value] : info.details) details[fact] = value;
  return {{"name", device.name()},
          {"hardware", info.hardware},
          {"driver", info.driver},
          {"memory", info.memory},
          {"largest_allocation", info.largest_allocation},
          {"details", std::move(details)}};
}

}  // namespace

int devices_list(const DevicesArguments& arguments) {
  const std::string why = why_no_vulkan();
  if (arguments.json) {
    Json all = Json::array();
    for (const Device* device : devices()) all.push_back(json_of(*device));
    const Json json = {{"devices", std::move(all)},
                       {"why_no_vulkan", why.empty() ? Json() : Json(why)}};
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return kOk;
  }
  std::string text;
  for (const Device* device : devices()) text += (text.empty() ? "" : "\n") + text_of(*device);
  print(text);
  if (!why.empty()) print(fmt::format("\nno Vulkan device: {}\n", why));
  return kOk;
}

}  // namespace heddle::cli
