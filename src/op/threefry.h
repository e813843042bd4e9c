// Threefry-2x32 with 20 rounds: two random words of a key and a counter.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace heddle {

using ThreefryPair = std::array<std::uint32_t, 2>;

/// By how much the second word is turned in each round, four rounds to a group; two groups in turn.
inline constexpr std::array<std::array<int, 4>, 2> kThreefryTurns{
    {{13, 15, 26, 6}, {17, 29, 16, 24}}};
inline constexpr int kThreefryGroups = 5;
inline constexpr std::uint32_t kThreefryParity = 0x1bd11bda;

constexpr std::array<std::uint32_t, 3> threefry_schedule(ThreefryPair key) noexcept {
  return {key[0], key[1], kThreefryParity ^ key[0] ^ key[1]};
}

constexpr ThreefryPair threefry(ThreefryPair key, ThreefryPair counter) noexcept {
  const std::array<std::uint32_t, 3> schedule = threefry_schedule(key);
  std::uint32_t x = counter[0] + schedule[0], y = counter[1] + schedule[1];
  for (std::uint32_t group = 0; group < kThreefryGroups; ++group) {
    for (const int turn : kThreefryTurns[group % 2]) {
      x += y;
      y = std::rotl(y, turn) ^ x;
    }
    x += schedule[(group + 1) % 3];
    y += schedule[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

/// How the `words` of a key's stream are counted: word i < pairs comes with word i + offset, from
/// the counter (i, i + offset). With an odd number the one in the middle stands alone, the first of
/// the counter (pairs, 0).
struct ThreefryCount {
  std::int64_t pairs, offset;
  bool odd;
  constexpr explicit ThreefryCount(std::int64_t words) noexcept
      : pairs(words / 2), offset(words - words / 2), odd(words % 2 != 0) {}
};

}  // namespace heddle
