#include "device/cpu/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::cpu {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

[[gnu::always_inline]] inline void fetch(const Upcoming& next, std::int64_t i) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t at = 0; at < next.bytes; at += kLine) {
    __builtin_prefetch(next.pieces[i] + at, 0, 2);
  }
}

/// Positions of a block, counted from its start.
struct BlockRange {
  std::int64_t first, last;
  std::int64_t first_panel() const { return first / kPanel; }
  std::int64_t last_panel() const { return (last + kPanel - 1) / kPanel; }
  std::int64_t first_lane() const { return first_panel() * kPanel; }
  std::int64_t lanes() const { return (last_panel() - first_panel()) * kPanel; }
};

/// A block's positions that any of a task's rows sees, and where they lie; elsewhere null.
struct BlockRows {
  std::int64_t begin = 0;
  BlockRange range{0, 0};
  bool same = true;  // all rows see the same
  const std::byte *keys[kMostPositions], *values[kMostPositions];

  BlockRange seen_by(const Visible& visible, std::int64_t size) const {
    return {std::max(visible.begin - begin, std::int64_t{0}), std::min(visible.end - begin, size)};
  }
  bool empty() const { return range.first >= range.last; }
  void find(const AttentionRows& task, std::int64_t size, std::int64_t from);
};

void BlockRows::find(const AttentionRows& task, std::int64_t size, std::int64_t from) {
  begin = from;
  range = {size, 0};
  same = true;
  const BlockRange first_row = seen_by(task.visible[0], size);
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const BlockRange row = seen_by(task.visible[r], size);
    if (row.first != first_row.first || row.last != first_row.last) same = false;
    if (row.first >= row.last) continue;
    range.first = std::min(range.first, row.first);
    range.last = std::max(range.last, row.last);
  }
  if (empty()) return;
  std::fill(keys, keys + kMostPositions, nullptr);
  std::fill(values, values + kMostPositions, nullptr);
  task.keys.locate(begin + range.first, begin + range.last, keys + range.first);
  task.values.locate(begin + range.first, begin + range.last, values + range.first);
}

/// Hands out some rows in the order of memory, in pieces of a head each.
class Fetcher {
 public:
  Fetcher(const std::byte* const* rows, const BlockRange& range, std::int64_t heads,
          std::int64_t head_bytes)
      : rows_(rows), heads_(heads), bytes_(head_bytes), next_(range.first), end_(range.last) {}

  Upcoming take(std::int64_t most) {
    std::int64_t count = 0;
    for (; count < most && next_ < end_; ++count) {
      pieces_[count] = rows_[next_] + head_ * bytes_;
      if (++head_ == heads_) head_ = 0, ++next_;
    }
    return {pieces_, count, bytes_};
  }

 private:
  const std::byte* const* rows_;
  std::int64_t heads_, bytes_, next_, end_, head_ = 0;
  const std::byte* pieces_[kMostPositions];
};

/// Adds what a task's rows see of a block to scratch.split, fetching another block meanwhile.
class BlockSums {
 public:
  BlockSums(const AttentionRows& task, AttentionScratch& scratch, const BlockRows& block,
            std::int64_t size)
      : task_(task),
        scratch_(scratch),
        block_(block),
        range_(block.range),
        size_(size),
        key_floats_(round_up_to_panel(task.keys.features)),
        value_floats_(round_up_to_panel(task.values.features)) {}

  void add(const BlockRows& next);

 private:
  BlockRange seen_by(std::int64_t row) const { return block_.seen_by(task_.visible[row], size_); }
  void load_keys(std::int64_t head, Fetcher& next);
  void score(std::int64_t head);
  void weigh(std::int64_t head);
  void add_stored_values(std::int64_t head, Fetcher& next);
  void load_values(std::int64_t head, Fetcher& next);
  void add_values(std::int64_t head);
  void add_values(std::int64_t head, std::int64_t first_row, std::int64_t rows,
                  const BlockRange& range);

