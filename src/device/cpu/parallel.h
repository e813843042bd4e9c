// Sharing out a kernel's work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/team.h"

namespace heddle::cpu {

/// Elements whose work is worth handing to another thread (a few microseconds of it).
inline constexpr std::int64_t kGrainElements = 16384;

/// Team::parallel_for without an allocation, whatever `body` captures.
template <class Body>
void parallel(Team& team, std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain) return body(std::int64_t{0}, count);
  team.parallel_for(count, grain, std::cref(body));
}

/// How many rows make a chunk when each costs `elements` elements' work.
inline std::int64_t row_grain(std::int64_t elements) {
  return std::max<std::int64_t>(1, kGrainElements / std::max<std::int64_t>(1, elements));
}

}  // namespace heddle::cpu
