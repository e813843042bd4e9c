#include "device/cpu/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::cpu {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// Positions of a block, counted from its start.
struct BlockRange {
  std::int64_t first, last;
  std::int64_t first_panel() const { return first / kPanel; }
  std::int64_t last_panel() const { return (last + kPanel - 1) / kPanel; }
  std::int64_t first_lane() const { return first_panel() * kPanel; }
  std::int64_t lanes() const { return (last_panel() - first_panel()) * kPanel; }
};

BlockRange within_block(const Visible& visible, std::int64_t block) {
  return {std::max(visible.begin - block, std::int64_t{0}),
          std::min(visible.end - block, kPositionBlock)};
}

/// What any row sees of a block, and whether all rows see the same.
struct BlockUse {
  BlockRange range{kPositionBlock, 0};
  bool same = true;
};

BlockUse use_of_block(const AttentionRows& task, std::int64_t block) {
  BlockUse use;
  const BlockRange first_row = within_block(task.visible[0], block);
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const BlockRange row = within_block(task.visible[r], block);
    if (row.first != first_row.first || row.last != first_row.last) use.same = false;
    if (row.first >= row.last) continue;
    use.range.first = std::min(use.range.first, row.first);
    use.range.last = std::max(use.range.last, row.last);
  }
  return use;
}

/// Rows of one head lie apart, where the processor does not look ahead by itself. Into the second
/// level: a block is more than the first one can wait for at once.
void fetch(const HeadSource& source, std::int64_t position) {
  constexpr std::int64_t kLine = 64;
  const std::byte* row = source.row(position);
  for (std::int64_t i = 0; i < source.head_bytes; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

/// Keys of a block, `end` being where the visible positions end; values and the next keys are
/// fetched.
void load_keys(const AttentionRows& task, AttentionScratch& scratch, std::int64_t block,
               const BlockRange& range, std::int64_t end) {
  const std::int64_t features = task.keys.features, padded = round_up_to_panel(features);
  const std::int64_t first = range.first_lane(), last = range.last_panel() * kPanel;
  float* rows = scratch.values;
  std::fill(rows + first * padded, rows + range.first * padded, 0.0f);
  for (std::int64_t p = range.first; p < range.last; ++p) {
    fetch(task.values, block + p);
    if (block + p + kPositionBlock < end) fetch(task.keys, block + p + kPositionBlock);
    task.keys.decode(task.keys.row(block + p), features, rows + p * padded);
  }
  std::fill(rows + range.last * padded, rows + last * padded, 0.0f);
  for (std::int64_t p = first; p < last; p += kPanel) {
    task.loops.to_panel(rows + p * padded, padded, features, scratch.keys + p * padded);
  }
}

void load_values(const AttentionRows& task, AttentionScratch& scratch, std::int64_t block,
                 const BlockRange& range) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  for (std::int64_t p = range.first; p < range.last; ++p) {
    task.values.decode(task.values.row(block + p), task.values.features,
                       scratch.values + p * padded);
  }
}

void score(const AttentionRows& task, AttentionScratch& scratch, const BlockRange& range) {
  const std::int64_t features = task.keys.features, padded = round_up_to_panel(features);
  std::int64_t first = 0;
  do {  // even scores of no features must be written
    task.loops.tile({
        .x = scratch.queries + first,
        .x_stride = padded,
        .rows = task.rows,
        .w = scratch.keys + range.first_lane() * padded + first * kPanel,
        .step = kPanel,
        .panel = kPanel * padded,
        .depth = std::min(features - first, kDepthBlock),
        .columns = range.lanes(),
        .out = scratch.scores + range.first_lane(),
        .out_stride = kPositionBlock,
        .scales = first > 0 ? kOnes : nullptr,
    });
    first += kDepthBlock;
  } while (first < features);
}

/// Scores become weights, zero where a row does not see.
void weigh(const AttentionRows& task, AttentionScratch& scratch, std::int64_t block,
           const BlockRange& range) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    float* scores = scratch.scores + r * kPositionBlock;
    const BlockRange seen = within_block(task.visible[r], block);
    if (seen.first >= seen.last) {
      std::fill_n(scores + range.first_lane(), range.lanes(), 0.0f);
      scratch.rescale[r] = 1.0f;
      continue;
    }
    if (task.apply_mask) {
      task.apply_mask(scores + seen.first, task.mask[r], task.mask_stride, block + seen.first,
                      block + seen.last);
    }
    SoftmaxRow row{
        .scores = scores + range.first_lane(),
        .begin = seen.first - range.first_lane(),
        .end = seen.last - range.first_lane(),
        .whole = range.lanes(),
        .maximum = scratch.split.maximum[r],
        .sum = scratch.split.sum[r],
        .rescale = 1.0f,
    };
    task.loops.softmax(row);
    scratch.split.maximum[r] = row.maximum;
    scratch.split.sum[r] = row.sum;
    scratch.rescale[r] = row.rescale;
  }
}

