// How a few tokens' attention is cut into tasks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::cpu {

/// The heads of keys and values, each read by `group` query heads, of which a task's working memory
/// holds so many.
struct HeadShape {
  std::int64_t kv_heads, group, features;
  std::int64_t most_heads, most_kv_heads;  // in one task, of one token
};

/// A task computes `heads` query heads for each of `kv_heads` heads of keys and values: over one of
/// `splits` splits of the context, or over all of it if that is 0. Results do not depend on it.
struct Share {
  std::int64_t kv_heads = 1, heads = 1, splits = 0;

  std::int64_t tasks_a_kv_head(const HeadShape& shape) const {
    return (shape.group + heads - 1) / heads;
  }
  std::int64_t tasks(const HeadShape& shape) const {
    return (shape.kv_heads + kv_heads - 1) / kv_heads * tasks_a_kv_head(shape) *
           std::max<std::int64_t>(1, splits);
  }
};

// Multiply-adds, a few at a time, that are worth another thread.
inline constexpr std::int64_t kAttendChunkWork = std::int64_t{1} << 16;

/// Tasks for so many threads, of which none waits long for the last.
inline std::int64_t enough_tasks(std::int64_t threads) {
  return threads == 1 ? 1 : 4 * threads;
}

/// For one of `runs` runs of tokens, which see about `positions` positions in `splits` splits (1:
/// they cannot be shared out). Rows that read the same keys and values stay together as long as
/// there are enough tasks: first splits are shared out, then
/// heads of keys and values, and, for threads that had nothing to do, the query heads of each.
inline Share share_of(const HeadShape& shape, std::int64_t positions, std::int64_t splits,
                      std::int64_t runs, std::int64_t threads) {
  Share share{shape.most_kv_heads, shape.most_heads, 0};
  const std::int64_t enough = enough_tasks(threads);
  const auto tasks = [&] { return runs * share.tasks(shape); };
  if (splits > 1 && tasks() < enough) share.splits = splits;
  while (share.kv_heads > 1 && tasks() < enough) share.kv_heads = (share.kv_heads + 1) / 2;
  const std::int64_t of_task = positions / std::max<std::int64_t>(1, share.splits);
  while (share.heads > 1 && tasks() < threads) {
    const std::int64_t fewer = (share.heads + 1) / 2;
    if (of_task * shape.features * fewer < kAttendChunkWork) break;
    share.heads = fewer;
  }
  return share;
}

}  // namespace heddle::cpu
