// How a product is shared out: in tasks of rows and groups of columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/matmul.h"

namespace heddle::cpu {

// A task's most rows: a block of b is packed once for so many, which read it from the second level
// of caches.
inline constexpr std::int64_t kTaskRows = 4 * kRowBlock;
// Tasks have whole strips of so many rows, and rows that lie across are multiplied by them: some
// tiles of each level of instructions.
inline constexpr std::int64_t kStripRows = 12;
static_assert(kRowBlock % kStripRows == 0);

inline std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

/// Tasks as large as they can be while each of a team's threads has enough of them to end with the
/// others. No result depends on it.
struct Cut {
  std::int64_t rows = 0, groups, row_tasks = 0, column_tasks = 0, count = 0;

  /// Of at most so many groups of columns.
  Cut(const MatmulShape& s, std::int64_t most_groups, std::int64_t threads) : groups(most_groups) {
    constexpr std::int64_t kTasksEach = 6;
    std::int64_t strips = blocks_of(s.rows, kTaskRows);
    set(s, strips);
    while (count < kTasksEach * threads && (rows > kRowBlock || groups > 1)) {
      if (rows >= groups * kRowBlock) {
        ++strips;
      } else {
        groups = blocks_of(groups, 2);
      }
      set(s, strips);
    }
  }

  /// Neighbours read the same rows of a.
  MatmulPart task(const MatmulShape& s, std::int64_t i) const {
    const std::int64_t column = i % column_tasks * groups * kGroupColumns;
    const std::int64_t row = i / column_tasks % row_tasks * rows;
    return {.batch = i / row_tasks / column_tasks,
            .row = row,
            .rows = std::min(rows, s.rows - row),
            .column = column,
            .columns = std::min(groups * kGroupColumns, s.columns - column)};
  }

 private:
  void set(const MatmulShape& s, std::int64_t strips) {
    rows = blocks_of(blocks_of(s.rows, strips), kStripRows) * kStripRows;
    row_tasks = blocks_of(s.rows, rows);
    column_tasks = blocks_of(s.columns, groups * kGroupColumns);
    count = s.batch * row_tasks * column_tasks;
  }
};

/// Slots hold neighbouring tasks, and those that are handed out one after the other lie far apart,
/// as many threads apart as there are: what a processor fetches beyond a task's columns then is the
/// same thread's next task's, and not what another thread works on.
struct SlotOrder {
  std::int64_t count, threads;

  SlotOrder(std::int64_t most, std::int64_t team)
      : count(most > team ? most / team * team : most), threads(std::min(team, count)) {}
  std::int64_t slot(std::int64_t i) const { return i % threads * (count / threads) + i / threads; }
};

}  // namespace heddle::cpu