void add_values(const AttentionRows& task, AttentionScratch& scratch, std::int64_t first_row,
                std::int64_t rows, const BlockRange& range) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  for (std::int64_t column = 0; column < padded; column += kGroupColumns) {
    task.loops.tile({
        .x = scratch.scores + first_row * kPositionBlock + range.first,
        .x_stride = kPositionBlock,
        .rows = rows,
        .w = scratch.values + range.first * padded + column,
        .step = padded,
        .panel = kPanel,
        .depth = range.last - range.first,
        .columns = std::min(kGroupColumns, padded - column),
        .out = scratch.split.output + first_row * padded + column,
        .out_stride = padded,
        .scales = scratch.rescale + first_row,
    });
  }
}

void sum_block(const AttentionRows& task, AttentionScratch& scratch, std::int64_t block,
               std::int64_t end) {
  const BlockUse use = use_of_block(task, block);
  const BlockRange& range = use.range;
  if (range.first >= range.last) return;
  load_keys(task, scratch, block, range, end);
  score(task, scratch, range);
  weigh(task, scratch, block, range);
  load_values(task, scratch, block, range);
  const std::int64_t padded = round_up_to_panel(task.values.features);
  if (use.same || task.loops.all_finite(scratch.values + range.first * padded,
                                        (range.last - range.first) * padded)) {
    return add_values(task, scratch, 0, task.rows, range);
  }
  // A weight of zero hides a value that a row does not see, unless that is infinite or not a
  // number.
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const BlockRange seen = within_block(task.visible[r], block);
    if (seen.first < seen.last) add_values(task, scratch, r, 1, seen);
  }
}

}  // namespace

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

void sum_split(const AttentionRows& task, AttentionScratch& scratch, std::int64_t begin) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  for (std::int64_t r = 0; r < task.rows; ++r) clear(row_of(scratch.split, r, padded), padded);
  const Visible all = task.all();
  const std::int64_t end = std::min(begin + kSplit, all.end);
  for (std::int64_t block = std::max(begin, all.begin / kPositionBlock * kPositionBlock);
       block < end; block += kPositionBlock) {
    sum_block(task, scratch, block, end);
  }
}

void sum_all(const AttentionRows& task, AttentionScratch& scratch) {
  const std::int64_t padded = round_up_to_panel(task.values.features);
  for (std::int64_t r = 0; r < task.rows; ++r) clear(row_of(scratch.total, r, padded), padded);
  const Visible all = task.all();
  for (std::int64_t begin = all.begin / kSplit * kSplit; begin < all.end; begin += kSplit) {
    sum_split(task, scratch, begin);
    for (std::int64_t r = 0; r < task.rows; ++r) {
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

void finish(const RowSums& row, std::int64_t features) noexcept {
  for (std::int64_t i = 0; i < features; ++i) {
    // Adding zero makes -0, which only rows with hidden positions can lose on the way, +0 for all.
    row.output[i] = *row.sum == 0.0f ? 0.0f : row.output[i] / *row.sum + 0.0f;
  }
}

}  // namespace heddle::cpu
