// heddle settings, heddle devices: what is set, and what there is to run on.
#include <algorithm>

#include "base/check.h"
#include "base/settings.h"
#include "base/system.h"
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

int devices_list() {
  for (const Device* device : devices()) print(fmt::format("{}\n", device->name()));
  print(fmt::format("\n{}, {} for this process; {} of memory available\n", processor_name(),
                    available_processors() == 1
                        ? "1 processor"
                        : fmt::format("{} processors", available_processors()),
                    bytes_text(available_memory())));
  return kOk;
}

}  // namespace heddle::cli
