// Offsets for values that live in one arena: several greedy orders, of which the tightest is kept.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "exec/plan.h"

namespace heddle {

namespace {

// Above this many items only the linear-time order is tried.
constexpr std::size_t kThoroughItems = 4096;
// Shuffled orders tried when no greedy order reaches the lower bound.
constexpr int kShuffles = 24;

std::size_t align_up(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

std::size_t lower_bound_of(const std::vector<ArenaItem>& items) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> changes;  // (step, bytes gained or lost)
  for (const ArenaItem& item : items) {
    changes.emplace_back(item.first, static_cast<std::int64_t>(item.bytes));
    changes.emplace_back(item.last + 1, -static_cast<std::int64_t>(item.bytes));
  }
  std::sort(changes.begin(), changes.end());  // losses come before gains of the same step
  std::int64_t live = 0, most = 0;
  for (const auto& [step, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return static_cast<std::size_t>(most);
}

struct Placed {
  std::size_t begin, end;
  std::uint32_t last;
};

/// The offset of the tightest gap between `taken` (sorted by begin) that holds `bytes`, or the end.
std::size_t best_gap(const std::vector<Placed>& taken, std::size_t bytes) {
  std::size_t best = 0, best_slack = std::numeric_limits<std::size_t>::max(), cursor = 0;
  for (const Placed& p : taken) {
    if (p.begin > cursor && p.begin - cursor >= bytes && p.begin - cursor - bytes < best_slack) {
      best_slack = p.begin - cursor - bytes;
      best = cursor;
    }
    cursor = std::max(cursor, p.end);
  }
  return best_slack == std::numeric_limits<std::size_t>::max() ? cursor : best;
}

void insert_sorted(std::vector<Placed>& taken, Placed placed) {
  const auto at =
      std::upper_bound(taken.begin(), taken.end(), placed,
                       [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  taken.insert(at, placed);
}

/// Items as they come alive; only what is alive then is in the way.
ArenaLayout by_time(const std::vector<ArenaItem>& items, std::size_t alignment) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::make_tuple(items[a].first, items[b].bytes, a) <
           std::make_tuple(items[b].first, items[a].bytes, b);
  });
  ArenaLayout layout{std::vector<std::size_t>(items.size()), 0, 0};
  std::vector<Placed> alive;
  for (const std::size_t i : order) {
    std::erase_if(alive, [&](const Placed& p) { return p.last < items[i].first; });
    const std::size_t bytes = align_up(items[i].bytes, alignment);
    const std::size_t offset = best_gap(alive, bytes);
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    insert_sorted(alive, {offset, offset + bytes, items[i].last});
  }
  return layout;
}

/// Items in the given order, each against all earlier ones whose life overlaps its own.
ArenaLayout in_order(const std::vector<ArenaItem>& items, const std::vector<std::size_t>& order,
                     std::size_t alignment) {
  ArenaLayout layout{std::vector<std::size_t>(items.size()), 0, 0};
  std::vector<std::size_t> done;  // indices, sorted by offset
  std::vector<Placed> rivals;
  for (const std::size_t i : order) {
    rivals.clear();
    for (const std::size_t j : done) {
      if (items[j].first <= items[i].last && items[i].first <= items[j].last) {
        rivals.push_back({layout.offsets[j],
                          layout.offsets[j] + align_up(items[j].bytes, alignment), items[j].last});
      }
    }
    const std::size_t bytes = align_up(items[i].bytes, alignment);
    const std::size_t offset = best_gap(rivals, bytes);
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    const auto at =
        std::upper_bound(done.begin(), done.end(), offset,
                         [&](std::size_t o, std::size_t j) { return o < layout.offsets[j]; });
    done.insert(at, i);
  }
  return layout;
}

}  // namespace

ArenaLayout lay_out(const std::vector<ArenaItem>& items, std::size_t alignment) {
  const std::size_t bound = lower_bound_of(items);
  ArenaLayout best = by_time(items, alignment);
  const auto consider = [&](const std::vector<std::size_t>& order) {
    ArenaLayout layout = in_order(items, order, alignment);
    if (layout.bytes < best.bytes) best = std::move(layout);
  };
  if (best.bytes > bound && items.size() <= kThoroughItems) {
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    const auto size_of = [&](std::size_t i) { return items[i].bytes; };
    const auto span_of = [&](std::size_t i) { return items[i].last - items[i].first; };
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return size_of(a) > size_of(b); });
    consider(order);
    std::mt19937 shuffle(20);  // fixed, so that a graph always gets the same plan
    for (int i = 0; i < kShuffles && best.bytes > bound + bound / 50 && order.size() > 1; ++i) {
      std::vector<std::size_t> varied = order;
      const auto swaps = 1 + varied.size() / 8;
      for (std::size_t s = 0; s < swaps; ++s) {
        std::swap(varied[shuffle() % varied.size()], varied[shuffle() % varied.size()]);
      }
      consider(varied);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return span_of(a) > span_of(b); });
    consider(order);
  }
  best.lower_bound = bound;
  return best;
}

}  // namespace heddle
