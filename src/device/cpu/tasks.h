// Work on many alike things, lines or matrices, that need memory of their own: they are shared out
// to a bounded number of tasks, each with a part of the workspace. Nothing's result depends on the
// task that makes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"

namespace heddle::cpu {

struct Tasks {
  std::int64_t items = 0;
  std::int64_t items_per_row = 0;  // of axis 0; 0 where rows are not independent
  std::int64_t count = 0;
  std::int64_t elements = 1;  // that an item's work is worth, for parallel.h's grain
  std::size_t scratch = 0;    // bytes of each task, a multiple of a cache line

  Tasks() = default;
  /// As many as machines have threads, as long as their memory stays below that of the data.
  Tasks(std::int64_t all, std::int64_t per_row, std::int64_t work, std::size_t bytes,
        std::size_t data_bytes)
      : items(all), items_per_row(per_row), elements(work) {
    constexpr std::size_t kLine = 64, kAlwaysFine = std::size_t{64} << 20;
    constexpr std::int64_t kMost = 64;
    scratch = (bytes + kLine - 1) / kLine * kLine;
    count = std::min(items, kMost);
    if (scratch > 0) {
      const std::size_t fit = std::max(kAlwaysFine, data_bytes) / scratch;
      count = std::min(count, std::max<std::int64_t>(1, static_cast<std::int64_t>(fit)));
    }
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(count) * scratch; }
  std::int64_t items_that_count(std::int64_t extent) const {
    return extent < 0 || items_per_row == 0 ? items : std::min(items, extent * items_per_row);
  }

  /// Calls body(item, scratch) for all items that count, on the launch's team.
  template <class Body>
  void run(const Launch& launch, const Body& body) const {
    const std::int64_t counted = items_that_count(launch.extent);
    if (counted == 0) return;
    const std::int64_t share = (counted + count - 1) / count;
    parallel(launch.team, count, row_grain(share * elements),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t task = begin; task < end; ++task) {
                 std::byte* scratch_of_task =
                     scratch == 0 ? nullptr
                                  : launch.workspace + static_cast<std::size_t>(task) * scratch;
                 const std::int64_t last = std::min(counted, (task + 1) * share);
                 for (std::int64_t i = task * share; i < last; ++i) body(i, scratch_of_task);
               }
             });
  }
};

}  // namespace heddle::cpu
