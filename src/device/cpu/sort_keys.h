// Sorting keys, by Highway's vectorised quicksort.
//
// Keys of up to 32 bits are sorted as 64-bit ones with their index in the low half: that makes them
// all different, so the order is stable, and it is quicker than sorting 32 bits, whose compressing
// stores are slow on Zen 4 (8 ns an element of a million against 34; std::sort takes 79, and a
// selection by std::nth_element 6, which is why partitions are sorted too).
#pragma once

#include <hwy/base.h>
#include <cstdint>

#include "base/team.h"

namespace heddle::cpu {

/// The index of a value in the low half, and its key in the high one.
using WideKey = hwy::uint128_t;

inline bool less(std::uint16_t a, std::uint16_t b) {
  return a < b;
}
inline bool less(std::uint64_t a, std::uint64_t b) {
  return a < b;
}
inline bool less(const WideKey& a, const WideKey& b) {
  return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

void sort_keys(std::uint16_t* keys, std::int64_t n);
void sort_keys(std::uint64_t* keys, std::int64_t n);
void sort_keys(WideKey* keys, std::int64_t n);

/// Lines of this many keys, or more, are worth sharing out.
inline constexpr std::int64_t kLongLine = std::int64_t{1} << 17;

/// With the team, in parts that are then merged by way of `spare`, as long as `keys`. Gives where
/// the sorted keys are: either of the two.
std::uint16_t* sort_keys(Team& team, std::uint16_t* keys, std::uint16_t* spare, std::int64_t n);
std::uint64_t* sort_keys(Team& team, std::uint64_t* keys, std::uint64_t* spare, std::int64_t n);
WideKey* sort_keys(Team& team, WideKey* keys, WideKey* spare, std::int64_t n);

/// How lines share a workspace of keys: up to `slots` side by side, each with room for `room` keys.
struct LineSlots {
  std::int64_t slots = 1, room = 0;

  /// For `lines` of `length`, each of which needs `room` keys, and as many again when it is sorted
  /// by all threads.
  LineSlots() = default;
  LineSlots(std::int64_t lines, std::int64_t length, std::int64_t room_of_a_line);

  std::int64_t keys() const { return total_; }
  /// Whether lines are to be sorted one after another, each by all of the team.
  bool one_by_one(const Team& team, std::int64_t lines) const {
    return shared_ && team.size() > std::min(slots, lines);
  }

 private:
  std::int64_t total_ = 0;
  bool shared_ = false;
};

}  // namespace heddle::cpu
