#include "base/system.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "base/settings.h"

namespace heddle {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The number at the start of `text`, after blanks; nothing for "max" or "-1".
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_file(path);
  return text ? leading_number(*text) : std::nullopt;
}

/// The number after `key` at the start of a line of the file: "MemAvailable:  123 kB".
std::optional<std::uint64_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return leading_number(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

std::uint64_t read_field_kib(const std::string& path, std::string_view key) {
  return read_field(path, key).value_or(0) * 1024;
}

/// A line of /proc/self/cgroup, "4:memory:/path"; version 2 has no controllers ("0::/path").
struct Cgroup {
  std::vector<std::string> controllers;
  std::string path;
};

std::vector<Cgroup> own_cgroups(const std::string& root) {
  std::vector<Cgroup> groups;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    Cgroup group{{}, line.substr(second + 1)};
    std::istringstream names(line.substr(first + 1, second - first - 1));
    for (std::string name; std::getline(names, name, ',');) group.controllers.push_back(name);
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Calls f with the directory of each cgroup from this process's own to the root of its hierarchy.
/// In a container the path may not be visible; its root then still is.
template <class F>
void walk_up(const std::string& mount, std::string path, const F& f) {
  while (!path.empty() && path != "/") {
    f(mount + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  f(mount);
}

/// Calls v1 or v2 with the directories that hold `controller`'s files, whichever kind they are.
template <class V1, class V2>
void for_cgroups(const std::string& root, const std::string& controller, const V1& v1,
                 const V2& v2) {
  const std::string mounts = root + "/sys/fs/cgroup";
  for (const Cgroup& group : own_cgroups(root)) {
    if (group.controllers.empty()) {
      walk_up(mounts, group.path, v2);
      walk_up(mounts + "/unified", group.path, v2);
    } else if (std::ranges::find(group.controllers, controller) != group.controllers.end()) {
      walk_up(mounts + "/" + controller, group.path, v1);
    }
  }
}

/// Cached file pages count as used but are given back when memory is short.
std::uint64_t left_of(std::optional<std::uint64_t> limit, std::optional<std::uint64_t> used,
                      std::optional<std::uint64_t> reclaimable) {
  if (!limit || !used) return kUnlimited;
  const std::uint64_t held = *used - std::min(*used, reclaimable.value_or(0));
  return *limit - std::min(*limit, held);
}

}  // namespace

double parse_cpu_max(std::string_view text) {
  const std::optional<std::uint64_t> quota = leading_number(text);
  const std::size_t blank = text.find(' ');
  if (!quota || blank == std::string_view::npos) return 0;
  const std::optional<std::uint64_t> period = leading_number(text.substr(blank));
  return period && *period > 0 ? static_cast<double>(*quota) / static_cast<double>(*period) : 0;
}

double cgroup_processors(const std::string& root) {
  double least = 0;
  const auto limit_to = [&](double processors) {
    if (processors > 0 && (least == 0 || processors < least)) least = processors;
  };
  for_cgroups(
      root, "cpu",
      [&](const std::string& directory) {
        const std::optional<std::uint64_t> quota = read_number(directory + "/cpu.cfs_quota_us");
        const std::optional<std::uint64_t> period = read_number(directory + "/cpu.cfs_period_us");
        if (quota && period && *period > 0) {
          limit_to(static_cast<double>(*quota) / static_cast<double>(*period));
        }
      },
      [&](const std::string& directory) {
        limit_to(parse_cpu_max(read_file(directory + "/cpu.max").value_or("")));
      });
  return least;
}

std::uint64_t cgroup_memory_left(const std::string& root) {
  std::uint64_t least = kUnlimited;
  for_cgroups(
      root, "memory",
      [&](const std::string& directory) {
        least = std::min(least,
                         left_of(read_number(directory + "/memory.limit_in_bytes"),
                                 read_number(directory + "/memory.usage_in_bytes"),
                                 read_field(directory + "/memory.stat", "total_inactive_file ")));
      },
      [&](const std::string& directory) {
        least = std::min(least, left_of(read_number(directory + "/memory.max"),
                                        read_number(directory + "/memory.current"),
                                        read_field(directory + "/memory.stat", "inactive_file ")));
      });
  return least;
}

int available_processors() {
  cpu_set_t affinity;
  CPU_ZERO(&affinity);
  int count = sched_getaffinity(0, sizeof affinity, &affinity) == 0
                  ? CPU_COUNT(&affinity)
                  : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more than a cpu_set_t holds
  const double quota = cgroup_processors("");
  if (quota > 0) count = std::min(count, static_cast<int>(std::ceil(quota)));
  return std::max(count, 1);
}

std::uint64_t available_memory() {
  const std::uint64_t machine = read_field_kib("/proc/meminfo", "MemAvailable:");
  return std::min(machine, cgroup_memory_left(""));
}

std::size_t page_size() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void prefer_large_pages(void* memory, std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const std::size_t page = page_size();
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = (first + bytes) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  static_cast<void>(memory);
  static_cast<void>(bytes);
#endif
}

std::uint64_t peak_memory() {
  const std::uint64_t peak = read_field_kib("/proc/self/status", "VmHWM:");
  if (peak > 0) return peak;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer, part;  // what Arm's kernels say instead of a name
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) part = value;
  }
  if (part.empty()) return "unknown processor";
  return "Arm processor, implementer " + implementer + ", part " + part;
}

int default_threads() {
  return settings().threads > 0 ? settings().threads : available_processors();
}

}  // namespace heddle