  const AttentionRows& task_;
  AttentionScratch& scratch_;
  const BlockRows& block_;
  const BlockRange range_;
  const std::int64_t size_, key_floats_, value_floats_;
};

void BlockSums::load_keys(std::int64_t head, Fetcher& next) {
  const HeadSource& keys = task_.keys;
  for (std::int64_t p = range_.first_lane(); p < range_.last; p += kPanel) {
    keys.loops->key_panel({.rows = block_.keys + p,
                           .offset = head * keys.head_bytes,
                           .features = keys.features,
                           .panel = scratch_.keys + p * key_floats_,
                           .next = next.take(kPanel)});
  }
}

void BlockSums::load_values(std::int64_t head, Fetcher& next) {
  const HeadSource& values = task_.values;
  const Upcoming upcoming = next.take(range_.last - range_.first);
  for (std::int64_t p = range_.first; p < range_.last; ++p) {
    const std::int64_t i = p - range_.first;
    if (i < upcoming.count) fetch(upcoming, i);
    values.decode(block_.values[p] + head * values.head_bytes, values.features,
                  scratch_.values + p * value_floats_);
  }
}

void BlockSums::score(std::int64_t head) {
  const std::int64_t features = task_.keys.features;
  std::int64_t first = 0;
  do {  // even scores of no features must be written
    task_.loops.tile({
        .x = scratch_.queries + head * task_.rows * key_floats_ + first,
        .x_stride = key_floats_,
        .rows = task_.rows,
        .w = scratch_.keys + range_.first_lane() * key_floats_ + first * kPanel,
        .step = kPanel,
        .panel = kPanel * key_floats_,
        .depth = std::min(features - first, kDepthBlock),
        .columns = range_.lanes(),
        .out = scratch_.scores + range_.first_lane(),
        .out_stride = kMostPositions,
        .scales = first > 0 ? kOnes : nullptr,
    });
    first += kDepthBlock;
  } while (first < features);
}

/// Scores become weights, zero where a row does not see.
void BlockSums::weigh(std::int64_t head) {
  for (std::int64_t r = 0; r < task_.rows; ++r) {
    float* scores = scratch_.scores + r * kMostPositions;
    const BlockRange seen = seen_by(r);
    if (seen.first >= seen.last) {
      std::fill_n(scores + range_.first_lane(), range_.lanes(), 0.0f);
      scratch_.rescale[r] = 1.0f;
      continue;
    }
    if (task_.apply_mask) {
      task_.apply_mask(scores + seen.first, task_.mask[r], task_.mask_stride,
                       block_.begin + seen.first, block_.begin + seen.last);
    }
    const std::int64_t sums = head * task_.rows + r;
    SoftmaxRow row{
        .scores = scores + range_.first_lane(),
        .begin = seen.first - range_.first_lane(),
        .end = seen.last - range_.first_lane(),
        .whole = range_.lanes(),
        .maximum = scratch_.split.maximum[sums],
        .sum = scratch_.split.sum[sums],
        .rescale = 1.0f,
    };
    task_.loops.softmax(row);
    scratch_.split.maximum[sums] = row.maximum;
    scratch_.split.sum[sums] = row.sum;
    scratch_.rescale[r] = row.rescale;
  }
}

void BlockSums::add_values(std::int64_t head, std::int64_t first_row, std::int64_t rows,
                           const BlockRange& range) {
  float* output = scratch_.split.output + (head * task_.rows + first_row) * value_floats_;
  for (std::int64_t column = 0; column < value_floats_; column += kGroupColumns) {
    task_.loops.tile({
        .x = scratch_.scores + first_row * kMostPositions + range.first,
        .x_stride = kMostPositions,
        .rows = rows,
        .w = scratch_.values + range.first * value_floats_ + column,
        .step = value_floats_,
        .panel = kPanel,
        .depth = range.last - range.first,
        .columns = std::min(kGroupColumns, value_floats_ - column),
        .out = output + column,
        .out_stride = value_floats_,
        .scales = scratch_.rescale + first_row,
    });
  }
}

