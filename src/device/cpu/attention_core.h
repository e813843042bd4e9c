// What attention over dense operands and over states have in common: some rows of queries that
// share heads of keys and values, computed block by block with an online softmax.
//
// Positions are taken in blocks of position_block() and splits of kSplit, both counted from
// position 0; each split's sums start afresh and join the total in order. A row's blocks, and the
// order within them, so depend on the op and on what the row sees and on nothing else: not on the
// rows beside it, nor on whether splits were computed by one thread or many.
//
// Rows of states hold all heads, and memory is fastest read in its own order. So a task may take
// several heads at once, block by block, and while it computes on one block it fetches the next.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/head_loops.h"
#include "device/cpu/products.h"

namespace heddle::cpu {

inline constexpr std::int64_t kMostPositions = kGroupColumns;  // in a block
inline constexpr std::int64_t kBlockFloats = kMostPositions * 256;
inline constexpr std::int64_t kSplit = 512;
inline constexpr std::int64_t kMostHead = 1024;     // features of a head
inline constexpr std::int64_t kMostQueries = 48;    // rows computed together
inline constexpr std::int64_t kQueryFloats = 6144;  // ... and their features, padded

/// Decodes one stored row of a head into floats, padded with zeros to a multiple of 16.
using DecodeRow = void (*)(const std::byte* from, std::int64_t count, float* to);

/// One head's keys or values. Position p is in row p, or, with a table, in row
/// table[p / block_size] * block_size + p % block_size.
struct HeadSource {
  const std::byte* data;
  std::int64_t row_bytes;   // from a row to the next
  std::int64_t head_bytes;  // of a row that are this head's
  std::int64_t features;
  DecodeRow decode;
  const HeadLoops* loops;
  const std::int32_t* table = nullptr;
  std::int64_t block_size = 1;

  /// Where the rows of positions [begin, end) are.
  void locate(std::int64_t begin, std::int64_t end, const std::byte** rows) const noexcept;
};

/// Changes the scores of positions [begin, end); scores[0] is that of `begin`, `mask` the mask's
/// element for position 0 and `stride` the bytes from one position's to the next.
using ApplyMask = void (*)(float* scores, const std::byte* mask, std::int64_t stride,
                           std::int64_t begin, std::int64_t end);

/// Positions [begin, end) that a row sees.
struct Visible {
  std::int64_t begin = 0, end = 0;
};

/// Softmax sums of some rows: sum of e^(score - maximum), and of that times values.
struct Sums {
  float maximum[kMostQueries];
  float sum[kMostQueries];
  alignas(64) float output[kQueryFloats];  // [heads][rows][features of values, padded]
};

/// Working memory for one thread: 212 KiB of its stack.
struct AttentionScratch {
  alignas(64) float keys[kBlockFloats];     // panels
  alignas(64) float values[kBlockFloats];   // rows, where they are decoded
  alignas(64) float queries[kQueryFloats];  // scaled, [heads][rows][features, padded]
  alignas(64) float scores[kMostQueries * kMostPositions];
  float rescale[kMostQueries];
  Sums split, total;
};

struct AttentionRows {
  const Products& loops;
  HeadSource keys, values;        // of the first head
  std::int64_t rows;              // that share a head, most_rows() over all heads at most
  std::int64_t heads = 1;         // of keys and values, adjacent in their rows
  Visible visible[kMostQueries];  // of each head's rows
  ApplyMask apply_mask = nullptr;
  const std::byte* mask[kMostQueries] = {};
  std::int64_t mask_stride = 0;

  /// The positions that any row sees; nothing outside is read.
  Visible all() const noexcept;
};

/// How many rows of such heads fit in a scratch.
std::int64_t most_rows(std::int64_t features, std::int64_t value_features) noexcept;

/// Positions of a block: as many as working memory holds of such heads.
std::int64_t position_block(std::int64_t features, std::int64_t value_features) noexcept;

/// Row `row`'s queries, all heads' rows counted: `count` stored elements times `scale`.
void load_query(AttentionScratch& scratch, std::int64_t row, DecodeRow decode,
                const std::byte* from, std::int64_t count, float scale);

/// Whether the thread that sums a split sums the same rows' split before it just before, and that
/// after it just after: then what is read first is fetched in time.
struct NearSplits {
  bool before = false, after = false;
};

/// scratch.split = the sums over positions [begin, begin + kSplit); begin is a multiple of kSplit.
void sum_split(const AttentionRows& task, AttentionScratch& scratch, std::int64_t begin,
               NearSplits near);

/// scratch.total = the sums over all positions.
void sum_all(const AttentionRows& task, AttentionScratch& scratch);

/// One row's sums, wherever they are kept.
struct RowSums {
  float* maximum;
  float* sum;
  float* output;
};
void clear(const RowSums& row, std::int64_t padded_features) noexcept;
/// total += part, for a part that lies after the total's.
void join(const Products& loops, const RowSums& total, const RowSums& part,
          std::int64_t padded_features) noexcept;
/// A score more, which has no value.
void add_sink(const Products& loops, const RowSums& row, float score,
              std::int64_t padded_features) noexcept;
/// The row's result in its `output`: zeros if it saw nothing.
void finish(const RowSums& row, std::int64_t features) noexcept;

inline RowSums row_of(Sums& sums, std::int64_t row, std::int64_t padded_features) noexcept {
  return {sums.maximum + row, sums.sum + row, sums.output + row * padded_features};
}

}  // namespace heddle::cpu
