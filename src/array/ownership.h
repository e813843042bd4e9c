// Rule 11: in place only by proof. What must hold before an output is written over an input.
//
// HEDDLE_BREAK_OWNERSHIP, a number, makes one of these checks pass whatever it finds: for showing
// that the tests would notice (scripts/break_ownership). Never set it otherwise.
#pragma once

#include <cstdint>

#ifndef HEDDLE_BREAK_OWNERSHIP
#define HEDDLE_BREAK_OWNERSHIP 0
#endif

namespace heddle {

enum class OwnershipCheck : std::uint8_t {
  none,
  node_handles,    // nobody else holds an output of the node that made the value
  buffer_handles,  // nor the memory: no view, constant, file or host reader
  last_use,        // within a lowered op, no later step reads the value
  one_output,      // no other output of the op was put there
  same_bytes,      // the input lies in memory as the output will
  pending_uses,    // work in flight on the memory, on other streams too, comes first
};

/// `holds`, unless this build breaks `check`.
constexpr bool proven(OwnershipCheck check, bool holds) noexcept {
  return holds || static_cast<int>(check) == HEDDLE_BREAK_OWNERSHIP;
}

/// While one lives, evaluation writes nothing in place (what must be written so is copied first).
/// Results must be the same, which is what tests use it for.
class NoDonation {
 public:
  NoDonation() noexcept;
  ~NoDonation();
  NoDonation(const NoDonation&) = delete;
  NoDonation& operator=(const NoDonation&) = delete;

  static bool active() noexcept;
};

}  // namespace heddle