void BlockSums::add_values(std::int64_t head) {
  if (block_.same || task_.loops.all_finite(scratch_.values + range_.first * value_floats_,
                                            (range_.last - range_.first) * value_floats_)) {
    return add_values(head, 0, task_.rows, range_);
  }
  // A weight of zero hides a value that a row does not see, unless that is infinite or not a
  // number.
  for (std::int64_t r = 0; r < task_.rows; ++r) {
    const BlockRange seen = seen_by(r);
    if (seen.first < seen.last) add_values(head, r, 1, seen);
  }
}

/// The same without decoding them first, where all rows see the same.
void BlockSums::add_stored_values(std::int64_t head, Fetcher& next) {
  static_assert(kWeightsStride == kMostPositions);
  const HeadSource& values = task_.values;
  values.loops->add_values({
      .weights = scratch_.scores + range_.first,
      .rows = task_.rows,
      .values = block_.values + range_.first,
      .offset = head * values.head_bytes,
      .depth = range_.last - range_.first,
      .features = values.features,
      .out = scratch_.split.output + head * task_.rows * value_floats_,
      .out_stride = value_floats_,
      .scales = scratch_.rescale,
      .next = next.take(range_.last - range_.first),
  });
}

void BlockSums::add(const BlockRows& next) {
  Fetcher next_keys(next.keys, next.range, task_.heads, task_.keys.head_bytes);
  Fetcher next_values(next.values, next.range, task_.heads, task_.values.head_bytes);
  const bool as_stored = block_.same && task_.rows <= task_.values.loops->few_rows;
  for (std::int64_t head = 0; head < task_.heads; ++head) {
    load_keys(head, next_keys);
    score(head);
    weigh(head);
    if (as_stored) {
      add_stored_values(head, next_values);
    } else {
      load_values(head, next_values);
      add_values(head);
    }
  }
}

void fetch_all(const AttentionRows& task, const BlockRows& block) {
  Fetcher keys(block.keys, block.range, task.heads, task.keys.head_bytes);
  Fetcher values(block.values, block.range, task.heads, task.values.head_bytes);
  for (Fetcher* fetcher : {&keys, &values}) {
    while (true) {
      const Upcoming some = fetcher->take(kMostPositions);
      if (some.count == 0) break;
      for (std::int64_t i = 0; i < some.count; ++i) fetch(some, i);
    }
  }
}

void clear_all(const AttentionRows& task, Sums& sums) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  for (std::int64_t r = 0; r < task.heads * task.rows; ++r) clear(row_of(sums, r, padded), padded);
}

}  // namespace

void HeadSource::locate(std::int64_t begin, std::int64_t end,
                        const std::byte** rows) const noexcept {
  if (!table) {
    for (std::int64_t p = begin; p < end; ++p) *rows++ = data + p * row_bytes;
    return;
  }
  for (std::int64_t p = begin; p < end;) {
    const std::int64_t block = p / block_size, last = std::min(end, (block + 1) * block_size);
    const std::byte* row = data + (table[block] * block_size + p % block_size) * row_bytes;
    for (; p < last; ++p, row += row_bytes) *rows++ = row;
  }
}

Visible AttentionRows::all() const noexcept {
  Visible result{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::int64_t r = 0; r < rows; ++r) {
    if (visible[r].begin >= visible[r].end) continue;
    result.begin = std::min(result.begin, visible[r].begin);
    result.end = std::max(result.end, visible[r].end);
  }
  return result.begin < result.end ? result : Visible{};
}

std::int64_t most_rows(std::int64_t features, std::int64_t value_features) noexcept {
  const std::int64_t padded =
      round_up_to_panel(std::max({features, value_features, std::int64_t{1}}));
  return std::clamp<std::int64_t>(kQueryFloats / padded, 1, kMostQueries);
}

