#include "device/cpu/sort_keys.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>

#include "device/cpu/parallel.h"

namespace heddle::cpu {

namespace {

constexpr std::int64_t kFew = 24;  // up to which comparing is quicker

template <class K>
void sort_part(K* keys, std::int64_t n) {
  if (n <= kFew) {
    std::sort(keys, keys + n, [](const K& a, const K& b) { return less(a, b); });
  } else {
    hwy::Sorter()(keys, static_cast<std::size_t>(n), hwy::SortAscending());
  }
}

/// How many of `a` are among the first `count` keys when both are merged, those of `a` before their
/// equals.
template <class K>
std::int64_t taken_from_first(const K* a, std::int64_t n, const K* b, std::int64_t m,
                              std::int64_t count) {
  std::int64_t low = std::max<std::int64_t>(0, count - m), high = std::min(n, count);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (less(b[count - middle - 1], a[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <class K>
void merge(const K* a, const K* a_end, const K* b, const K* b_end, K* out) {
  while (a != a_end && b != b_end) {
    const bool second = less(*b, *a);
    *out++ = second ? *b : *a;
    b += second;
    a += !second;
  }
  out = std::copy(a, a_end, out);
  std::copy(b, b_end, out);
}

/// Keys [begin, end) of what a, of n, and b, of m, are merged to.
template <class K>
void merge_piece(const K* a, std::int64_t n, const K* b, std::int64_t m, std::int64_t begin,
                 std::int64_t end, K* out) {
  const std::int64_t from = taken_from_first(a, n, b, m, begin);
  const std::int64_t to = taken_from_first(a, n, b, m, end);
  merge(a + from, a + to, b + begin - from, b + end - to, out + begin);
}

/// Keys worth a thread's while.
constexpr std::int64_t kPart = 32768;

template <class K>
K* sort_shared(Team& team, K* keys, K* spare, std::int64_t n) {
  std::int64_t parts = 1;
  while (parts < team.size() && n / (2 * parts) >= kPart) parts *= 2;
  const auto border = [&](std::int64_t part) { return n * part / parts; };
  parallel(team, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      sort_part(keys + border(p), border(p + 1) - border(p));
    }
  });
  for (std::int64_t width = 1; width < parts; width *= 2) {
    // Each pair of runs is merged in as many pieces as it has parts.
    parallel(team, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t pair = p / (2 * width), piece = p % (2 * width);
        const std::int64_t first = border(2 * width * pair);
        const std::int64_t middle = border(2 * width * pair + width);
        const std::int64_t all = border(2 * width * (pair + 1)) - first;
        merge_piece(keys + first, middle - first, keys + middle, all - (middle - first),
                    all * piece / (2 * width), all * (piece + 1) / (2 * width), spare + first);
      }
    });
    std::swap(keys, spare);
  }
  return keys;
}

}  // namespace

void sort_keys(std::uint16_t* keys, std::int64_t n) {
  sort_part(keys, n);
}
void sort_keys(std::uint64_t* keys, std::int64_t n) {
  sort_part(keys, n);
}
void sort_keys(WideKey* keys, std::int64_t n) {
  sort_part(keys, n);
}

std::uint16_t* sort_keys(Team& team, std::uint16_t* keys, std::uint16_t* spare, std::int64_t n) {
  return sort_shared(team, keys, spare, n);
}
std::uint64_t* sort_keys(Team& team, std::uint64_t* keys, std::uint64_t* spare, std::int64_t n) {
  return sort_shared(team, keys, spare, n);
}
WideKey* sort_keys(Team& team, WideKey* keys, WideKey* spare, std::int64_t n) {
  return sort_shared(team, keys, spare, n);
}

LineSlots::LineSlots(std::int64_t lines, std::int64_t length, std::int64_t room_of_a_line)
    : room(room_of_a_line), shared_(length >= kLongLine && room_of_a_line >= length) {
  // Workspaces are of about 32 MiB at most, but for longer lines.
  constexpr std::int64_t kMostSlots = 64, kMostKeys = std::int64_t{1} << 22;
  const std::int64_t worth = (lines * length + kGrainElements - 1) / kGrainElements;
  slots = std::clamp<std::int64_t>(kMostKeys / std::max<std::int64_t>(1, room), 1, kMostSlots);
  slots = std::max<std::int64_t>(1, std::min({slots, lines, worth}));
  total_ = std::max(slots * room, shared_ ? 2 * room : 0);
}

}  // namespace heddle::cpu
