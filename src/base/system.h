// What the machine, and the limits set on this process, allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// Processors this process may use: its affinity, cut to the cgroup's CPU quota, at least 1.
int available_processors();

/// Threads for teams of which nobody said a size: HEDDLE_THREADS, or available_processors().
int default_threads();

/// Bytes that can be allocated without swapping: MemAvailable, cut to what the cgroup has left.
std::uint64_t available_memory();

/// The unit in which the system maps memory, in bytes.
std::size_t page_size();

/// Asks for large pages within [memory, memory + bytes), not yet touched, where that saves much:
/// reading all of it is some 10% faster. Only a hint.
void prefer_large_pages(void* memory, std::size_t bytes) noexcept;

/// Peak resident memory of this process, in bytes.
std::uint64_t peak_memory();

/// "AMD EPYC ..." as the system names it, or "unknown processor".
std::string processor_name();

/// As above, but only what the cgroups of this process say (versions 1 and 2, the hierarchy up to
/// its root), read below `root`: the quota in processors, 0 if there is none; the bytes left, all
/// ones if there is no limit. For tests.
double cgroup_processors(const std::string& root);
std::uint64_t cgroup_memory_left(const std::string& root);

/// A cgroup's quota in processors from the text of cpu.max ("max 100000", "150000 100000"); 0 if
/// there is none. For tests.
double parse_cpu_max(std::string_view text);

}  // namespace heddle