void load_query(AttentionScratch& scratch, std::int64_t row, DecodeRow decode,
                const std::byte* from, std::int64_t count, float scale) {
  float* query = scratch.queries + row * round_up_to_panel(count);
  decode(from, count, query);
  for (std::int64_t i = 0; i < count; ++i) query[i] *= scale;
}

std::int64_t position_block(std::int64_t features, std::int64_t value_features) noexcept {
  const std::int64_t padded = round_up_to_panel(std::max(features, value_features));
  return padded * kMostPositions <= kBlockFloats ? kMostPositions : kPanel;
}

void sum_split(const AttentionRows& task, AttentionScratch& scratch, std::int64_t begin,
               NearSplits near) {
  clear_all(task, scratch.split);
  const std::int64_t size = position_block(task.keys.features, task.values.features);
  const Visible all = task.all();
  const std::int64_t end = std::min(begin + kSplit, all.end);
  const std::int64_t fetch_end = near.after ? all.end : end;
  std::int64_t at = std::max(begin, all.begin / size * size);
  if (at >= end) return;
  BlockRows blocks[2];
  BlockRows *block = &blocks[0], *next = &blocks[1];
  block->find(task, size, at);
  if (!near.before) fetch_all(task, *block);
  for (; at < end; at += size) {
    if (at + size < fetch_end) {
      next->find(task, size, at + size);
    } else {
      next->range = {0, 0};
    }
    if (!block->empty()) BlockSums(task, scratch, *block, size).add(*next);
    std::swap(block, next);
  }
}

void sum_all(const AttentionRows& task, AttentionScratch& scratch) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  const Visible all = task.all();
  const std::int64_t rows = task.heads * task.rows, first = all.begin / kSplit * kSplit;
  if (first >= all.end) clear_all(task, scratch.total);
  for (std::int64_t begin = first; begin < all.end; begin += kSplit) {
    sum_split(task, scratch, begin, {begin > all.begin, begin + kSplit < all.end});
    if (begin == first) {  // joined to nothing, it stays what it is
      std::copy_n(scratch.split.maximum, rows, scratch.total.maximum);
      std::copy_n(scratch.split.sum, rows, scratch.total.sum);
      std::copy_n(scratch.split.output, rows * padded, scratch.total.output);
      continue;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      join(task.loops, row_of(scratch.total, r, padded), row_of(scratch.split, r, padded), padded);
    }
  }
}

void clear(const RowSums& row, std::int64_t padded_features) noexcept {
  *row.maximum = kNothing;
  *row.sum = 0.0f;
  std::fill_n(row.output, padded_features, 0.0f);
}

void join(const Products& loops, const RowSums& total, const RowSums& part,
          std::int64_t padded_features) noexcept {
  const float maximum = std::max(*total.maximum, *part.maximum);
  const float reference = maximum == kNothing ? 0.0f : maximum;
  const float a = std::exp(*total.maximum - reference), b = std::exp(*part.maximum - reference);
  *total.maximum = maximum;
  *total.sum = *total.sum * a + *part.sum * b;
  loops.blend(total.output, a, part.output, b, padded_features);
}

void add_sink(const Products& loops, const RowSums& row, float score,
              std::int64_t padded_features) noexcept {
  const float maximum = std::max(*row.maximum, score);
  const float reference = maximum == kNothing ? 0.0f : maximum;
  const float rescale = std::exp(*row.maximum - reference);
  *row.maximum = maximum;
  *row.sum = *row.sum * rescale + std::exp(score - reference);
  loops.blend(row.output, rescale, row.output, 0.0f, padded_features);
}

void finish(const RowSums& row, std::int64_t features) noexcept {
  const float sum = *row.sum;
  if (sum == 0.0f) {
    std::fill_n(row.output, features, 0.0f);
    return;
  }
  // Adding zero makes -0, which only rows with hidden positions can lose on the way, +0 for all.
  for (std::int64_t i = 0; i < features; ++i) row.output[i] = row.output[i] / sum + 0.0f;
}

}  // namespace heddle::cpu
